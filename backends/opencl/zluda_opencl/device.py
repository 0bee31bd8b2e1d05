"""An opened OpenCL device: context, memory, queues and modules."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pyopencl as cl

from zluda.backend.info import DeviceInfo, Image
from zluda.backend.seam import BackendError, Device, NotSupported
from zluda_opencl import api
from zluda_opencl.describe import has_system_svm, has_usm
from zluda_opencl.errors import error
from zluda_opencl.memory import Allocator, SvmAllocator, UsmAllocator, svm_allocator
from zluda_opencl.module import OpenCLModule, SetPointer, build
from zluda_opencl.queue import OpenCLQueue

_QUEUE_PRIORITY_KHR = 0x1096
_PRIORITY_HIGH, _PRIORITY_MEDIUM, _PRIORITY_LOW = 1, 2, 4


def create_context(device: Any) -> Any:
    """A pyopencl context on one device."""
    try:
        return cl.Context([device])
    except cl.Error as failure:
        raise error(str(failure.routine), failure.code) from failure


class OpenCLDevice(Device):
    """A context on one device. Memory is USM if the device has it, else SVM."""

    def __init__(self, info: DeviceInfo, device: Any, *, prefer_svm: bool = False) -> None:
        """`prefer_svm` leaves USM aside, so that the other road can be tested where both exist."""
        self.info = info
        self._device = device
        self._context: Any = create_context(device)
        self.context_handle: int = self._context.int_ptr
        self.system = has_system_svm(device)
        self.usm = api.Usm(device.platform.int_ptr) if has_usm(device) and not prefer_svm else None
        self._svm: SvmAllocator | None = None
        self._allocator: Allocator
        self._set_pointer: SetPointer
        if self.usm is not None:
            self._allocator = UsmAllocator(self.usm, self.context_handle, device.int_ptr)
            self._set_pointer = self.usm.set_kernel_arg
        else:
            self._allocator = self._svm = svm_allocator(self.context_handle)
            self._set_pointer = api.set_kernel_arg_svm
        self._queues: weakref.WeakSet[OpenCLQueue] = weakref.WeakSet()
        self._modules: weakref.WeakSet[OpenCLModule] = weakref.WeakSet()

    def allocate(self, size: int, alignment: int = 256) -> int:
        self._open()
        return self._allocator.allocate(size, alignment)

    def free(self, address: int) -> None:
        self._open()
        self._allocator.free(address)

    def memory(self) -> tuple[int, int]:
        total = self.info.total_memory
        free = total - self._allocator.used
        if self.system:
            # Memory is shared with everything else on the machine.
            free = min(free, _available_host_memory())
        return max(0, free), total

    def create_queue(self, priority: int = 0) -> OpenCLQueue:
        properties: list[int] = [int(cl.queue_properties.PROPERTIES), int(cl.command_queue_properties.PROFILING_ENABLE)]
        if priority and "cl_khr_priority_hints" in self._device.extensions.split():
            properties += [_QUEUE_PRIORITY_KHR, _PRIORITY_HIGH if priority < 0 else _PRIORITY_LOW]
        try:
            queue = cl.CommandQueue(self._open(), self._device, [*properties, 0])
        except cl.Error as failure:
            raise error(str(failure.routine), failure.code) from failure
        made = OpenCLQueue(self, queue, queue.int_ptr)
        self._queues.add(made)
        return made

    def load(self, image: Image) -> OpenCLModule:
        program = build(self._open(), self._device, image)
        module = OpenCLModule(program, self._device, image, self._set_pointer, self.system, self._svm)
        self._modules.add(module)
        return module

    def import_host(self, address: int, size: int) -> None:  # noqa: ARG002 - nothing to do
        if not self.system:
            raise NotSupported(f"{self.info.name} cannot import host memory")

    def release_host(self, address: int) -> None:  # noqa: ARG002 - nothing to do
        if not self.system:
            raise NotSupported(f"{self.info.name} cannot import host memory")

    def close(self) -> None:
        if self._context is None:
            return
        for queue in list(self._queues):
            queue.close()
        for module in list(self._modules):
            module.close()
        self._allocator.close()
        self._context = None

    def forget(self, queue: OpenCLQueue) -> None:
        """A queue was closed."""
        self._queues.discard(queue)

    def _open(self) -> Any:
        if self._context is None:
            raise BackendError(f"{self.info.name} is closed")
        return self._context


def _available_host_memory() -> int:
    """MemAvailable of /proc/meminfo, in bytes."""
    with Path("/proc/meminfo").open(encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    raise BackendError("/proc/meminfo has no MemAvailable")
