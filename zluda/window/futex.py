"""Sleeping on a word in shared memory, across processes (futex(2))."""

from __future__ import annotations

import ctypes
import errno
import platform

_WAIT = 0
_WAKE = 1
_NUMBER = {"x86_64": 202, "aarch64": 98, "riscv64": 98}


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Futex:
    """A 32-bit word in shared memory that processes sleep on."""

    def __init__(self, address: int) -> None:
        machine = platform.machine()
        if machine not in _NUMBER:
            raise OSError(errno.ENOSYS, f"no futex system call number known for {machine}")
        self._number = ctypes.c_long(_NUMBER[machine])
        self._address = ctypes.c_void_p(address)
        self._timeout = _Timespec()
        self._timeout_pointer = ctypes.byref(self._timeout)
        self._wait_call = _releasing.syscall
        self._wake_call = _keeping.syscall

    def wait(self, expected: int, seconds: float) -> None:
        """Sleep while the word is `expected`, at most so long. One thread at a time per object."""
        self._timeout.seconds = int(seconds)
        self._timeout.nanoseconds = int(seconds % 1 * 1e9)
        self._wait_call(self._number, self._address, _WAIT, ctypes.c_uint(expected & 0xFFFFFFFF), self._timeout_pointer)

    def wake(self) -> None:
        """Wake whoever sleeps on the word."""
        self._wake_call(self._number, self._address, _WAKE, 0x7FFFFFFF)


_releasing = ctypes.CDLL(None)
# Waking is short, so it keeps the interpreter lock.
_keeping = ctypes.PyDLL(None)
