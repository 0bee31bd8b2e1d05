"""Virtual memory management: reserved addresses, and memory that is put behind them (CUDA driver API, of that name).

Physical memory is a piece of the window's file. Mapping it shows that piece at other addresses of the window, in the
driver process here and, by the client's own doing, in the program. So all of it needs devices that reach the window.
Which handles, reservations and mappings a program has, and how often it holds them, the caller keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zluda.core.errors import CudaError, invalid_value
from zluda.core.memory import Allocation, MemoryKind
from zluda.core.wait import Wait

if TYPE_CHECKING:
    from zluda.core.device import CudaDevice
    from zluda.core.driver import Driver

GRANULARITY = 2 << 20
"""cuMemGetAllocationGranularity, bytes: what NVIDIA's devices have, as programs have come to expect."""
NONE, READ, READ_WRITE = 0, 1, 3
"""CU_MEM_ACCESS_FLAGS_PROT_*."""


class PhysicalMemory:
    """A CUmemGenericAllocationHandle: memory without an address of its own, of a device or of the host."""

    def __init__(self, device: CudaDevice, size: int, kind: MemoryKind = MemoryKind.DEVICE) -> None:
        """cuMemCreate. CUDA_ERROR_NOT_SUPPORTED where the device does not reach the window; OUT_OF_MEMORY."""
        device.require_managed()
        if size <= 0 or size % GRANULARITY:
            raise invalid_value(f"{size} bytes are no multiple of the granularity")
        self.device = device
        try:
            address = self._take(size, kind)
        except CudaError as error:
            if error.name != "CUDA_ERROR_OUT_OF_MEMORY":
                raise
            device.pools.await_frees()
            address = self._take(size, kind)
        self._backing: Allocation | None = Allocation(address, size, kind, device.primary)

    def _take(self, size: int, kind: MemoryKind) -> int:
        with self.device.lock:
            return self.device.memory.allocate_kind(size, kind, GRANULARITY)

    @property
    def address(self) -> int:
        """Where its bytes are in the window's file, as an address."""
        assert self._backing is not None, "destroyed"
        return self._backing.address

    def destroy(self) -> None:
        """Give the memory back; nothing is mapped to it any more. Twice is harmless."""
        backing, self._backing = self._backing, None
        if backing is not None:
            with self.device.lock:
                self.device.memory.free(backing)


class VirtualMemory:
    """Reserved addresses of a driver's window, and what they show."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._sources: dict[int, PhysicalMemory] = {}

    def reserve(self, size: int, alignment: int = 0) -> int:
        """cuMemAddressReserve: addresses that show nothing. CUDA_ERROR_OUT_OF_MEMORY."""
        window = self._driver.window
        try:
            address = window.allocate(size, max(alignment, GRANULARITY))
        except MemoryError as error:
            raise CudaError("CUDA_ERROR_OUT_OF_MEMORY", f"no {size} addresses left in the window") from error
        window.show(address, size, address, NONE)
        return address

    def free(self, address: int, size: int) -> None:
        """cuMemAddressFree: the addresses become ordinary ones of the window. Nothing is mapped there."""
        window = self._driver.window
        window.show(address, size, address, READ_WRITE)
        window.free(address)

    def map(self, address: int, size: int, physical: PhysicalMemory) -> None:
        """cuMemMap, of the first `size` bytes; without access yet."""
        self._driver.window.show(address, size, physical.address, NONE)
        self._sources[address] = physical

    def unmap_wait(self, address: int, size: int) -> Wait:
        """cuMemUnmap of one whole mapping, after all work in flight on any device."""
        physical = self._sources[address]

        def hide() -> None:
            self._forget(address)
            del self._sources[address]
            self._driver.window.show(address, size, address, NONE)

        return self._quiet(physical).then(hide)

    def set_access_wait(self, address: int, size: int, access: int) -> Wait:
        """cuMemSetAccess of one whole mapping, after all work in flight on any device."""
        physical = self._sources[address]

        def change() -> None:
            self._forget(address)
            self._driver.window.show(address, size, physical.address, access)
            if access != NONE:
                primary = physical.device.primary
                self._driver.memory.add(Allocation(address, size, MemoryKind.VIRTUAL, primary))

        return self._quiet(physical).then(change)

    def _forget(self, address: int) -> None:
        allocation = self._driver.memory.at(address)
        if allocation is not None:
            self._driver.memory.remove(allocation)

    def _quiet(self, physical: PhysicalMemory) -> Wait:
        contexts = [context for device in self._driver.devices for context in list(device.contexts)]
        points = [point for context in contexts for point in context._points()]
        return Wait(physical.device.primary, points, quiet=True)
