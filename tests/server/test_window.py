"""The memory window: places, allocation, sharing between processes."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from contextlib import closing

import pytest

from zluda.window import Window, WindowError, attach, open_window
from zluda.window.allocator import RangeAllocator

BASE, SIZE = 0x1000_0000, 1 << 24


def test_allocations_are_apart_aligned_and_found_again() -> None:
    allocator = RangeAllocator(BASE, SIZE)
    live: dict[int, int] = {}
    rng = random.Random(1)
    for _ in range(3000):
        if live and rng.random() < 0.5:
            address = rng.choice(list(live))
            live.pop(address)
            allocator.free(address)
        else:
            size, alignment = rng.choice([1, 255, 256, 257, 5000, 100_000]), rng.choice([1, 256, 4096])
            try:
                address = allocator.allocate(size, alignment)
            except MemoryError:
                continue
            assert address % 256 == 0 and address % alignment == 0
            assert address >= BASE and address + size <= BASE + SIZE
            live[address] = size
    ends = sorted((a, a + s) for a, s in live.items())
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(ends))
    for address in live:
        allocator.free(address)
    # Everything has grown together again.
    assert allocator.allocate(SIZE, 256) == BASE
    assert allocator.used == SIZE


def test_what_an_allocator_refuses() -> None:
    allocator = RangeAllocator(BASE, SIZE)
    address = allocator.allocate(100, 256)
    assert allocator.free(address) == (BASE, SIZE)
    with pytest.raises(KeyError):
        allocator.free(address)
    with pytest.raises(MemoryError):
        allocator.allocate(SIZE + 1, 256)
    for size, alignment in ((0, 256), (-1, 256), (1, 0), (1, 3)):
        with pytest.raises(ValueError):
            allocator.allocate(size, alignment)
    with pytest.raises(ValueError):
        RangeAllocator(BASE + 1, SIZE)


def test_a_window_holds_bytes_and_gives_pages_back() -> None:
    window = open_window(1 << 34)
    try:
        assert window.size == 1 << 34
        big = window.allocate(64 << 20)
        view = window.view(big, 64 << 20)
        view[:] = b"x" * len(view)
        assert os.fstat(window.descriptor).st_blocks * 512 >= 64 << 20
        small = window.allocate(10)
        window.view(small, 10)[:] = b"0123456789"
        window.free(big)
        assert os.fstat(window.descriptor).st_blocks * 512 < 1 << 20
        assert bytes(window.view(small, 10)) == b"0123456789"
        with pytest.raises(ValueError):
            window.free(big)
        with pytest.raises(ValueError):
            window.view(window.base + window.size - 4, 8)
        with pytest.raises(ValueError):
            window.view(0x1000, 1)
        with pytest.raises(MemoryError):
            window.allocate(1 << 35)
    finally:
        window.close()
        window.close()
    with pytest.raises(ValueError):
        window.view(small, 1)


def test_many_small_pieces_give_their_pages_back_when_they_have_grown_together() -> None:
    window = open_window(1 << 34)
    try:
        pieces = [window.allocate(1 << 20) for _ in range(40)]
        for piece in pieces:
            window.view(piece, 1 << 20)[:] = b"x" * (1 << 20)
        for piece in pieces:
            window.free(piece)
        assert os.fstat(window.descriptor).st_blocks * 512 <= 30 << 20
    finally:
        window.close()


def test_a_second_window_goes_elsewhere() -> None:
    first = open_window()
    second = open_window()
    try:
        assert abs(first.base - second.base) >= first.size
    finally:
        first.close()
        second.close()


def test_attach_proposes_another_place_where_its_own_is_taken() -> None:
    size = 1 << 34
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, size)
    with closing(open_window(size)) as other:
        proposed = attach(descriptor, other.base, size)
        assert isinstance(proposed, int) and abs(proposed - other.base) >= size
        window = attach(descriptor, proposed, size)
        assert isinstance(window, Window) and window.base == proposed
        window.close()


def test_processes_see_each_other_in_the_window() -> None:
    window = open_window(1 << 34)
    try:
        address = window.allocate(5)
        code = (
            "import sys; from zluda.window import attach\n"
            "d, b, s, a = map(int, sys.argv[1:]); w = attach(d, b, s); w.view(a, 5)[:] = b'hello'"
        )
        arguments = map(str, (window.descriptor, window.base, window.size, address))
        subprocess.run([sys.executable, "-c", code, *arguments], check=True, pass_fds=[window.descriptor])
        assert bytes(window.view(address, 5)) == b"hello"
    finally:
        window.close()


def test_no_room_for_a_window_is_said() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))\n"
        "from zluda.window import open_window, WindowError\n"
        "try: open_window()\n"
        "except WindowError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "RLIMIT_AS" in done.stdout
    assert issubclass(WindowError, Exception)
