"""Allocation, copies and fills."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zluda_opencl.memory import SvmAllocator

from zluda.backend.seam import BackendError, OutOfMemory


@pytest.mark.parametrize("alignment", [1, 16, 256, 512, 4096])
@pytest.mark.parametrize("size", [1, 3, 255, 4096, (1 << 20) + 1])
def test_allocations_are_aligned_and_apart(device, size: int, alignment: int) -> None:
    addresses = [device.allocate(size, alignment) for _ in range(4)]
    assert all(address % alignment == 0 for address in addresses)
    ordered = sorted(addresses)
    assert all(b - a >= size for a, b in itertools.pairwise(ordered))
    for address in addresses:
        device.free(address)


def test_memory_counts_what_is_allocated(device) -> None:
    free, total = device.memory()
    assert 0 < free <= total == device.info.total_memory
    address = device.allocate(64 << 20)
    assert device.memory()[0] <= total - (64 << 20)
    device.free(address)


def test_freeing_twice_or_what_was_never_allocated_is_an_error(device) -> None:
    address = device.allocate(16)
    device.free(address)
    for wrong in (address, address + 1, 0):
        with pytest.raises(BackendError, match="was not allocated here"):
            device.free(wrong)


def test_too_much_is_out_of_memory(device) -> None:
    with pytest.raises(OutOfMemory, match="cl"):
        device.allocate(1 << 46)
    device.free(device.allocate(1024))


@pytest.mark.parametrize("size", [0, 1, 3, 7, 8, 63, 64, 65, 1000, 4097, (1 << 20) + 13])
@pytest.mark.parametrize("shift", [0, 1, 5])
def test_copies_of_odd_sizes_at_odd_places(device, host, size: int, shift: int) -> None:
    content = bytes((i * 37 + 11) % 251 for i in range(size))
    source, back = host(content), host(b"\xee" * (size + 2))
    queue = device.create_queue()
    memory = device.allocate(size + 16)
    queue.fill(memory, b"\xaa", size + 16)
    queue.copy(memory + shift, source.address, size)
    queue.copy(back.address + 1, memory + shift, size)
    whole = host(bytes(size + 16))
    queue.copy(whole.address, memory, size + 16)
    queue.synchronize()
    assert back.bytes == b"\xee" + content + b"\xee"
    assert whole.bytes == b"\xaa" * shift + content + b"\xaa" * (16 - shift)
    device.free(memory)
    queue.close()


@pytest.mark.parametrize("pattern", [b"\x5a", b"\x01\x02", b"\x01\x02\x03\x04", bytes(range(8)), bytes(range(16))])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 17, 1000])
@pytest.mark.parametrize("place", [0, 1, 16])
def test_fills(device, host, pattern: bytes, count: int, place: int) -> None:
    size = len(pattern) * count
    start = place * len(pattern)
    queue = device.create_queue()
    memory = device.allocate(start + size + 16)
    queue.fill(memory, b"\xcc", start + size + 16)
    queue.fill(memory + start, pattern, count)
    back = host(bytes(start + size + 16))
    queue.copy(back.address, memory, start + size + 16)
    queue.synchronize()
    assert back.bytes == b"\xcc" * start + pattern * count + b"\xcc" * 16
    device.free(memory)
    queue.close()


def test_a_uniform_pattern_needs_no_alignment(device, host) -> None:
    queue = device.create_queue()
    target = host(bytes(40))
    queue.fill(target.address + 3, b"\x07" * 8, 4)
    queue.synchronize()
    assert target.bytes == bytes(3) + b"\x07" * 32 + bytes(5)
    queue.close()


def test_a_pattern_of_another_size_is_refused(device) -> None:
    queue = device.create_queue()
    with pytest.raises(BackendError, match="not 3"):
        queue.fill(0, b"abc", 1)
    queue.close()


def test_host_memory_needs_no_import(device, host) -> None:
    memory = host(bytes(64))
    device.import_host(memory.address, 64)
    device.release_host(memory.address)


class Reserve:
    """Blocks at made-up addresses, with a limit on their total."""

    def __init__(self, limit: int = 1 << 40) -> None:
        self.next, self.limit = 1 << 20, limit
        self.live: dict[int, int] = {}

    def reserve(self, size: int) -> int:
        if sum(self.live.values()) + size > self.limit:
            raise OutOfMemory("no more")
        base, self.next = self.next, self.next + size + 4096
        self.live[base] = size
        return base

    def release(self, address: int) -> None:
        del self.live[address]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 3000), st.sampled_from([1, 8, 256, 1024]), st.integers(0, 7)), min_size=1, max_size=60
    )
)
def test_svm_suballocation_never_overlaps_and_gives_everything_back(steps: list[tuple[int, int, int]]) -> None:
    memory = Reserve()
    allocator = SvmAllocator(memory.reserve, memory.release, block=8192)
    live: dict[int, int] = {}
    for size, alignment, drop in steps:
        address = allocator.allocate(size, alignment)
        assert address % alignment == 0
        assert any(base <= address and address + size <= base + length for base, length in memory.live.items())
        assert all(address + size <= a or a + s <= address for a, s in live.items())
        live[address] = size
        if len(live) > drop:
            gone = sorted(live)[drop % len(live)]
            allocator.free(gone)
            del live[gone]
        assert allocator.used == sum(live.values())
        assert allocator.blocks == sorted(memory.live)
    for address in live:
        allocator.free(address)
    assert allocator.used == 0
    assert len(memory.live) == 1
    (base,) = memory.live
    assert allocator.allocate(memory.live[base], 1) == base
    allocator.close()
    assert memory.live == {}


def test_svm_blocks_shrink_to_what_is_needed_when_memory_is_short() -> None:
    memory = Reserve(limit=5000)
    allocator = SvmAllocator(memory.reserve, memory.release, block=8192)
    allocator.allocate(1000, 1)
    before = allocator.generation
    allocator.allocate(3000, 1)
    assert allocator.generation > before
    with pytest.raises(OutOfMemory):
        allocator.allocate(3000, 1)
