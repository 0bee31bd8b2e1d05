"""Allocations: who owns which addresses, and where they come from."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError
from zluda.core.errors import CudaError, from_backend, invalid_value

if TYPE_CHECKING:
    from zluda.core.context import Context
    from zluda.core.device import CudaDevice
    from zluda.core.managed import Advice
    from zluda.core.pool import MemoryPool

PAGE = 4096
"""Of the host, bytes: managed memory is advised about by pages."""
ALIGNMENT = 512
"""Of every allocation, bytes. CUDA promises 256; programs have come to rely on what its driver does."""
PITCH = 512
"""Pitches are multiples of this, bytes."""
MAX_PITCH = 2**31 - 1
"""CU_DEVICE_ATTRIBUTE_MAX_PITCH."""


class MemoryKind(Enum):
    """What an allocation is for."""

    DEVICE = "device"
    """cuMemAlloc."""
    HOST = "host"
    """cuMemHostAlloc: pinned, in the window."""
    MODULE = "module"
    """A module's globals and const banks."""
    VIRTUAL = "virtual"
    """cuMemMap: memory behind reserved addresses of the window."""
    MANAGED = "managed"
    """cuMemAllocManaged: in the window, where host and device both reach it."""


_ids = count(1)


@dataclass(slots=True, eq=False)
class Allocation:
    """Addresses `address` to `address + size - 1` and the context they belong to."""

    address: int
    size: int
    kind: MemoryKind
    context: Context
    flags: int = 0
    """CU_MEMHOSTALLOC_* of host memory."""
    id: int = 0
    """CU_POINTER_ATTRIBUTE_BUFFER_ID: never used twice."""
    pool: MemoryPool | None = None
    """What it was allocated from; its context is then the device's primary one, active or not."""
    advice: Advice | None = None
    """On managed memory, once there is some."""

    def __post_init__(self) -> None:
        self.id = next(_ids)

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.size


class AddressMap:
    """All allocations of a driver, found by any address inside them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bases: list[int] = []
        self._allocations: dict[int, Allocation] = {}

    def add(self, allocation: Allocation) -> None:
        """Enter an allocation. Raises CUDA_ERROR_UNKNOWN where a backend handed out addresses that are taken."""
        base = allocation.address
        with self._lock:
            at = bisect_right(self._bases, base)
            before = self._allocations[self._bases[at - 1]] if at else None
            following = self._bases[at] if at < len(self._bases) else None
            if (before and before.end > base) or (following is not None and allocation.end > following):
                raise CudaError("CUDA_ERROR_UNKNOWN", f"the device memory at {base:#x} overlaps another allocation")
            self._bases.insert(at, base)
            self._allocations[base] = allocation

    def remove(self, allocation: Allocation) -> None:
        """Forget an allocation; its addresses are invalid from here on."""
        with self._lock:
            del self._allocations[allocation.address]
            del self._bases[bisect_right(self._bases, allocation.address) - 1]

    def find(self, address: int) -> Allocation | None:
        """The allocation that contains `address`, or None."""
        with self._lock:
            at = bisect_right(self._bases, address)
            if not at:
                return None
            allocation = self._allocations[self._bases[at - 1]]
        return allocation if address < allocation.end else None

    def at(self, address: int) -> Allocation | None:
        """The allocation that starts at `address`, or None."""
        return self._allocations.get(address)

    def require(self, address: int, size: int) -> Allocation:
        """The allocation that contains `size` bytes from `address`; CUDA_ERROR_INVALID_VALUE if none does."""
        allocation = self.find(address)
        if allocation is None:
            raise invalid_value(f"{address:#x} is not in any allocation")
        if address + size > allocation.end and not self._goes_on(allocation, address + size):
            raise invalid_value(
                f"{size} bytes from {address:#x} reach past the end of the allocation "
                f"of {allocation.size} bytes at {allocation.address:#x}"
            )
        return allocation

    def _goes_on(self, allocation: Allocation, end: int) -> bool:
        """Whether mappings of virtual memory follow one another up to `end`."""
        following: Allocation | None = allocation
        while following is not None and following.kind is MemoryKind.VIRTUAL:
            if end <= following.end:
                return True
            following = self.at(following.end)
        return False


@cache
def _physical_memory() -> int:
    """Bytes of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class DeviceMemory:
    """Where a device's memory comes from: the window if its kernels reach it there, else the backend.

    The caller holds the device's lock, or owns the device alone.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._window = device.driver.window
        self._in_use = 0
        self._host_in_use = 0

    def allocate(self, size: int, alignment: int = ALIGNMENT) -> int:
        """`size` bytes (> 0) of device memory, or of managed memory where there is some. CUDA_ERROR_OUT_OF_MEMORY."""
        device = self._device
        if device.host_reaching:
            if self._in_use + size > device.total_memory:
                free = device.total_memory - self._in_use
                raise CudaError(
                    "CUDA_ERROR_OUT_OF_MEMORY", f"{size} bytes asked for, {free} bytes of {device.name} free"
                )
            address = self._from_window(size, alignment)
        else:
            try:
                address = device.open().allocate(size, alignment)
            except BackendError as error:
                raise from_backend(error) from error
        self._in_use += size
        return address

    def allocate_kind(self, size: int, kind: MemoryKind, alignment: int = ALIGNMENT) -> int:
        """Memory for an allocation of some kind."""
        if kind is MemoryKind.HOST:
            return self.allocate_host(size, alignment)
        return self.allocate(size, max(alignment, PAGE) if kind is MemoryKind.MANAGED else alignment)

    def allocate_host(self, size: int, alignment: int = ALIGNMENT) -> int:
        """`size` bytes (> 0) of pinned host memory, in the window. CUDA_ERROR_OUT_OF_MEMORY.

        The window is larger than the machine's memory, and pinned memory is memory that is there.
        """
        if self._host_in_use + size > _physical_memory():
            free = max(_physical_memory() - self._host_in_use, 0)
            raise CudaError(
                "CUDA_ERROR_OUT_OF_MEMORY", f"{size} bytes of host memory asked for, {free} bytes may still be pinned"
            )
        address = self._from_window(size, alignment)
        self._host_in_use += size
        return address

    def free(self, allocation: Allocation) -> None:
        """Give back what either of the two returned."""
        if allocation.kind is MemoryKind.HOST:
            self._host_in_use -= allocation.size
            self._window.free(allocation.address)
            return
        self._in_use -= allocation.size
        if self._device.host_reaching:
            self._window.free(allocation.address)
        else:
            try:
                self._device.open().free(allocation.address)
            except BackendError as error:
                raise from_backend(error) from error

    def info(self) -> tuple[int, int]:
        """Free and total bytes."""
        total = self._device.total_memory
        free = total - self._in_use
        if not self._device.host_reaching:
            free = min(free, self._device.open().memory()[0])
        return max(free, 0), total

    def _from_window(self, size: int, alignment: int = ALIGNMENT) -> int:
        try:
            return self._window.allocate(size, alignment)
        except MemoryError as error:
            raise CudaError(
                "CUDA_ERROR_OUT_OF_MEMORY", f"no {size} bytes left in the memory window: {error}"
            ) from error
