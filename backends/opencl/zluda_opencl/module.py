"""Images on a device: building, kernels, and setting their arguments from packed bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import pyopencl as cl

from zluda.backend.info import ArgumentKind, Image, KernelSignature
from zluda.backend.seam import BackendError, BuildError, Dim3, Kernel, LaunchError, LoadedModule
from zluda_opencl import api
from zluda_opencl.errors import build_error, error, launch_error
from zluda_opencl.memory import SvmAllocator

SPIRV, NATIVE = "spirv", "native:opencl"
_SPIRV_MAGIC = b"\x03\x02\x23\x07"
_CORRECTLY_ROUNDED = 1 << 7

SetPointer = Callable[[int, int, int], int]


def build(context: Any, device: Any, image: Image, options: Sequence[str] = ()) -> Any:
    """A built pyopencl program. Raises BuildError with the vendor's log."""
    if image.format == SPIRV:
        if image.data[:4] != _SPIRV_MAGIC:
            raise BuildError(f"the image of {_names(image)} is no SPIR-V: it starts with {image.data[:4].hex(' ')}")
        arguments: tuple[Any, ...] = (context, image.data)
    elif image.format == NATIVE:
        arguments = (context, [device], [image.data])
    else:
        raise BuildError(f"the OpenCL backend takes images in {SPIRV} and {NATIVE}, not {image.format}")
    try:
        program = cl.Program(*arguments)
    except cl.Error as failure:
        raise build_error(str(failure.routine), failure.code, _names(image)) from failure

    text = " ".join([*build_options(device), *options])
    devices = (ctypes.c_void_p * 1)(device.int_ptr)
    if code := api.build_program(program.int_ptr, 1, devices, text.encode(), None, None):
        log = program.get_build_info(device, cl.program_build_info.LOG)
        raise build_error("clBuildProgram", code, _names(image), str(log).strip())
    return program


def build_options(device: Any) -> list[str]:
    """Options that every build on the device gets."""
    if device.single_fp_config & _CORRECTLY_ROUNDED:
        return ["-cl-fp32-correctly-rounded-divide-sqrt"]
    return []


def native_binary(program: Any) -> bytes:
    """The device's native binary of a program that was built for one device; empty where the driver has none."""
    try:
        binaries = program.get_info(cl.program_info.BINARIES)
    except cl.Error as failure:
        raise error(str(failure.routine), failure.code) from failure
    return bytes(binaries[0]) if binaries else b""


class OpenCLModule(LoadedModule):
    """A built program; kernels are made at first use and live as long as the module."""

    def __init__(
        self, program: Any, device: Any, image: Image, set_pointer: SetPointer, system: bool, svm: SvmAllocator | None
    ) -> None:
        self._program = program
        self._device = device
        self._signatures = {signature.name: signature for signature in image.kernels}
        self._set_pointer, self._system, self._svm = set_pointer, system, svm
        self._kernels: dict[str, OpenCLKernel] = {}

    def kernel(self, name: str) -> OpenCLKernel:
        if name not in self._kernels:
            signature = self._signatures[name]
            if self._program is None:
                raise BackendError("the module is closed")
            try:
                handle = cl.Kernel(self._program, name)
            except cl.Error as failure:
                raise build_error(str(failure.routine), failure.code, f"kernel {name}") from failure
            self._kernels[name] = OpenCLKernel(
                handle, self._device, signature, self._set_pointer, self._system, self._svm
            )
        return self._kernels[name]

    def close(self) -> None:
        for kernel in self._kernels.values():
            kernel.close()
        self._kernels.clear()
        self._program = None


class OpenCLKernel(Kernel):
    """A kernel and the arguments that were last set on it: setting one costs more than comparing it."""

    def __init__(
        self,
        kernel: Any,
        device: Any,
        signature: KernelSignature,
        set_pointer: SetPointer,
        system: bool,
        svm: SvmAllocator | None,
    ) -> None:
        self._kernel = kernel
        self.handle: int = kernel.int_ptr
        self.signature = signature
        info = cl.kernel_work_group_info
        self.max_threads_per_block = kernel.get_work_group_info(info.WORK_GROUP_SIZE, device)
        self.private_bytes = kernel.get_work_group_info(info.PRIVATE_MEM_SIZE, device)
        self._set_pointer = set_pointer
        self._svm = svm
        self._svm_generation = -1
        if kernel.num_args != len(signature.arguments):
            takes, has = kernel.num_args, len(signature.arguments)
            raise BuildError(f"kernel {signature.name} takes {takes} arguments, its signature has {has}")

        # (index, start, stop, whether a pointer) of what comes from the packed bytes.
        self._plan: list[tuple[int, int, int, bool]] = []
        self._shared: list[int] = []
        for index, argument in enumerate(signature.arguments):
            if argument.kind is ArgumentKind.SHARED:
                self._shared.append(index)
            else:
                pointer = argument.kind is ArgumentKind.POINTER
                size = 8 if pointer else argument.size
                if argument.offset + size > signature.packed_size:
                    raise BuildError(f"kernel {signature.name}: argument {index} lies outside the packed bytes")
                self._plan.append((index, argument.offset, argument.offset + size, pointer))
        self._arguments: bytes | None = None
        self._pieces: list[bytes | None] = [None] * len(signature.arguments)
        self._shared_bytes = -1

        self._dims: tuple[Dim3, Dim3] | None = None
        self.global_size = (ctypes.c_size_t * 3)()
        self.local_size = (ctypes.c_size_t * 3)()
        self._allow_indirect_access(system)

    def bind(self, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        """Make the kernel ready to be enqueued with these."""
        if arguments != self._arguments:
            self._set_arguments(arguments)
        if shared_bytes != self._shared_bytes and self._shared:
            self._set_shared(shared_bytes)
        if self._dims != (grid, block):
            self.global_size[:] = [count * size for count, size in zip(grid, block, strict=True)]
            self.local_size[:] = list(block)
            self._dims = (grid, block)
        if self._svm is not None and self._svm.generation != self._svm_generation:
            self._list_blocks(self._svm)

    def close(self) -> None:
        """Release the kernel; it cannot be launched any more."""
        self._kernel = None
        self.handle = 0

    def _set_arguments(self, arguments: bytes) -> None:
        if len(arguments) != self.signature.packed_size:
            name, size = self.signature.name, self.signature.packed_size
            raise LaunchError(f"kernel {name} takes {size} bytes of arguments, not {len(arguments)}")
        self._check_open()
        pieces = self._pieces
        for index, start, stop, pointer in self._plan:
            piece = arguments[start:stop]
            if piece == pieces[index]:
                continue
            if pointer:
                code = self._set_pointer(self.handle, index, int.from_bytes(piece, "little"))
            else:
                code = api.set_kernel_arg(self.handle, index, stop - start, piece)
            if code:
                call = "clSetKernelArg" + ("MemPointerINTEL or SVMPointer" if pointer else "")
                raise launch_error(call, code, f"argument {index} of kernel {self.signature.name}")
            pieces[index] = piece
        self._arguments = arguments

    def _set_shared(self, size: int) -> None:
        self._check_open()
        for index in self._shared:
            # OpenCL refuses a local argument of size 0.
            if code := api.set_kernel_arg(self.handle, index, max(1, size), None):
                what = f"{size} bytes of shared memory for kernel {self.signature.name}"
                raise launch_error("clSetKernelArg", code, what)
        self._shared_bytes = size

    def _check_open(self) -> None:
        if not self.handle:
            raise BackendError(f"kernel {self.signature.name}: its module is closed")

    def _allow_indirect_access(self, system: bool) -> None:
        """Let the kernel follow pointers that no argument names."""
        yes = ctypes.c_uint(1)
        flags = []
        if self._svm is None:
            flags += [
                api.KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL,
                api.KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                api.KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
            ]
        if system:
            flags.append(api.KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM)
        for flag in flags:
            if code := api.set_kernel_exec_info(self.handle, flag, ctypes.sizeof(yes), ctypes.byref(yes)):
                raise error("clSetKernelExecInfo", code, f"kernel {self.signature.name}, parameter {flag:#x}")

    def _list_blocks(self, svm: SvmAllocator) -> None:
        blocks = svm.blocks
        if blocks:
            array = (ctypes.c_void_p * len(blocks))(*blocks)
            size = ctypes.sizeof(array)
            if code := api.set_kernel_exec_info(self.handle, api.KERNEL_EXEC_INFO_SVM_PTRS, size, array):
                raise error("clSetKernelExecInfo", code, f"kernel {self.signature.name}, {len(blocks)} SVM blocks")
        self._svm_generation = svm.generation


def _names(image: Image) -> str:
    names = [kernel.name for kernel in image.kernels]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"kernels {shown}" if names else "an image without kernels"
