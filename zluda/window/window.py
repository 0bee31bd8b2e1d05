"""The window itself: a large address range over a sparse memory file, mapped alike in every process that shares it."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator

from zluda.window import _libc
from zluda.window.allocator import RangeAllocator

DEFAULT_SIZE = 1 << 40
DEFAULT_BASES = tuple(n << 44 for n in (6, 5, 4, 3, 2))
"""0x600000000000 first: between the heap of a position-independent program and the libraries, with and without
address randomisation."""
SMALLEST = 1 << 30
PUNCH = 16 << 20
"""A free piece of this size gives its pages back to the system."""


class WindowError(Exception):
    """No place for the window; the message says what was tried."""


class Window:
    """[base, base + size) of this process's addresses over the memory file `descriptor`. Thread-safe."""

    def __init__(self, descriptor: int, base: int, size: int) -> None:
        """Takes over a mapping that exists and the descriptor."""
        self.base = base
        self.size = size
        self.descriptor = descriptor
        self._lock = threading.Lock()
        # The first page stays unused, so that base - 1 and a zero offset are never inside an allocation.
        self._allocator = RangeAllocator(base + _libc.PAGE, size - _libc.PAGE)
        self._open = True

    def allocate(self, size: int, alignment: int = 256) -> int:
        """`size` bytes (> 0); their address. They hold whatever was there. Raises MemoryError when there is no room."""
        with self._lock:
            return self._allocator.allocate(size, max(alignment, _libc.PAGE if size >= PUNCH else 256))

    def free(self, address: int) -> None:
        """Give back what `allocate` returned. Raises ValueError for any other address."""
        with self._lock:
            try:
                size = self._allocator.size_of(address)
                start, whole = self._allocator.free(address)
            except KeyError:
                raise ValueError(f"0x{address:x} is not an allocation of the window") from None
            if size >= PUNCH or (whole >= PUNCH and whole - size < PUNCH):
                # Only what may hold pages: the piece itself, or all of a hole that has just grown large.
                low, high = (address, address + size) if size >= PUNCH else (start, start + whole)
                page = _libc.PAGE
                low, high = -(-low // page) * page, high // page * page
                if high > low:
                    _libc.punch(self.descriptor, low - self.base, high - low)

    def contains(self, address: int, size: int = 1) -> bool:
        """Whether a range lies in the window."""
        return self.base <= address and address + size <= self.base + self.size

    def show(self, address: int, size: int, source: int, access: int) -> None:
        """Let whole pages of an allocation show the bytes that are at `source`, or its own again.

        `access` is 0, 1 to read, 3 to read and write (PROT_*). Raises OSError.
        """
        flags = _libc.MAP_SHARED | _libc.MAP_FIXED | _libc.MAP_NORESERVE
        _libc.map_at(address, size, access, flags, self.descriptor, source - self.base)
        _libc.advise(address, size, _libc.MADV_DONTDUMP)

    def view(self, address: int, size: int) -> memoryview:
        """The bytes at an address of the window, writable. Raises ValueError outside of it."""
        if not self._open or not self.contains(address, size):
            raise ValueError(f"0x{address:x}+{size} is outside the window")
        return _libc.memory_view(address, size)

    def close(self) -> None:
        """Unmap the window. Views and device work that still refer to it are the caller's to end first."""
        if self._open:
            self._open = False
            _libc.unmap(self.base, self.size)
            os.close(self.descriptor)


def largest_size(wanted: int) -> int:
    """`wanted`, or as much of it as RLIMIT_AS leaves room for beside the rest of the process (a quarter of it)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        wanted = min(wanted, 1 << (max(limit // 4, 1).bit_length() - 1))
    return wanted


def candidates(size: int) -> Iterator[int]:
    """Bases to try, in order."""
    yield from DEFAULT_BASES
    for base in DEFAULT_BASES:
        for step in range(1, 16):
            yield base + step * max(size, 1 << 40)


def reserve(base: int, size: int) -> bool:
    """Take an address range, without access and without memory; False if something is there."""
    try:
        _libc.map_at(
            base,
            size,
            _libc.PROT_NONE,
            _libc.MAP_PRIVATE | _libc.MAP_ANONYMOUS | _libc.MAP_NORESERVE | _libc.MAP_FIXED_NOREPLACE,
        )
    except OSError:
        return False
    return True


def map_file(descriptor: int, base: int, size: int) -> None:
    """Lay the memory file over a reserved range."""
    _libc.map_at(
        base,
        size,
        _libc.PROT_READ_WRITE,
        _libc.MAP_SHARED | _libc.MAP_FIXED | _libc.MAP_NORESERVE,
        descriptor,
    )
    _libc.advise(base, size, _libc.MADV_DONTDUMP)


def attach(descriptor: int, base: int, size: int) -> Window | int:
    """Map a client's window at the base it proposes; where that is taken here, the base this process proposes instead.

    Raises WindowError when nothing is free.
    """
    if reserve(base, size):
        map_file(descriptor, base, size)
        return Window(descriptor, base, size)
    for other in candidates(size):
        if reserve(other, size):
            _libc.unmap(other, size)
            return other
    raise WindowError(f"no free address range of {size >> 30} GiB in the driver process")


def open_window(size: int = DEFAULT_SIZE) -> Window:
    """A window for this process alone (the Python API). `size` is what is wanted; address limits may make it smaller.

    Raises WindowError.
    """
    size = largest_size(size)
    while size >= SMALLEST:
        for base in candidates(size):
            if reserve(base, size):
                descriptor = os.memfd_create("zluda-window", os.MFD_CLOEXEC)
                os.ftruncate(descriptor, size)
                map_file(descriptor, base, size)
                return Window(descriptor, base, size)
        size >>= 1
    raise WindowError(f"no free address range of {SMALLEST >> 30} GiB; is RLIMIT_AS (ulimit -v) set low?")
