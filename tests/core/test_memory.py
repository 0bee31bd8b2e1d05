"""Allocations, copies and fills, with memory in the window and in the device."""

import threading

import numpy as np
import pytest
from core_fake_backend import FakeCompiler, FakeWindow, selection

from zluda.core import Context, Copy3D, CudaError, Driver, MemoryKind


def test_allocate_and_free(any_bench):
    context = any_bench.context
    free, total = context.memory_info()
    assert total == 8 << 20
    address = context.allocate(1000)
    assert address % 256 == 0
    assert context.memory_info()[0] == free - 1000
    assert any_bench.driver.find(address + 999).address == address
    assert any_bench.driver.find(address + 1000) is None
    context.free(address)
    assert context.memory_info() == (free, total)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        context.free(address)
    context.free(0)


def test_size_zero_and_too_much(any_bench):
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        any_bench.context.allocate(0)
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        any_bench.context.allocate((8 << 20) + 1)
    any_bench.context.allocate(8 << 20)
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        any_bench.context.allocate(1)


def test_only_the_base_can_be_freed(any_bench):
    address = any_bench.context.allocate(1024)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        any_bench.context.free(address + 512)
    host = any_bench.context.allocate_host(64)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        any_bench.context.free(host)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        any_bench.context.free_host(address)


def test_free_waits_for_work_in_flight(any_bench):
    context = any_bench.context
    address = context.allocate(4096)
    any_bench.fake.hold()
    context.create_stream(flags=1).fill(address, 7, 1, 4096)
    wait = context.free_wait(address)
    assert any_bench.driver.find(address) is None
    assert not wait.done()
    free, total = context.memory_info()
    assert free == total - 4096
    any_bench.fake.release()
    wait.block()
    assert context.memory_info() == (total, total)


def test_allocation_takes_memory_that_only_waits(any_bench):
    context = any_bench.context
    address = context.allocate(8 << 20)
    context.legacy.fill(address, 1, 4, 100)
    any_bench.fake.hold()
    context.free_wait(address)
    any_bench.fake.held = False
    context.allocate(8 << 20)


def test_address_range(any_bench):
    context = any_bench.context
    address = context.allocate(1000)
    assert context.address_range(address + 500) == (address, 1000)
    with pytest.raises(CudaError, match="NOT_FOUND"):
        context.address_range(address + 1000)


def test_pitch(any_bench):
    context = any_bench.context
    address, pitch = context.allocate_pitch(100, 10, 4)
    assert pitch >= 100 and pitch % 512 == 0
    assert context.address_range(address) == (address, pitch * 10)
    for bad in ((100, 10, 3), (0, 10, 4), (10, 0, 4)):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            context.allocate_pitch(*bad)


def test_host_memory_lies_in_the_window(any_bench):
    context = any_bench.context
    address = context.allocate_host(100, flags=1 | 2)
    window = any_bench.window
    assert window.base <= address < window.base + window.size
    allocation = any_bench.driver.find(address)
    assert allocation.kind is MemoryKind.HOST and allocation.flags == 3
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        context.allocate_host(100, flags=8)
    context.free_host(address)
    assert address not in window.live


def test_write_and_read_back(any_bench):
    context = any_bench.context
    data = np.arange(1 << 20, dtype=np.uint32).tobytes()  # more than one staging block
    address = context.allocate(len(data) + 3)
    context.write(address + 3, data)
    assert context.read(address + 3, len(data)) == data
    stream = context.create_stream()
    stream.write(address, b"abc")
    assert context.read(address, 3, stream) == b"abc"
    assert context.read(address, 0) == b""
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        context.write(address + 4, data)


def test_posted_writes_take_the_bytes_at_the_call(any_bench):
    context = any_bench.context
    address = context.allocate(8 << 10)
    any_bench.fake.hold()
    data = bytearray(4 << 10)
    for value in range(2):
        data[:] = bytes([value + 1]) * len(data)
        context.legacy.write(address + value * len(data), data)
    any_bench.fake.release()
    assert context.read(address, 8 << 10) == b"\1" * 4096 + b"\2" * 4096


def test_staging_blocks_are_used_again(any_bench):
    context = any_bench.context
    address = context.allocate(1 << 20)
    for _ in range(20):
        context.legacy.write(address, bytes(1 << 20))
        context.synchronize()
    assert len(context.staging._blocks) <= 2


def test_copies_are_ordered_and_checked(any_bench):
    context = any_bench.context
    a, b, host = context.allocate(64), context.allocate(64), context.allocate_host(64)
    context.write(a, bytes(range(64)))
    context.legacy.copy(b, a + 32, 32)
    context.legacy.copy(host, b, 32)
    context.synchronize()
    assert bytes(any_bench.window.view(host, 32)) == bytes(range(32, 64))
    context.legacy.copy(a, b, 0)
    for bad in ((a, b, 65), (a + 60, b, 5), (a, b + 60, 5), (a - 1, b, 1), (a, 0x1234, 4), (a, b, -1)):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            context.legacy.copy(*bad)


def test_fills(any_bench):
    context = any_bench.context
    address = context.allocate(64)
    stream = context.legacy
    stream.fill(address, 0x1FF, 1, 64)
    stream.fill(address + 4, -2, 2, 3)
    stream.fill(address + 16, 0x12345678, 4, 2)
    stream.fill(address, 0, 4, 0)
    expected = np.full(64, 0xFF, np.uint8)
    expected[4:10] = np.full(3, 0xFFFE, np.uint16).view(np.uint8)
    expected[16:24] = np.full(2, 0x12345678, np.uint32).view(np.uint8)
    assert context.read(address, 64) == expected.tobytes()
    for bad in ((address, 0, 1, 65), (address + 1, 0, 2, 1), (address + 2, 0, 4, 1), (address, 0, 8, 1)):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            stream.fill(*bad)


def test_fill_2d(any_bench):
    context = any_bench.context
    address = context.allocate(8 * 16)
    context.write(address, bytes(128))
    context.legacy.fill_2d(address + 4, 16, 0x0A0B, 2, 3, 8)
    expected = np.zeros((8, 16), np.uint8)
    expected[:, 4:10] = np.tile(np.array([0x0B, 0x0A], np.uint8), 3)
    assert context.read(address, 128) == expected.tobytes()
    for bad in (
        (address, 15, 0, 2, 3, 2),
        (address, 4, 0, 2, 3, 2),
        (address, 16, 0, 4, 4, 9),
        (address + 1, 16, 0, 2, 1, 2),
    ):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            context.legacy.fill_2d(*bad)


def test_copy_2d(any_bench):
    context = any_bench.context
    source = np.arange(16 * 20, dtype=np.uint16).astype(np.uint8).reshape(16, 20)
    a, b = context.allocate(320), context.allocate(12 * 32)
    context.write(a, source.tobytes())
    context.write(b, bytes(12 * 32))
    context.legacy.copy_3d(
        Copy3D(
            width=7, height=5, source=a, source_pitch=20, source_x=3, source_y=2,
            destination=b, destination_pitch=32, destination_x=1, destination_y=4,
        )
    )  # fmt: skip
    expected = np.zeros((12, 32), np.uint8)
    expected[4:9, 1:8] = source[2:7, 3:10]
    assert context.read(b, 12 * 32) == expected.tobytes()


def test_packed_copy_2d_is_one_command(any_bench):
    context = any_bench.context
    a, b = context.allocate(1000), context.allocate(1000)
    context.write(a, bytes(range(250)) * 4)
    calls = context.legacy._queue.calls if context.legacy._queue else []
    before = calls.count("copy")
    context.legacy.copy_3d(Copy3D(width=100, height=10, source=a, source_pitch=100, destination=b))
    assert context.legacy._queue.calls.count("copy") == before + 1
    assert context.read(b, 1000) == bytes(range(250)) * 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"source_pitch": 9},
        {"destination_pitch": 11, "destination_x": 2},
        {"height": 101},
        {"width": -1},
        {"source_pitch": 2**31},
    ],
)
def test_copy_2d_errors(bench, wrong):
    a, b = bench.context.allocate(1000), bench.context.allocate(1000)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        bench.context.legacy.copy_3d(Copy3D(**{"width": 10, "height": 5, "source": a, "destination": b, **wrong}))


def test_another_contexts_memory_is_freed_by_its_owner(bench):
    other: Context = bench.device.create_context()
    address = other.allocate(64)
    bench.context.free(address)
    assert bench.driver.find(address) is None
    other.destroy()


def test_staging_and_free_share_the_window_fairly(bench):
    bench.context.legacy.write(bench.context.allocate(16), b"x" * 16)
    bench.device.release_primary()
    assert bench.window.live == {}


def test_memory_of_another_device():
    window = FakeWindow()
    driver = Driver(selection(window, host_reaching=(True, False)), window, FakeCompiler())
    cpu, other = driver.device(0).retain_primary(), driver.device(1).retain_primary()
    shared, own, host = cpu.allocate(64), other.allocate(64), cpu.allocate_host(64)
    other.legacy.copy(own, shared, 64)
    other.legacy.copy(host, own, 64)
    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
        cpu.legacy.copy(own, shared, 64)
    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
        cpu.legacy.fill(own, 0, 1, 1)
    driver.close()


def test_threads_share_a_context(any_bench):
    context = any_bench.context
    failures = []

    def work(number):
        try:
            stream = context.per_thread(number) if number % 2 else context.create_stream()
            event = context.create_event()
            for round_ in range(20):
                address = context.allocate(256)
                stream.fill(address, number, 1, 256)
                if round_ % 5 == 0:
                    context.legacy.fill(address + 128, number + 1, 1, 128)
                    event.record(stream)
                    event.synchronize()
                    assert context.read(address + 128, 128, stream) == bytes([number + 1]) * 128
                assert context.read(address, 128, stream) == bytes([number]) * 128
                context.free(address)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures and not any(t.is_alive() for t in threads)
    assert context.memory_info()[0] == context.memory_info()[1]


def test_a_staging_block_waits_for_every_stream_that_reads_it(bench):
    context = bench.context
    quick, slow = context.create_stream(flags=1), context.create_stream(flags=1)
    a, b = context.allocate(1 << 20), context.allocate(1 << 20)
    bench.fake.hold()
    half = 1 << 19
    slow.write(b, b"s" * half)
    quick.write(a, b"q" * half)  # the block is full
    quick.write(a + half, b"q" * half)
    context.flush()
    with bench.fake.changed:
        while quick._queue.step():
            pass
    quick.write(a, b"Q" * half)
    quick.write(a + half, b"Q" * half)  # needs a block, and the first is still read by `slow`
    bench.fake.release()
    context.synchronize()
    assert context.read(b, half) == b"s" * half
    assert context.read(a, 1 << 20) == b"Q" * (1 << 20)


def test_pinned_memory_is_memory_of_the_machine(bench, monkeypatch):
    """The window is larger than the machine: what is beyond its memory is refused, and comes back when it is freed."""
    from zluda.core import memory

    monkeypatch.setattr(memory, "_physical_memory", lambda: 1 << 20)
    context = bench.context
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        context.allocate_host((1 << 20) + 1)
    address = context.allocate_host(1 << 20)
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        context.allocate_host(1)
    context.free_host(address)
    context.free_host(context.allocate_host(1 << 20))
