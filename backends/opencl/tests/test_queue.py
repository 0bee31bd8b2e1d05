"""Order within and across queues, markers, times and host calls."""

from __future__ import annotations

import struct
import threading
import time

import pytest

from zluda.backend.seam import BackendError, Dim3

# Adds `steps` dependent multiply-adds to a word, so that it takes its time.
SLOW = """
define spir_kernel void @slow(ptr addrspace(1) %p, i32 %steps) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %v = phi i32 [ 1, %entry ], [ %w, %loop ]
  %m = mul i32 %v, 1664525
  %w = add i32 %m, 1013904223
  %j = add i32 %i, 1
  %c = icmp ult i32 %j, %steps
  br i1 %c, label %loop, label %end
end:
  store i32 %w, ptr addrspace(1) %p
  ret void
}
"""


def lcg(steps: int) -> int:
    value = 1
    for _ in range(steps):
        value = (value * 1664525 + 1013904223) % 2**32
    return value


@pytest.fixture(scope="module")
def slow(device, image, sign):
    module = device.load(image(SLOW, sign("slow", ("pointer", 8), ("value", 4))))
    yield module.kernel("slow")
    module.close()


@pytest.fixture
def queue(device):
    queue = device.create_queue()
    yield queue
    queue.close()


ONE = Dim3(1)


def test_a_queue_is_in_order(device, queue, slow, host) -> None:
    memory = device.allocate(4)
    first, second = host(bytes(4)), host(bytes(4))
    for steps, target in ((200_000, first), (1000, second)):
        queue.launch(slow, ONE, ONE, struct.pack("<QI", memory, steps), 0)
        queue.copy(target.address, memory, 4)
    queue.synchronize()
    assert struct.unpack("<I", first.bytes) == (lcg(200_000),)
    assert struct.unpack("<I", second.bytes) == (lcg(1000),)
    device.free(memory)


def test_a_wait_orders_two_queues(device, queue, slow, host) -> None:
    other = device.create_queue()
    memory = device.allocate(4)
    expected = lcg(300_000)
    for _ in range(5):
        back = host(bytes(4))
        queue.fill(memory, bytes(4), 1)
        queue.launch(slow, ONE, ONE, struct.pack("<QI", memory, 300_000), 0)
        marker = queue.record()
        other.wait(marker)
        other.copy(back.address, memory, 4)
        other.synchronize()
        assert struct.unpack("<I", back.bytes) == (expected,)
        marker.close()
    device.free(memory)
    other.close()


def test_markers_are_reached_in_order(queue) -> None:
    gate = threading.Event()
    before = queue.record()
    queue.host_call(lambda: gate.wait(5) and None)
    after = queue.record()
    before.synchronize()
    assert before.query()
    time.sleep(0.02)
    assert not after.query()
    gate.set()
    after.synchronize()
    assert after.query()


def test_elapsed_is_device_time(device, queue, slow) -> None:
    memory = device.allocate(4)
    arguments = struct.pack("<QI", memory, 3_000_000)
    queue.launch(slow, ONE, ONE, arguments, 0)
    queue.synchronize()
    start = time.perf_counter()
    first = queue.record(timing=True)
    queue.launch(slow, ONE, ONE, arguments, 0)
    second = queue.record(timing=True)
    queue.synchronize()
    wall = (time.perf_counter() - start) * 1e3
    elapsed = first.elapsed(second)
    assert 0 < elapsed <= wall
    assert second.elapsed(first) == pytest.approx(-elapsed)
    # Three million dependent multiply-adds take at least a nanosecond each on any machine of this age.
    assert elapsed > 1
    device.free(memory)


def test_a_closed_marker_says_so(queue) -> None:
    marker = queue.record()
    marker.close()
    marker.close()
    with pytest.raises(BackendError, match="closed"):
        marker.query()


def test_a_host_call_waits_for_a_kernel(device, queue, slow, host) -> None:
    target = host(bytes(4))
    seen: list[bytes] = []
    queue.launch(slow, ONE, ONE, struct.pack("<QI", target.address, 3_000_000), 0)
    queue.host_call(lambda: seen.append(target.bytes))
    queue.synchronize()
    assert seen == [target.bytes] != [bytes(4)]


def test_a_host_call_sees_earlier_work_and_holds_later_work(device, queue, host) -> None:
    memory = device.allocate(4)
    seen, later = host(bytes(4)), host(bytes(4))
    calls = []

    def call() -> None:
        calls.append(seen.bytes)
        time.sleep(0.02)
        calls.append(later.bytes)

    queue.fill(memory, b"\x01\x02\x03\x04", 1)
    queue.copy(seen.address, memory, 4)
    queue.host_call(call)
    queue.copy(later.address, memory, 4)
    queue.synchronize()
    assert calls == [b"\x01\x02\x03\x04", bytes(4)]
    assert later.bytes == b"\x01\x02\x03\x04"
    device.free(memory)


def test_host_calls_of_two_queues_may_wait_for_each_other(device, queue) -> None:
    other = device.create_queue()
    reached = threading.Event()
    heard: list[bool] = []
    queue.host_call(lambda: heard.append(reached.wait(5)))
    other.host_call(reached.set)
    queue.synchronize()
    assert heard == [True]
    other.close()


def test_a_host_call_does_not_block_the_caller_or_other_queues(device, queue, host) -> None:
    gate = threading.Event()
    other = device.create_queue()
    target = host(bytes(4))
    queue.host_call(lambda: gate.wait(5) and None)
    other.fill(target.address, b"\x09", 4)
    other.synchronize()
    assert target.bytes == b"\x09" * 4
    gate.set()
    queue.synchronize()
    other.close()


def test_what_a_host_call_raises_comes_out_of_synchronize_once(queue) -> None:
    queue.host_call(lambda: 1 // 0)
    with pytest.raises(BackendError, match="a host function raised ZeroDivisionError"):
        queue.synchronize()
    queue.synchronize()


def test_markers_from_other_threads(device, queue, slow) -> None:
    memory = device.allocate(4)
    queue.launch(slow, ONE, ONE, struct.pack("<QI", memory, 2_000_000), 0)
    marker = queue.record()
    results: list[bool] = []

    def wait() -> None:
        marker.synchronize()
        results.append(marker.query())

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    queue.synchronize()
    for thread in threads:
        thread.join()
    assert results == [True] * 4
    device.free(memory)


def test_priorities_are_accepted(device) -> None:
    for priority in (-5, 0, 5):
        queue = device.create_queue(priority)
        queue.synchronize()
        queue.close()


def test_a_closed_queue_says_so(device, slow) -> None:
    queue = device.create_queue()
    marker = queue.record()
    queue.close()
    queue.close()
    assert marker.query()
    marker.synchronize()
    for call in (
        lambda: queue.copy(1, 2, 3),
        lambda: queue.fill(1, b"a", 3),
        lambda: queue.launch(slow, ONE, ONE, bytes(12), 0),
        lambda: queue.record(),
        lambda: queue.synchronize(),
        lambda: queue.host_call(lambda: None),
    ):
        with pytest.raises(BackendError, match="closed"):
            call()


def test_closing_with_work_in_flight_waits_for_it(device, slow, host) -> None:
    queue = device.create_queue()
    done: list[int] = []
    queue.host_call(lambda: time.sleep(0.05))
    queue.host_call(lambda: done.append(1))
    queue.close()
    assert done == [1]
