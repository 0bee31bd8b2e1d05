"""Images on a device: programs, kernels, and setting arguments from packed bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

from zluda.backend.info import ArgumentKind, Image, KernelSignature
from zluda.backend.seam import BackendError, BuildError, Dim3, Kernel, LaunchError, LoadedModule
from zluda_opencl import api
from zluda_opencl.errors import build_error, check, error, launch_error
from zluda_opencl.memory import Allocator, SvmAllocator
from zluda_opencl.query import Device

SPIRV, NATIVE = "spirv", "native:opencl"


class Roads(NamedTuple):
    """How kernels of a device reach memory."""

    set_pointer: Callable[[int, int, int], int]
    """clSetKernelArgMemPointerINTEL or clSetKernelArgSVMPointer."""
    system: bool
    """Any host address is reached."""
    allocator: Allocator
    """Where device memory comes from. Launches must list the blocks of an SvmAllocator."""


def load_program(context: int, device: Device, image: Image) -> int:
    """A built program, owned by the caller. Raises BuildError with the vendor's log."""
    if image.format == NATIVE:
        return _load_native(context, device, image)
    if image.format != SPIRV:
        raise BuildError(f"the OpenCL backend takes images in {SPIRV} and {NATIVE}, not {image.format}")
    from zluda_opencl.compile import compile_spirv

    program = compile_spirv(context, device, image)
    handle: int = program.int_ptr
    # pyopencl's own reference goes with its object, at the end of this function.
    check(api.retain_program(handle), "clRetainProgram")
    return handle


def _load_native(context: int, device: Device, image: Image) -> int:
    about = f"a native binary of {len(image.data)} bytes"
    program, code = api.create_program(context, device.handle, image.data)
    if code:
        if program:
            api.release_program(program)
        raise build_error("clCreateProgramWithBinary", code, about)
    handle = ctypes.c_void_p(device.handle)
    if code := api.build_program(program, 1, ctypes.byref(handle), b"", None, None):
        log = api.build_log(program, device.handle)
        api.release_program(program)
        raise build_error("clBuildProgram", code, about, log)
    return program


class OpenCLModule(LoadedModule):
    """A built program; kernels are made at first use and live as long as the module."""

    def __init__(
        self, program: int, device: Device, image: Image, roads: Roads, forget: Callable[[OpenCLModule], None]
    ) -> None:
        """Owns `program`; `forget` is called when it is closed."""
        self._program = program
        self._forget = forget
        self._device = device
        self._roads = roads
        self._signatures = {signature.name: signature for signature in image.kernels}
        self._kernels: dict[str, OpenCLKernel] = {}

    def kernel(self, name: str) -> OpenCLKernel:
        if name not in self._kernels:
            signature = self._signatures[name]
            if not self._program:
                raise BackendError("the module is closed")
            self._kernels[name] = OpenCLKernel(self._program, self._device, signature, self._roads)
        return self._kernels[name]

    def close(self) -> None:
        for kernel in self._kernels.values():
            kernel.close()
        self._kernels.clear()
        program, self._program = self._program, 0
        if program:
            self._forget(self)
            check(api.release_program(program), "clReleaseProgram")


class OpenCLKernel(Kernel):
    """A kernel and the arguments that were last set on it: setting one costs more than comparing it."""

    def __init__(self, program: int, device: Device, signature: KernelSignature, roads: Roads) -> None:
        self.signature = signature
        # (index, start, stop, whether a pointer) of what comes from the packed bytes.
        self._plan: list[tuple[int, int, int, bool]] = []
        self._shared: list[int] = []
        self._lay_out(signature)
        self._arguments: bytes | None = None
        self._pieces: list[bytes | None] = [None] * len(signature.arguments)
        self._shared_bytes = -1

        self._dims: tuple[Dim3, Dim3] | None = None
        self.global_size = (ctypes.c_size_t * 3)()
        self.local_size = (ctypes.c_size_t * 3)()
        self.handle, code = api.create_kernel(program, signature.name)
        if code:
            raise build_error("clCreateKernel", code, f"kernel {signature.name}")
        self.max_threads_per_block = api.kernel_work_group_number(
            self.handle, device.handle, api.KERNEL_WORK_GROUP_SIZE
        )
        self.private_bytes = api.kernel_work_group_number(self.handle, device.handle, api.KERNEL_PRIVATE_MEM_SIZE)
        self._set_pointer = roads.set_pointer
        self._allocator = roads.allocator
        self._generation = -1
        try:
            self._check_arguments()
            self._allow_indirect_access(roads.system)
        except BackendError:
            self.close()
            raise

    def bind(self, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        """Make the kernel ready to be enqueued with these."""
        if self._allocator.generation != self._generation:
            self._forget_addresses()
        if arguments != self._arguments:
            self._set_arguments(arguments)
        if shared_bytes != self._shared_bytes and self._shared:
            self._set_shared(shared_bytes)
        if self._dims != (grid, block):
            self.global_size[:] = [count * size for count, size in zip(grid, block, strict=True)]
            self.local_size[:] = list(block)
            self._dims = (grid, block)

    def close(self) -> None:
        """Release the kernel; it cannot be launched any more."""
        handle, self.handle = self.handle, 0
        if handle:
            self._arguments = None
            check(api.release_kernel(handle), "clReleaseKernel")

    def _lay_out(self, signature: KernelSignature) -> None:
        for index, argument in enumerate(signature.arguments):
            if argument.kind is ArgumentKind.SHARED:
                self._shared.append(index)
            else:
                pointer = argument.kind is ArgumentKind.POINTER
                size = 8 if pointer else argument.size
                if argument.offset + size > signature.packed_size:
                    raise BuildError(f"kernel {signature.name}: argument {index} lies outside the packed bytes")
                self._plan.append((index, argument.offset, argument.offset + size, pointer))

    def _check_arguments(self) -> None:
        takes, has = api.kernel_number(self.handle, api.KERNEL_NUM_ARGS), len(self.signature.arguments)
        if takes != has:
            raise BuildError(f"kernel {self.signature.name} takes {takes} arguments, its signature has {has}")

    def _set_arguments(self, arguments: bytes) -> None:
        if len(arguments) != self.signature.packed_size:
            name, size = self.signature.name, self.signature.packed_size
            raise LaunchError(f"kernel {name} takes {size} bytes of arguments, not {len(arguments)}")
        self._check_open()
        pieces = self._pieces
        self._arguments = None
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
        if not isinstance(self._allocator, SvmAllocator):
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

    def _forget_addresses(self) -> None:
        """Memory came or went: an argument stands for what was at its address when set, even if that is freed."""
        self._check_open()
        generation = self._allocator.generation
        self._arguments = None
        for index, _, _, pointer in self._plan:
            if pointer:
                self._pieces[index] = None
        if isinstance(self._allocator, SvmAllocator):
            self._list_blocks(self._allocator.blocks)
        self._generation = generation

    def _list_blocks(self, blocks: list[int]) -> None:
        if blocks:
            array = (ctypes.c_void_p * len(blocks))(*blocks)
            size = ctypes.sizeof(array)
            if code := api.set_kernel_exec_info(self.handle, api.KERNEL_EXEC_INFO_SVM_PTRS, size, array):
                raise error("clSetKernelExecInfo", code, f"kernel {self.signature.name}, {len(blocks)} SVM blocks")
