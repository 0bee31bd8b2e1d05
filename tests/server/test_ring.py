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

from zluda.server.loop import LAP, LAPS, Reader
from zluda.server.segment import CONSTANTS, Answers, Segment
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
            Reader(FakeState(segment), [lambda at, word: None, entry]).serve()  # type: ignore[arg-type]

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


def test_reading_goes_on_beside_calls_that_block(segment: Segment) -> None:
    """Each blocked call keeps a thread, threads are used again, and order is kept."""
    gates = [threading.Event() for _ in range(40)]
    begun: list[int] = []
    ended = threading.Semaphore(0)
    stopped = threading.Event()

    def entry(at: int, word: int) -> Callable[[], None] | None:
        number = segment.u64[(at >> 3) + 1]
        begun.append(number)
        if number == 99:
            stopped.set()
            raise Stop

        def block() -> None:
            assert gates[number].wait(5)
            ended.release()

        return block if number % 2 else None

    def run() -> None:
        with contextlib.suppress(Stop):
            Reader(FakeState(segment), [lambda at, word: None, entry]).serve()  # type: ignore[arg-type]

    before = set(threading.enumerate())

    def readers() -> int:
        return len(set(threading.enumerate()) - before)

    threading.Thread(target=run, daemon=True).start()
    poster = Poster(segment)
    for number in range(10):
        poster.post(1, 1, number)
    until = time.monotonic() + 5
    while (len(begun) < 10 or readers() < 6) and time.monotonic() < until:
        time.sleep(0.001)
    assert begun == list(range(10))
    assert readers() == 6
    # The last first: nobody waits for anybody else.
    for number in range(9, 0, -2):
        gates[number].set()
        assert ended.acquire(timeout=5)
    for number in range(10, 40):
        gates[number].set()
        poster.post(1, 1, number)
        if number % 2:
            assert ended.acquire(timeout=5)
            time.sleep(0.001)
    assert begun == list(range(40))
    assert readers() <= 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda _: None)
        poster.post(1, 1, 99)
        assert stopped.wait(5)
        time.sleep(0.05)


class SlowContext:
    """A context whose work ends when the test says so."""

    def __init__(self) -> None:
        self.unflushed: set[Any] = set()
        self.context = self
        self.laps = 0
        self.done = threading.Semaphore(0)

    def wait_handle(self) -> SlowContext:
        self.laps += 1
        return self

    def block(self) -> None:
        assert self.done.acquire(timeout=10)


def test_the_reader_stays_within_a_few_laps_of_the_device(segment: Segment) -> None:
    """However fast the client posts, what waits in the backend's queues is bounded."""
    context = SlowContext()
    state = FakeState(segment)
    state.contexts[1] = context
    stopped = threading.Event()

    def entry(at: int, word: int) -> None:
        if segment.u64[(at >> 3) + 1]:
            stopped.set()
            raise Stop

    def run() -> None:
        with contextlib.suppress(Stop):
            Reader(state, [lambda at, word: None, entry]).serve()  # type: ignore[arg-type, list-item]

    threading.Thread(target=run, daemon=True).start()
    poster = Poster(segment)
    units = LAP // 4

    def post_until_full() -> None:
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            if poster.head + 2 * units - segment.u64[segment.tail] <= UNITS:
                poster.post(1, units)
            time.sleep(0.0005)

    post_until_full()
    assert context.laps == LAPS + 1
    assert segment.u64[segment.tail] == (LAPS + 1) * LAP
    context.done.release()
    post_until_full()
    assert context.laps == LAPS + 2
    for _ in range(20):
        context.done.release()
    poster.post(1, 1, 1)
    assert stopped.wait(5)


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
