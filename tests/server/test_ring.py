"""The reader and the answers, against a client played by the test."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from zluda.server import loop
from zluda.server.segment import CONSTANTS, Answers, Segment
from zluda.server.waiters import Waiters
from zluda.window import Window, open_window

UNITS = CONSTANTS["RING_BYTES"] // CONSTANTS["UNIT"]
RING = CONSTANTS["RING_OFFSET"]


class Stop(BaseException):
    """Ends the reader."""


class FakeState:
    """What the loop needs of a state."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.contexts: dict[int, Any] = {}
        self.pending: list[Any] = []
        self.waiters = Waiters()


@pytest.fixture
def segment() -> Iterator[Segment]:
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, CONSTANTS["SHARED_BYTES"])
    yield Segment(descriptor)
    os.close(descriptor)


@pytest.fixture
def window() -> Iterator[Window]:
    made = open_window(1 << 32)
    yield made
    made.close()


class Poster:
    """Writes commands as the client does."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.head = 0

    def post(self, opcode: int, units: int = 1, number: int = 0) -> None:
        rest = UNITS - self.head % UNITS
        if units > rest:
            self._write(0, rest, 0)
        self._write(opcode, units, number)
        self.segment.u64[self.segment.head] = self.head
        self.segment.head_futex.wake()

    def _write(self, opcode: int, units: int, number: int) -> None:
        at = RING + self.head % UNITS * 64
        struct.pack_into("<HHIQ", self.segment.bytes, at, opcode, 0xFFFF, units, number)
        self.head += units


def read(segment: Segment, take: Callable[[int], None]) -> threading.Thread:
    """Run the reader; `take` gets each command's number, and may raise Stop."""

    def entry(at: int, word: int) -> None:
        take(segment.u64[(at >> 3) + 1])

    def run() -> None:
        with contextlib.suppress(Stop):
            loop.serve(FakeState(segment), [lambda at, word: None, entry])  # type: ignore[arg-type]

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_commands_are_taken_in_order_around_the_ring(segment: Segment) -> None:
    taken: list[int] = []
    total = 3 * UNITS // 50

    def take(number: int) -> None:
        taken.append(number)
        if number == total - 1:
            raise Stop

    thread = read(segment, take)
    poster = Poster(segment)
    for number in range(total):
        while poster.head - segment.u64[segment.tail] > UNITS - 200:
            time.sleep(0.001)
        poster.post(1, 50 + number % 7, number)
    thread.join(10)
    assert taken == list(range(total))


def test_a_sleeping_reader_is_woken(segment: Segment) -> None:
    got = threading.Event()

    def take(number: int) -> None:
        got.set()
        raise Stop

    thread = read(segment, take)
    until = time.monotonic() + 5
    while not segment.u32[segment.driver_sleeps] and time.monotonic() < until:
        time.sleep(0.001)
    assert segment.u32[segment.driver_sleeps] == 1
    Poster(segment).post(1)
    assert got.wait(5)
    thread.join(5)


def test_clients_that_wait_for_room_are_woken_at_half(segment: Segment) -> None:
    gate = threading.Semaphore(0)
    count = 0

    def take(number: int) -> None:
        nonlocal count
        assert gate.acquire(timeout=10)
        count += 1
        if number == 1:
            raise Stop

    poster = Poster(segment)
    for _ in range(31):
        poster.post(1, UNITS // 32)
    segment.u32[segment.clients_waiting] = 1
    read(segment, take)
    for step in range(1, 31):
        gate.release()
        until = time.monotonic() + 5
        while segment.u64[segment.tail] < step * (UNITS // 32) and time.monotonic() < until:
            time.sleep(0.0005)
        full = (31 - step) * (UNITS // 32)
        time.sleep(0.001)
        assert segment.u32[segment.room] == (1 if full <= UNITS // 2 else 0), step
    poster.post(1, 1, 1)
    gate.release(2)


def test_calls_are_polled_and_then_waited_for(segment: Segment) -> None:
    """Work that ends at once is answered by the reader, other work by a thread."""
    threads: dict[str, str] = {}
    done = threading.Semaphore(0)

    class Call:
        def __init__(self, name: str, polls: int) -> None:
            self.name, self.polls = name, polls

        def answer(self) -> bool:
            threads[self.name] = threading.current_thread().name
            done.release()
            return True

        def poll(self) -> bool:
            self.polls -= 1
            return self.polls < 0 and self.answer()

        def finish(self) -> None:
            self.answer()

    state = FakeState(segment)

    def entry(at: int, word: int) -> None:
        if segment.u64[(at >> 3) + 1] == 1:
            raise Stop
        state.pending += [Call("quick", 3), Call("slow", 10**9)]

    def run() -> None:
        with contextlib.suppress(Stop):
            loop.serve(state, [lambda at, word: None, entry])  # type: ignore[arg-type]

    reader = threading.Thread(target=run, name="reader", daemon=True)
    reader.start()
    poster = Poster(segment)
    poster.post(1)
    assert done.acquire(timeout=5) and done.acquire(timeout=5)
    assert threads == {"quick": "reader", "slow": "zluda-waiter"}
    assert not state.pending
    poster.post(1, 1, 1)
    reader.join(5)


def test_answers_reach_their_slots(segment: Segment, window: Window) -> None:
    answers = Answers(segment, window)
    base = CONSTANTS["SLOTS_OFFSET"] + 5 * CONSTANTS["SLOT_BYTES"]
    segment.u32[base >> 2] = CONSTANTS["SLOT_PENDING"]
    answers.send(5, 7, b"fixed", b"tail")
    state, _, _, result, size, address = struct.unpack_from("<IIQIIQ", segment.bytes, base)
    assert (state, result, size, address) == (CONSTANTS["SLOT_DONE"], 7, 9, 0)
    assert bytes(segment.bytes[base + 32 : base + 41]) == b"fixedtail"


def test_a_long_tail_lies_in_the_window(segment: Segment, window: Window) -> None:
    tail = bytes(range(256)) * 8
    Answers(segment, window).send(0, 0, b"", tail)
    _, _, _, _, size, address = struct.unpack_from("<IIQIIQ", segment.bytes, CONSTANTS["SLOTS_OFFSET"])
    assert size == len(tail) and window.contains(address, size)
    assert bytes(window.view(address, size)) == tail
    window.free(address)


def test_waiters_run_side_by_side_and_are_used_again() -> None:
    waiters = Waiters()
    barrier = threading.Barrier(5)
    names: list[str] = []
    done = threading.Semaphore(0)

    def meet() -> None:
        barrier.wait(5)
        names.append(threading.current_thread().name)
        done.release()

    before = threading.active_count()
    for _ in range(3):
        for _ in range(4):
            waiters.start(meet)
        barrier.wait(5)
        for _ in range(4):
            assert done.acquire(timeout=5)
        time.sleep(0.02)
    assert len(names) == 12
    assert threading.active_count() - before == 4
