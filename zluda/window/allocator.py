"""Handing out pieces of an address range: size classes by powers of two, neighbours joined when freed."""

from __future__ import annotations


class RangeAllocator:
    """Allocates ranges of [base, base + size). Every piece begins and ends on a multiple of `granule` (a power of two).

    Not thread-safe; the owner locks.
    """

    def __init__(self, base: int, size: int, granule: int = 256) -> None:
        if granule & (granule - 1) or base % granule:
            raise ValueError("the granule is a power of two that divides the base")
        self.granule = granule
        self._used: dict[int, int] = {}
        self._free: dict[int, int] = {}
        self._free_end: dict[int, int] = {}
        # One bin per power of two, holding the starts of free pieces with 2^k <= size < 2^(k+1), oldest first.
        self._bins: list[dict[int, None]] = [{} for _ in range(65)]
        self._nonempty = 0
        self._insert(base, size // granule * granule)

    def allocate(self, size: int, alignment: int) -> int:
        """The start of `size` bytes (> 0) at a multiple of `alignment` (a power of two). Raises MemoryError."""
        if size <= 0 or alignment <= 0 or alignment & (alignment - 1):
            raise ValueError(f"cannot allocate {size} bytes aligned to {alignment}")
        granule = self.granule
        size = -(-size // granule) * granule
        found = self._find(size, max(alignment, granule))
        if found is None:
            raise MemoryError(f"no {size} bytes in one piece are left")
        start, at = found
        whole = self._remove(start)
        if at > start:
            self._insert(start, at - start)
        if at + size < start + whole:
            self._insert(at + size, start + whole - at - size)
        self._used[at] = size
        return at

    def free(self, address: int) -> tuple[int, int]:
        """Take a piece back; start and size of the free piece it is now part of. Raises KeyError if not allocated."""
        size = self._used.pop(address)
        start, end = address, address + size
        if end in self._free:
            end += self._remove(end)
        if start in self._free_end:
            start = self._free_end[start]
            self._remove(start)
        self._insert(start, end - start)
        return start, end - start

    def size_of(self, address: int) -> int:
        """Bytes of an allocated piece, rounded up. Raises KeyError."""
        return self._used[address]

    @property
    def used(self) -> int:
        """Bytes handed out."""
        return sum(self._used.values())

    def _find(self, size: int, alignment: int) -> tuple[int, int] | None:
        """A free piece and the place in it: of the request's own class the first that fits, else any of the next."""
        nonempty = self._nonempty >> (size.bit_length() - 1) << (size.bit_length() - 1)
        while nonempty:
            lowest = nonempty & -nonempty
            for start in self._bins[lowest.bit_length() - 1]:
                at = -(-start // alignment) * alignment
                if at + size <= start + self._free[start]:
                    return start, at
            nonempty ^= lowest
        return None

    def _insert(self, start: int, size: int) -> None:
        self._free[start] = size
        self._free_end[start + size] = start
        index = size.bit_length() - 1
        self._bins[index][start] = None
        self._nonempty |= 1 << index

    def _remove(self, start: int) -> int:
        size = self._free.pop(start)
        del self._free_end[start + size]
        index = size.bit_length() - 1
        del self._bins[index][start]
        if not self._bins[index]:
            self._nonempty &= ~(1 << index)
        return size
