"""An opened OpenCL device: context, memory, queues and modules."""

from __future__ import annotations

from pathlib import Path

from zluda.backend.info import DeviceInfo, Image
from zluda.backend.seam import BackendError, Device, NotSupported
from zluda_opencl import api, icd, query
from zluda_opencl.describe import has_system_svm, has_usm
from zluda_opencl.errors import check
from zluda_opencl.memory import Allocator, UsmAllocator, svm_allocator
from zluda_opencl.module import OpenCLModule, Roads, load_program
from zluda_opencl.queue import OpenCLQueue

_PRIORITY_HIGH, _PRIORITY_LOW = 1, 4  # cl_khr_priority_hints


class OpenCLDevice(Device):
    """A context on one device. Memory is USM if the device has it, else SVM."""

    def __init__(self, info: DeviceInfo, device: query.Device, *, prefer_svm: bool = False) -> None:
        """`prefer_svm` leaves USM aside, so that the other road can be tested where both exist."""
        self.info = info
        self.usm = api.Usm(device.platform.handle) if has_usm(device) and not prefer_svm else None
        self._device = device
        with icd.intel_set():
            self._context = api.create_context(device.handle)
        self._allocator: Allocator
        if self.usm is not None:
            self._allocator = UsmAllocator(self.usm, self._context, device.handle)
            set_pointer = self.usm.set_kernel_arg
        else:
            self._allocator = svm_allocator(self._context)
            set_pointer = api.set_kernel_arg_svm
        self._roads = Roads(set_pointer, has_system_svm(device), self._allocator)
        self._queues: set[OpenCLQueue] = set()
        self._modules: set[OpenCLModule] = set()

    @property
    def context(self) -> int:
        """The context's handle. Raises BackendError if the device is closed."""
        if not self._context:
            raise BackendError(f"{self.info.name} is closed")
        return self._context

    def allocate(self, size: int, alignment: int = 256) -> int:
        return self._open().allocate(size, alignment)

    def free(self, address: int) -> None:
        self._open().free(address)

    def memory(self) -> tuple[int, int]:
        total = self.info.total_memory
        free = total - self._allocator.used
        if self._roads.system:
            # Memory is shared with everything else on the machine.
            free = min(free, _available_host_memory())
        return max(0, free), total

    def create_queue(self, priority: int = 0) -> OpenCLQueue:
        properties = [api.QUEUE_PROPERTIES, api.QUEUE_PROFILING_ENABLE]
        if priority and "cl_khr_priority_hints" in self._device.words(query.Ask.EXTENSIONS):
            properties += [api.QUEUE_PRIORITY_KHR, _PRIORITY_HIGH if priority < 0 else _PRIORITY_LOW]
        queue = OpenCLQueue(self, api.create_queue(self.context, self._device.handle, properties), self._queues.discard)
        self._queues.add(queue)
        return queue

    def load(self, image: Image) -> OpenCLModule:
        program = load_program(self.context, self._device, image)
        module = OpenCLModule(program, self._device, image, self._roads, self._modules.discard)
        self._modules.add(module)
        return module

    def import_host(self, address: int, size: int) -> None:  # noqa: ARG002 - nothing to do
        if not self._roads.system:
            raise NotSupported(f"{self.info.name} cannot import host memory")

    def release_host(self, address: int) -> None:  # noqa: ARG002 - nothing to do
        if not self._roads.system:
            raise NotSupported(f"{self.info.name} cannot import host memory")

    def close(self) -> None:
        if not self._context:
            return
        for queue in list(self._queues):
            queue.close()
        for module in list(self._modules):
            module.close()
        self._allocator.close()
        context, self._context = self._context, 0
        check(api.release_context(context), "clReleaseContext")

    def _open(self) -> Allocator:
        if not self._context:
            raise BackendError(f"{self.info.name} is closed")
        return self._allocator


def _available_host_memory() -> int:
    """MemAvailable of /proc/meminfo, in bytes."""
    with Path("/proc/meminfo").open(encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    raise BackendError("/proc/meminfo has no MemAvailable")
