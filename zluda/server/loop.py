"""Reading: commands are taken off the ring in their order; a call that has to wait does so on the thread that read it.

One thread at a time has the role of the reader. When a command wants to block (for the device, or to compile), its
thread gives the role to another and blocks itself: reading goes on, and no hop between threads stands between the
device's end and the answer.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable

from zluda.core import CudaError, Wait
from zluda.server.dispatch import Entry
from zluda.server.segment import CONSTANTS, Segment
from zluda.server.state import ContextRecord, State

_UNIT = CONSTANTS["UNIT"]
_RING = CONSTANTS["RING_OFFSET"]
_UNITS = CONSTANTS["RING_BYTES"] // _UNIT

SPIN_SECONDS = 50e-6
"""How long to look for the next command before sleeping: a client that waits for an answer often sends one at once."""
BATCH = 256
"""Units after which room is given back and streams are flushed, when commands keep coming."""
SLEEP_SECONDS = 60.0
LAP = 32768
"""Units of a busy ring, about 16,000 launches, after which the reader notes what the devices then have to do."""
LAPS = 4
"""How many of those may be unfinished. A backend keeps a kilobyte or two for every command that waits, so a program
that launches faster than its device works would otherwise use up the machine's memory. CUDA's own limit is lower."""


class Reader:
    """The role, and the threads that take turns in it."""

    def __init__(self, state: State, entries: list[Entry]) -> None:
        self._state = state
        self._segment = state.segment
        self._entries = entries
        self._tail = 0
        self._role = threading.Lock()
        self._count = threading.Lock()
        self._standing_by = 0
        self._lap_end = LAP
        self._laps: deque[list[tuple[ContextRecord, Wait]]] = deque()

    def serve(self) -> None:
        """Take turns as the reader; never returns. The process ends when the host does (`watch`)."""
        blocked = False
        while True:
            with self._role:
                task = self._read(blocked)
                self._pass_on()
            task()
            blocked = True
            with self._count:
                self._standing_by += 1

    def _pass_on(self) -> None:
        """See to it that some thread takes the role that this one is about to leave."""
        with self._count:
            if self._standing_by:
                self._standing_by -= 1
                return
        threading.Thread(target=self.serve, name="zluda-reader", daemon=True).start()

    def _read(self, sleep_at_once: bool) -> Callable[[], None]:
        """Take commands until one wants to block; what it wants to do."""
        state, segment, entries = self._state, self._segment, self._entries
        u64, head_index = segment.u64, segment.head
        tail = self._tail
        while True:
            head = u64[head_index]
            if head == tail:
                _flush(state)
                head = _await(segment, tail, 0.0 if sleep_at_once else SPIN_SECONDS)
                sleep_at_once = False
            end = head if head - tail <= BATCH else tail + BATCH
            while tail < end:
                at = _RING + tail % _UNITS * _UNIT
                word = u64[at >> 3]
                task = entries[word & 0xFFFF](at, word)
                tail += word >> 32
                if task is not None:
                    self._tail = tail
                    _give_room(segment, tail)
                    return task
            _give_room(segment, tail)
            if end != head:
                _flush(state)
            if tail >= self._lap_end:
                self._lap_end = tail + LAP
                self._keep_pace()

    def _keep_pace(self) -> None:
        """Let the devices come to within a few laps of what was read."""
        lap = []
        for record in list(self._state.contexts.values()):
            # One that is ruined or destroyed has nothing to wait for.
            with contextlib.suppress(CudaError):
                lap.append((record, record.context.wait_handle()))
        self._laps.append(lap)
        if len(self._laps) > LAPS:
            for record, wait in self._laps.popleft():
                try:
                    wait.block()
                except CudaError:
                    self._state.publish(record)


def _flush(state: State) -> None:
    """Let what was enqueued run: nothing more comes for now, or a lot came."""
    for record in list(state.contexts.values()):
        if record.context.unflushed:
            record.context.flush()


def _await(segment: Segment, tail: int, spin: float) -> int:
    """The new head, once there is one."""
    u64, index = segment.u64, segment.head
    if spin:
        until = time.perf_counter() + spin
        while time.perf_counter() < until:
            for _ in range(16):
                if u64[index] != tail:
                    return u64[index]
    while True:
        segment.u32[segment.driver_sleeps] = 1
        segment.fence()
        if u64[index] == tail:
            segment.head_futex.wait(tail, SLEEP_SECONDS)
        segment.u32[segment.driver_sleeps] = 0
        if u64[index] != tail:
            return u64[index]


def _give_room(segment: Segment, tail: int) -> None:
    """Publish how far the ring is read, and wake clients that wait for room once half of it is free."""
    segment.u64[segment.tail] = tail
    if segment.u32[segment.clients_waiting] and segment.u64[segment.head] - tail <= _UNITS // 2:
        segment.u32[segment.clients_waiting] = 0
        segment.u32[segment.room] = segment.u32[segment.room] + 1 & 0xFFFFFFFF
        segment.room_futex.wake()
