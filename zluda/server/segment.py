"""The shared segment as the driver process sees it: control words, the device table, answers, the ring's bytes."""

from __future__ import annotations

import ctypes
import mmap
import struct
import threading

from zluda.spec.protocol import protocol
from zluda.window import Window
from zluda.window.futex import Futex

_spec = protocol()
CONSTANTS = _spec.constants
_SLOTS = CONSTANTS["SLOTS_OFFSET"]
_SLOT = CONSTANTS["SLOT_BYTES"]
_PENDING_TO_DONE = CONSTANTS["SLOT_DONE"]
_slot = _spec.structures["slot"]
_control = _spec.structures["control"]


class Segment:
    """The mapped memory file of `SHARED_BYTES`. Words are read and written whole (aligned, one instruction each)."""

    def __init__(self, descriptor: int) -> None:
        self.map = mmap.mmap(descriptor, CONSTANTS["SHARED_BYTES"])
        self.bytes = memoryview(self.map)
        self.u32 = self.bytes.cast("I")
        self.u64 = self.bytes.cast("Q")
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.head = _control.offset("head") // 8
        self.tail = _control.offset("tail") // 8
        self.room = _control.offset("room") // 4
        self.clients_waiting = _control.offset("clients_waiting") // 4
        self.driver_sleeps = _control.offset("driver_sleeps") // 4
        self._errors = _control.offset("context_error") // 4
        self.head_futex = Futex(self.address + _control.offset("head"))
        self.room_futex = Futex(self.address + _control.offset("room"))
        self._fence = threading.Lock()

    def fence(self) -> None:
        """Order what was stored before against what is loaded after. Taking a lock is a full barrier."""
        with self._fence:
            pass

    def set_error(self, slot: int, code: int) -> None:
        """Publish a context's sticky error, which the client returns without asking; 0 for none."""
        self.u32[self._errors + slot] = code

    def announce(self, devices: list[bytes]) -> None:
        """Write the device table; what `describe.device_record` makes."""
        at, size = CONSTANTS["DEVICES_OFFSET"], _spec.structures["device"].size
        for number, record in enumerate(devices):
            self.bytes[at + number * size : at + (number + 1) * size] = record
        self.u32[_control.offset("device_count") // 4] = len(devices)
        self.u64[_control.offset("magic") // 8] = CONSTANTS["MAGIC"]


class Answers:
    """Answering the client's waiting threads, from any thread."""

    ROOM = _SLOT - _slot.size
    """Bytes of an answer that fit beside a slot's head; a longer tail lies in a block of the window."""

    def __init__(self, segment: Segment, window: Window) -> None:
        self._segment = segment
        self._window = window
        self._pack = struct.Struct("<IIQ").pack_into  # result, size, tail_address
        self._futexes: dict[int, Futex] = {}
        self._result_at = _slot.offset("result")

    def send(self, slot: int, result: int, fixed: bytes = b"", tail: bytes = b"") -> None:
        """Fill in an answer and wake the thread if it sleeps. The client frees a block that a long tail takes."""
        segment = self._segment
        base = _SLOTS + slot * _SLOT
        size, address = len(fixed) + len(tail), 0
        if size > self.ROOM:
            address, size = self._window.allocate(len(tail)), len(tail)
            self._window.view(address, size)[:] = tail
        elif size:
            start = base + _slot.size
            segment.bytes[start : start + size] = fixed + tail if tail else fixed
        self._pack(segment.bytes, base + self._result_at, result, size, address)
        word = base >> 2
        segment.u32[word] = _PENDING_TO_DONE
        segment.fence()
        if segment.u32[word + 1]:
            futex = self._futexes.get(slot)
            if futex is None:
                futex = self._futexes[slot] = Futex(segment.address + base)
            futex.wake()
