"""The few system calls that Python's mmap and os lack: mappings at a chosen address, hole punching."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os

PROT_NONE = 0
PROT_READ_WRITE = 3
MAP_SHARED = 0x01
MAP_PRIVATE = 0x02
MAP_FIXED = 0x10
MAP_ANONYMOUS = 0x20
MAP_NORESERVE = 0x4000
MAP_FIXED_NOREPLACE = 0x100000
MADV_DONTDUMP = 16
FALLOC_FL_KEEP_SIZE = 1
FALLOC_FL_PUNCH_HOLE = 2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
_FAILED = ctypes.c_void_p(-1).value


def _raise(call: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{call}: {os.strerror(number)}")


def map_at(address: int, size: int, protection: int, flags: int, descriptor: int = -1, offset: int = 0) -> int:
    """mmap(2). Returns the address it got; raises OSError (EEXIST where MAP_FIXED_NOREPLACE finds something)."""
    got = _libc.mmap(address, size, protection, flags, descriptor, offset)
    if got == _FAILED:
        _raise("mmap")
    if flags & MAP_FIXED_NOREPLACE and got != address:
        # Kernels before 4.17 take the address as a hint.
        unmap(got, size)
        raise FileExistsError(errno.EEXIST, f"mmap: 0x{address:x} is taken")
    return int(got)


def unmap(address: int, size: int) -> None:
    """munmap(2)."""
    if _libc.munmap(address, size):
        _raise("munmap")


def advise(address: int, size: int, advice: int) -> None:
    """madvise(2)."""
    if _libc.madvise(address, size, advice):
        _raise("madvise")


def punch(descriptor: int, offset: int, size: int) -> None:
    """Give a range of a file's pages back to the system; it reads as zeros afterwards."""
    if _libc.fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size):
        _raise("fallocate")


def memory_view(address: int, size: int) -> memoryview:
    """Mapped memory as writable bytes; the caller keeps the mapping alive."""
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")


PAGE = mmap.PAGESIZE
