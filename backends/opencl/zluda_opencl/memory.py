"""Device memory: USM device allocations where the device has them, else suballocation from large SVM blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Callable
from ctypes import c_int
from dataclasses import dataclass, field

from zluda.backend.seam import BackendError, OutOfMemory
from zluda_opencl import api
from zluda_opencl.errors import code_name, error

BLOCK = 64 << 20
"""Smallest SVM block in bytes. Every launch lists all blocks, so they are large and few."""

_INVALID_BUFFER_SIZE = -61
_OUT_OF_RESOURCES = -5


class Allocator(ABC):
    """Gives out device memory and knows how much it has given."""

    used: int = 0
    generation: int = 0
    """Changes when the driver's objects behind addresses do: what it was told of an address before holds no longer."""

    @abstractmethod
    def allocate(self, size: int, alignment: int) -> int: ...

    @abstractmethod
    def free(self, address: int) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Give everything back to the driver."""


class UsmAllocator(Allocator):
    """One clDeviceMemAllocINTEL per allocation."""

    def __init__(self, usm: api.Usm, context: int, device: int) -> None:
        self._usm, self._context, self._device = usm, context, device
        self._sizes: dict[int, int] = {}

    def allocate(self, size: int, alignment: int) -> int:
        code = c_int()
        address: int | None = self._usm.device_allocate(self._context, self._device, None, size, alignment, code)
        if not address:
            raise _no_memory("clDeviceMemAllocINTEL", code.value, size)
        self.generation += 1
        self._sizes[address] = size
        self.used += size
        return address

    def free(self, address: int) -> None:
        if address not in self._sizes:
            raise BackendError(f"{address:#x} was not allocated here, or was already freed")
        if code := self._usm.free(self._context, address):
            raise error("clMemFreeINTEL", code)
        self.generation += 1
        self.used -= self._sizes.pop(address)

    def close(self) -> None:
        for address in list(self._sizes):
            self.free(address)


@dataclass
class _Block:
    base: int
    size: int
    free: list[tuple[int, int]] = field(default_factory=list)
    """Free ranges as (start, end), ascending, none touching another."""

    def take(self, size: int, alignment: int) -> int | None:
        for number, (start, end) in enumerate(self.free):
            address = -(-start // alignment) * alignment
            if address + size <= end:
                rest = [(start, address), (address + size, end)]
                self.free[number : number + 1] = [(a, b) for a, b in rest if a < b]
                return address
        return None

    def give(self, start: int, size: int) -> None:
        end = start + size
        insort(self.free, (start, end))
        merged: list[tuple[int, int]] = []
        for a, b in self.free:
            if merged and merged[-1][1] == a:
                merged[-1] = (merged[-1][0], b)
            else:
                merged.append((a, b))
        self.free = merged


class SvmAllocator(Allocator):
    """First fit in SVM blocks, which must be listed at every launch."""

    def __init__(self, reserve: Callable[[int], int], release: Callable[[int], None], block: int = BLOCK) -> None:
        """`reserve(size)` returns a fresh block's address or raises OutOfMemory; `release` gives it back."""
        self._reserve, self._release, self._block_size = reserve, release, block
        self._blocks: list[_Block] = []
        self._sizes: dict[int, int] = {}

    @property
    def blocks(self) -> list[int]:
        """Base addresses, ascending."""
        return [block.base for block in self._blocks]

    def allocate(self, size: int, alignment: int) -> int:
        for block in self._blocks:
            address = block.take(size, alignment)
            if address is not None:
                break
        else:
            block = self._grow(size + alignment)
            address = block.take(size, alignment)
            assert address is not None
        self._sizes[address] = size
        self.used += size
        return address

    def free(self, address: int) -> None:
        if address not in self._sizes:
            raise BackendError(f"{address:#x} was not allocated here, or was already freed")
        size = self._sizes.pop(address)
        self.used -= size
        place = bisect_right([block.base for block in self._blocks], address) - 1
        block = self._blocks[place]
        block.give(address, size)
        # The last empty block stays: a program that allocates and frees in a loop would reserve one each time.
        if block.free == [(block.base, block.base + block.size)] and len(self._blocks) > 1:
            del self._blocks[place]
            self.generation += 1
            self._release(block.base)

    def close(self) -> None:
        for block in self._blocks:
            self._release(block.base)
        self._blocks.clear()
        self._sizes.clear()
        self.used = 0
        self.generation += 1

    def _grow(self, needed: int) -> _Block:
        size = max(self._block_size, needed)
        try:
            base = self._reserve(size)
        except OutOfMemory:
            if size == needed:
                raise
            size = needed
            base = self._reserve(size)
        block = _Block(base, size, [(base, base + size)])
        insort(self._blocks, block, key=lambda b: b.base)
        self.generation += 1
        return block


def svm_allocator(context: int) -> SvmAllocator:
    """An allocator over clSVMAlloc."""

    def reserve(size: int) -> int:
        address: int | None = api.svm_allocate(context, 1, size, 0)  # CL_MEM_READ_WRITE
        if not address:
            raise OutOfMemory(f"clSVMAlloc: no block of {size} bytes", call="clSVMAlloc")
        return address

    return SvmAllocator(reserve, lambda address: api.svm_free(context, address))


def _no_memory(call: str, code: int, size: int) -> BackendError:
    if code in (_INVALID_BUFFER_SIZE, _OUT_OF_RESOURCES):
        return OutOfMemory(f"{call}: {code_name(code)}: {size} bytes", call=call, code=code)
    return error(call, code, f"{size} bytes")
