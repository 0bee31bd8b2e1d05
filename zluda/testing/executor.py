"""What runs a case's launch: any device behind the `Executor` protocol."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Protocol

import zluda
from zluda.compiler.errors import CompileError
from zluda.core.errors import CudaError
from zluda.core.gpu import Gpu, Program
from zluda.testing.portable import Buffer, Case, Launch
from zluda.testing.portable.driver import DriverApi, Unsupported
from zluda.testing.portable.launch import with_addresses

__all__ = ["CoreExecutor", "DriverApiExecutor", "Executor", "Unsupported"]

DriverApiExecutor = DriverApi
"""Runs cases through a libcuda.so.1, by ctypes."""


class Executor(Protocol):
    """A device that cases run on."""

    def run(self, case: Case, launch: Launch) -> list[bytes]:
        """Run `launch` of a kernel of `case.ptx`; the images of its buffers afterwards, in order.

        Raises Unsupported where the device or the compiler cannot run it. Anything else that is raised makes the
        verdict wrong.
        """
        ...


class CoreExecutor:
    """Runs cases through zluda's core in this process. The kernels of a module that cases use are compiled together.

    `cases` are those to come: it tells which kernels of a module go together. A context manager.
    """

    def __init__(self, gpu: Gpu | None = None, cases: Iterable[Case] = ()) -> None:
        """Takes an open device, or opens the first one."""
        self._owned = gpu is None
        self.gpu = gpu if gpu is not None else zluda.open()
        self._programs: dict[str, Program] = {}
        self._together: dict[str, dict[str, None]] = {}
        for case in cases:
            self._together.setdefault(case.ptx_name, {})[case.kernel] = None

    def __enter__(self) -> CoreExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the device, if it was opened here."""
        self._programs.clear()
        if self._owned:
            self.gpu.close()

    @property
    def capabilities(self) -> frozenset[str]:
        """What the device declares."""
        return self.gpu.device.info.capabilities

    def run(self, case: Case, launch: Launch) -> list[bytes]:
        """As `Executor.run`."""
        lacking = sorted(set(case.needs) - self.capabilities)
        if lacking:
            raise Unsupported(f"{self.gpu.name} lacks {', '.join(lacking)}")
        try:
            function = self._program(case).module.function(case.kernel)
        except CudaError as error:
            if isinstance(error.__cause__, CompileError) and error.__cause__.kind == "unsupported":
                raise Unsupported(error.log or str(error)) from error
            raise
        context = self.gpu.context
        allocations: list[int] = []
        try:
            given: list[int] = []
            for argument in launch.arguments:
                if isinstance(argument, Buffer):
                    allocations.append(context.allocate(len(argument.image)))
                    given.append(allocations[-1] + argument.start)
                else:
                    given.append(0)
            block = bytearray(function.info.parameter_bytes)
            parameters = iter(function.info.parameters)
            for argument, address in zip(launch.arguments, given, strict=True):
                if isinstance(argument, Buffer):
                    context.write(address - argument.start, with_addresses(argument.image, argument.fixups, given))
                    if not argument.passed:
                        continue
                    data = address.to_bytes(8, "little")
                else:
                    data = with_addresses(argument.data, argument.fixups, given)
                place = next(parameters)
                if place.size != len(data):
                    raise ValueError(f"{case.id}: {len(data)} bytes for a parameter of {place.size}")
                block[place.offset : place.offset + place.size] = data
            function.launch(launch.grid, launch.block, bytes(block), launch.shared)
            context.synchronize()
            buffers = [argument for argument in launch.arguments if isinstance(argument, Buffer)]
            return [
                bytes(context.read(base, len(buffer.image))) for base, buffer in zip(allocations, buffers, strict=True)
            ]
        finally:
            for base in allocations:
                context.free_wait(base)

    def _program(self, case: Case) -> Program:
        program = self._programs.get(case.ptx_name)
        if program is None:
            program = self._programs[case.ptx_name] = self.gpu.load(case.ptx)
            kernels = tuple(self._together.get(case.ptx_name, ()))
            if len(kernels) > 1:
                try:
                    program.module.compile(kernels)
                except CudaError as error:
                    # One kernel that is not lowered must not take the others along: they are compiled one by one.
                    if error.name != "CUDA_ERROR_INVALID_PTX":
                        raise
        return program
