"""A driver process over a device made for tests: `python fake_driver.py --fd N`.

The device runs its commands on threads, in the window, as a vendor's CPU runtime would. Its kernels are the Python
functions below; "compiling" looks them up. So tests of the client need no compiler and no OpenCL.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import queue
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from zluda.backend.info import (
    Argument,
    ArgumentKind,
    DeviceInfo,
    DeviceKind,
    DeviceLimits,
    Image,
    KernelSignature,
    ProbeReport,
    TargetInfo,
)
from zluda.backend.seam import Backend, BackendError, Device, Dim3, Kernel, LoadedModule, Marker, Queue
from zluda.backend.selection import Selection
from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompiledImage, CompileRequest, KernelInfo, Parameter
from zluda.core import Driver
from zluda.server import process, startup
from zluda.window import Window
from zluda.window.window import reserve

MEMORY = 1 << 30


def u32(address: int) -> ctypes.c_uint32:
    return ctypes.c_uint32.from_address(address)


# --- kernels: parameter sizes, and what they do to (grid, block, arguments) ---


def add_one(grid: Dim3, block: Dim3, address: int, count: int) -> None:
    """data[i] += 1 for i < count."""
    data = (ctypes.c_uint32 * count).from_address(address)
    for i in range(count):
        data[i] += 1


def scale(grid: Dim3, block: Dim3, address: int, factor: int, shift: int) -> None:
    """data[0] = data[0] * factor + shift, to see that the order of launches is kept."""
    word = u32(address)
    word.value = word.value * factor + shift


def shape(grid: Dim3, block: Dim3, address: int) -> None:
    """The launch's six extents."""
    (ctypes.c_uint32 * 6).from_address(address)[:] = [*grid, *block]


def mixed(grid: Dim3, block: Dim3, small: int, address: int, half: int, wide: int) -> None:
    """Parameters of 1, 8, 2 and 8 bytes, written back."""
    (ctypes.c_uint64 * 3).from_address(address)[:] = [small, half, wide]


def nap(grid: Dim3, block: Dim3, milliseconds: int) -> None:
    time.sleep(milliseconds / 1e3)


def fail(grid: Dim3, block: Dim3) -> None:
    raise BackendError("the test kernel fails")


def crash(grid: Dim3, block: Dim3, number: int) -> None:
    """What a stray store does to a CPU device; or any other signal."""
    if number == signal.SIGSEGV:
        ctypes.string_at(8)
    signal.raise_signal(number)


def leave(grid: Dim3, block: Dim3) -> None:
    os._exit(7)


KERNELS: dict[str, tuple[Callable[..., None], tuple[int, ...]]] = {
    "add_one": (add_one, (8, 4)),
    "scale": (scale, (8, 4, 4)),
    "shape": (shape, (8,)),
    "mixed": (mixed, (1, 8, 2, 8)),
    "nap": (nap, (4,)),
    "fail": (fail, ()),
    "crash": (crash, (4,)),
    "leave": (leave, ()),
}


def kernel_info(name: str) -> KernelInfo:
    parameters, offset = [], 0
    for size in KERNELS[name][1]:
        offset = -(-offset // size) * size
        parameters.append(Parameter(offset=offset, size=size, align=size))
        offset += size
    arguments = tuple(Argument(kind=ArgumentKind.VALUE, offset=p.offset, size=p.size) for p in parameters)
    return KernelInfo(
        name=name,
        parameters=tuple(parameters),
        parameter_bytes=offset,
        hidden=(),
        signature=KernelSignature(name=name, arguments=arguments, packed_size=offset),
        static_shared_bytes=16 if name == "shape" else 0,
        flat=False,
        max_threads=256 if name == "mixed" else None,
        required_block=(8, 4, 1) if name == "nap" else None,
        ptx_version=(7, 8),
        sm=75,
    )


class TestCompiler:
    def compile(self, request: CompileRequest) -> CompiledImage:
        for name in request.entries:
            if name not in KERNELS:
                raise CompileError(f"{name}: nothing here is lowered", kind="unsupported", log="line 4: nothing")
        found = tuple(kernel_info(name) for name in request.entries)
        image = Image(format="test", data=b"", kernels=tuple(k.signature for k in found))
        return CompiledImage(image=image, kernels=found)


# --- the device ---


class TestMarker(Marker):
    def __init__(self) -> None:
        self.event = threading.Event()
        self.time = 0.0
        self.error: BackendError | None = None

    def query(self) -> bool:
        if self.event.is_set() and self.error:
            raise self.error
        return self.event.is_set()

    def synchronize(self) -> None:
        self.event.wait()
        if self.error:
            raise self.error

    def elapsed(self, later: Marker) -> float:
        assert isinstance(later, TestMarker)
        return (later.time - self.time) * 1e3


class TestKernel(Kernel):
    def __init__(self, signature: KernelSignature) -> None:
        self.signature = signature
        self.max_threads_per_block = 512


class TestModule(LoadedModule):
    def __init__(self, image: Image) -> None:
        self._kernels = {s.name: TestKernel(s) for s in image.kernels}

    def kernel(self, name: str) -> Kernel:
        return self._kernels[name]

    def close(self) -> None:
        pass


class TestQueue(Queue):
    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._error: BackendError | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while (action := self._work.get()) is not None:
            try:
                action()
            except BackendError as error:
                self._error = error

    def copy(self, destination: int, source: int, size: int) -> None:
        self._work.put(lambda: ctypes.memmove(destination, source, size) and None)

    def fill(self, destination: int, pattern: bytes, count: int) -> None:
        data = pattern * count
        self._work.put(lambda: ctypes.memmove(destination, data, len(data)) and None)

    def launch(self, kernel: Kernel, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        function, sizes = KERNELS[kernel.signature.name]
        values = [int.from_bytes(arguments[a.offset : a.offset + a.size], "little") for a in kernel.signature.arguments]
        assert len(values) == len(sizes)
        self._work.put(lambda: function(grid, block, *values))

    def record(self, timing: bool = False) -> Marker:
        marker = TestMarker()

        def reach() -> None:
            marker.time = time.perf_counter()
            marker.error = self._error
            marker.event.set()

        self._work.put(reach)
        return marker

    def wait(self, marker: Marker) -> None:
        assert isinstance(marker, TestMarker)
        self._work.put(lambda: marker.event.wait() and None)

    def host_call(self, function: Callable[[], None]) -> None:
        self._work.put(function)

    def flush(self) -> None:
        pass

    def synchronize(self) -> None:
        self.record().synchronize()

    def close(self) -> None:
        self._work.put(None)


class TestDevice(Device):
    def __init__(self, info: DeviceInfo) -> None:
        self.info = info

    def allocate(self, size: int, alignment: int = 256) -> int:
        raise AssertionError("the device's memory is the window")

    def free(self, address: int) -> None:
        raise AssertionError("the device's memory is the window")

    def memory(self) -> tuple[int, int]:
        return MEMORY, MEMORY

    def create_queue(self, priority: int = 0) -> Queue:
        return TestQueue()

    def load(self, image: Image) -> LoadedModule:
        return TestModule(image)

    def close(self) -> None:
        pass


def device_info(index: int) -> DeviceInfo:
    return DeviceInfo(
        backend="test",
        index=index,
        name=f"Test device {index}",
        vendor="Nobody",
        kind=DeviceKind.CPU,
        uuid=uuid.uuid5(uuid.NAMESPACE_DNS, f"test{index}").bytes,
        pci={"domain": 1, "bus": 0xAB, "device": index, "function": 0},  # type: ignore[arg-type]
        total_memory=MEMORY,
        driver_version="1",
        target=TargetInfo(name="spirv64"),
        limits=DeviceLimits(
            max_threads_per_block=1024,
            max_block_dim=(1024, 1024, 64),
            shared_memory_per_block=65536,
            multiprocessors=4,
        ),
        capabilities=frozenset({"memory.system", "progress.grid"} if index else {"memory.system"}),
    )


class TestBackend(Backend):
    name = "test"
    version = "0"

    def probe(self) -> ProbeReport:
        return ProbeReport(backend="test", backend_version="0", devices=(device_info(0), device_info(1)))

    def open(self, index: int) -> Device:
        return TestDevice(device_info(index))


def start_driver(window: Window, environment: Any) -> Driver:
    if "ZLUDA_TEST_REFUSE" in environment:
        raise startup.Failure("CUDA_ERROR_NO_DEVICE", "the test device refuses")
    if "ZLUDA_TEST_DIE" in environment:
        os._exit(3)
    infos = (device_info(0), device_info(1))
    selection = Selection(chosen=infos, usable=infos, passed_over=(), backends={"test": TestBackend()})
    return Driver(selection, window, TestCompiler())


if __name__ == "__main__":
    startup.start_driver = start_driver
    if "ZLUDA_TEST_TAKE" in os.environ:
        assert reserve(0x6000_0000_0000 + (1 << 30), 4096)
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    sys.exit(process.run(parser.parse_args().fd))
