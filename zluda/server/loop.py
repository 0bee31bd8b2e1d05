"""The reader: takes commands off the ring in their order, and sleeps when there are none."""

from __future__ import annotations

import time

from zluda.server.dispatch import Entry
from zluda.server.segment import CONSTANTS, Segment
from zluda.server.state import State

_UNIT = CONSTANTS["UNIT"]
_RING = CONSTANTS["RING_OFFSET"]
_UNITS = CONSTANTS["RING_BYTES"] // _UNIT

SPIN_SECONDS = 50e-6
"""How long to look for the next command before sleeping: a client that waits for an answer often sends one at once."""
POLL_SECONDS = 100e-6
"""How long to poll the device for a waiting call before a thread takes over: short work is over sooner than that."""
BATCH = 256
"""Units after which room is given back and streams are flushed, when commands keep coming."""
SLEEP_SECONDS = 60.0


def serve(state: State, entries: list[Entry]) -> None:
    """Never returns; the process ends when the host does (`watch`)."""
    segment = state.segment
    u64, head_index = segment.u64, segment.head
    tail = 0
    while True:
        head = u64[head_index]
        if head == tail:
            _flush(state)
            if state.pending:
                _poll(state, tail)
            head = _await(segment, tail)
        end = head if head - tail <= BATCH else tail + BATCH
        while tail < end:
            at = _RING + tail % _UNITS * _UNIT
            word = u64[at >> 3]
            entries[word & 0xFFFF](at, word)
            tail += word >> 32
        _give_room(segment, tail)
        if state.pending and u64[head_index] != tail:
            _hand_over(state)


def _poll(state: State, tail: int) -> None:
    """Answer the calls whose work ends soon, unless there is something else to do."""
    u64, index = state.segment.u64, state.segment.head
    until = time.perf_counter() + POLL_SECONDS
    while state.pending and u64[index] == tail and time.perf_counter() < until:
        state.pending[:] = [call for call in state.pending if not call.poll()]
    _hand_over(state)


def _hand_over(state: State) -> None:
    for call in state.pending:
        state.waiters.start(call.finish)
    state.pending.clear()


def _flush(state: State) -> None:
    """Nothing more to come for now: what was enqueued is to run."""
    for record in list(state.contexts.values()):
        if record.context.unflushed:
            record.context.flush()


def _await(segment: Segment, tail: int) -> int:
    """The new head, once there is one."""
    u64, index = segment.u64, segment.head
    until = time.perf_counter() + SPIN_SECONDS
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
