"""Order of work: CUDA's rules for the legacy default stream, per-thread and non-blocking streams."""

import threading

import pytest
from core_fake_backend import FakeQueue

from zluda.backend.seam import BackendError
from zluda.core import CudaError


def mark(bench, stream, value):
    """Enqueue a fill that leaves `value` in the bench's log of executed fills."""
    address = bench.cells[value]
    stream.fill(address, value, 1, 1)


@pytest.fixture
def cells(bench):
    base = bench.context.allocate(256)
    bench.cells = {v: base + v for v in range(256)}
    bench.context.synchronize()
    return bench


def queue_of(stream) -> FakeQueue:
    return stream._queue


def executed(bench):
    """Queue names of executed fills, in order."""
    return [name for name, what in bench.fake.order if what == "fill"]


def run_queues(bench, *streams):
    """Let the queues of these streams run as far as they can, each in turn, repeatedly."""
    with bench.fake.changed:
        while any([queue_of(s).step() for s in streams if s._queue]):
            pass


def test_work_of_one_stream_needs_no_markers(cells):
    stream = cells.context.legacy
    for value in range(5):
        mark(cells, stream, value)
    assert queue_of(stream).calls == ["fill"] * 5


def test_queues_are_opened_by_the_first_command(bench):
    stream = bench.context.create_stream()
    assert stream.query()
    stream.synchronize()
    assert bench.fake.queues == []


def test_legacy_waits_for_blocking_streams(cells):
    cells.fake.hold()
    a, b, legacy = cells.context.create_stream(), cells.context.create_stream(), cells.context.legacy
    mark(cells, a, 1)
    mark(cells, b, 2)
    mark(cells, legacy, 3)
    cells.context.flush()
    run_queues(cells, legacy)
    assert executed(cells) == []
    run_queues(cells, legacy, a)
    assert executed(cells) == [queue_of(a).name]
    run_queues(cells, legacy, b)
    assert executed(cells) == [queue_of(a).name, queue_of(b).name, queue_of(legacy).name]


def test_blocking_streams_wait_for_legacy(cells):
    cells.fake.hold()
    legacy, a, late = cells.context.legacy, cells.context.create_stream(), cells.context.create_stream()
    mark(cells, legacy, 1)
    mark(cells, a, 2)
    mark(cells, late, 3)
    cells.context.flush()
    run_queues(cells, a, late)
    assert executed(cells) == []
    run_queues(cells, legacy)
    run_queues(cells, a, late)
    assert executed(cells)[0] == queue_of(legacy).name and len(executed(cells)) == 3


def test_legacy_orders_two_blocking_streams_transitively(cells):
    cells.fake.hold()
    a, legacy, b = cells.context.create_stream(), cells.context.legacy, cells.context.create_stream()
    mark(cells, a, 1)
    mark(cells, legacy, 2)
    mark(cells, b, 3)
    cells.context.flush()
    run_queues(cells, b, legacy)
    assert executed(cells) == []
    run_queues(cells, a)
    run_queues(cells, b, legacy)
    assert executed(cells) == [queue_of(s).name for s in (a, legacy, b)]


def test_blocking_streams_do_not_wait_for_each_other(cells):
    cells.fake.hold()
    a, b = cells.context.create_stream(), cells.context.create_stream()
    mark(cells, a, 1)
    mark(cells, b, 2)
    cells.context.flush()
    run_queues(cells, b)
    assert executed(cells) == [queue_of(b).name]


def test_non_blocking_streams_stay_out_of_it(cells):
    cells.fake.hold()
    free, legacy = cells.context.create_stream(flags=1), cells.context.legacy
    mark(cells, legacy, 1)
    mark(cells, free, 2)
    mark(cells, legacy, 3)
    cells.context.flush()
    run_queues(cells, free)
    assert executed(cells) == [queue_of(free).name]
    assert not any(call.startswith("wait") for s in (free, legacy) for call in queue_of(s).calls)


def test_per_thread_stream_is_one_blocking_stream_per_token(cells):
    cells.fake.hold()
    context = cells.context
    mine, other = context.per_thread("thread 1"), context.per_thread("thread 2")
    assert mine is context.per_thread("thread 1") and mine is not other
    mark(cells, context.legacy, 1)
    mark(cells, mine, 2)
    context.flush()
    run_queues(cells, mine)
    assert executed(cells) == []


def test_finished_work_is_not_waited_for(cells):
    a, legacy = cells.context.create_stream(), cells.context.legacy
    mark(cells, a, 1)
    a.synchronize()
    mark(cells, legacy, 2)
    assert not any(call.startswith("wait") for call in queue_of(legacy).calls)


def test_a_queue_is_flushed_before_another_waits_for_it(cells):
    # The fake never runs what was not flushed, and waiting for one queue flushes no other.
    a, legacy, b = cells.context.create_stream(), cells.context.legacy, cells.context.create_stream()
    for _ in range(3):
        cells.fake.hold()
        mark(cells, a, 1)
        mark(cells, legacy, 2)
        mark(cells, b, 3)
        wait = b.wait_handle()
        cells.fake.held = False
        wait.block()
    assert len(executed(cells)) == 9


def test_synchronizing_legacy_waits_for_blocking_streams(cells):
    cells.fake.hold()
    a = cells.context.create_stream()
    mark(cells, a, 1)
    assert not cells.context.legacy.query()
    wait = cells.context.legacy.wait_handle()
    assert not wait.done()
    cells.fake.release()
    assert wait.done() and cells.context.legacy.query()


def test_stream_query_looks_at_its_own_work_only(cells):
    cells.fake.hold()
    a, b = cells.context.create_stream(), cells.context.create_stream()
    mark(cells, a, 1)
    assert not a.query() and b.query()


def test_a_wait_covers_what_was_there_when_it_was_made(cells):
    cells.fake.hold()
    stream = cells.context.create_stream(flags=1)
    mark(cells, stream, 1)
    wait = stream.wait_handle()
    mark(cells, stream, 2)
    cells.fake.step(queue_of(stream), 2)  # the first fill and its marker
    assert wait.done()
    assert not stream.query()


def test_block_returns_when_another_thread_lets_the_work_finish(cells):
    cells.fake.hold()
    mark(cells, cells.context.legacy, 1)
    wait = cells.context.legacy.wait_handle()
    thread = threading.Timer(0.05, cells.fake.release)
    thread.start()
    wait.block()
    assert executed(cells) == [queue_of(cells.context.legacy).name]
    thread.join()


def test_enqueuing_goes_on_while_a_thread_waits(cells):
    cells.fake.hold()
    stream = cells.context.create_stream(flags=1)
    mark(cells, stream, 1)
    thread = threading.Thread(target=stream.synchronize)
    thread.start()
    mark(cells, stream, 2)
    cells.fake.release()
    thread.join(10)
    assert not thread.is_alive()


def test_priorities_are_clamped(bench):
    least, greatest = bench.context.stream_priority_range
    assert (least, greatest) == (0, -5)
    assert bench.context.create_stream(priority=7).priority == least
    assert bench.context.create_stream(priority=-9).priority == greatest
    stream = bench.context.create_stream(priority=-2)
    stream.fill(bench.context.allocate(4), 0, 4, 1)
    assert queue_of(stream).priority == -2


def test_destroying_a_stream_leaves_its_work(cells):
    cells.fake.hold()
    stream = cells.context.create_stream()
    mark(cells, stream, 1)
    queue = queue_of(stream)
    stream.destroy()
    assert not queue.closed
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        mark(cells, stream, 2)
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        stream.destroy()
    # The default stream still waits for it.
    mark(cells, cells.context.legacy, 3)
    cells.context.flush()
    run_queues(cells, cells.context.legacy)
    assert executed(cells) == []
    cells.fake.release()
    cells.context.synchronize()
    cells.context.create_stream()
    assert queue.closed == 1


def test_default_streams_cannot_be_destroyed(bench):
    for stream in (bench.context.legacy, bench.context.per_thread(1)):
        with pytest.raises(CudaError, match="INVALID_HANDLE"):
            stream.destroy()


def test_ended_thread_gives_its_stream_back(cells):
    stream = cells.context.per_thread(1)
    mark(cells, stream, 1)
    queue = queue_of(stream)
    cells.context.end_thread(1)
    cells.context.synchronize()
    assert queue.closed == 1
    assert cells.context.per_thread(1) is not stream


def test_unknown_stream_flags(bench):
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        bench.context.create_stream(flags=2)


def test_host_calls_run_in_order(cells):
    seen = []
    stream = cells.context.create_stream()
    cells.fake.hold()
    stream.host_call(lambda: seen.append("first"))
    stream.host_call(lambda: seen.append("second"))
    assert seen == []
    cells.fake.release()
    stream.synchronize()
    assert seen == ["first", "second"]


def test_markers_are_closed_when_nobody_needs_them(cells):
    stream = cells.context.create_stream()
    for _ in range(10):
        mark(cells, stream, 1)
        stream.synchronize()
    assert sum(1 for m in cells.fake.markers if not m.closed) <= 2
    cells.driver.close()
    del stream
    assert all(m.closed == 1 for m in cells.fake.markers)


@pytest.mark.parametrize("refused", ["record", "wait", "flush"])
def test_backend_errors_in_joins_are_cuda_errors(cells, monkeypatch, refused):
    cells.fake.hold()
    a, legacy = cells.context.create_stream(), cells.context.legacy
    mark(cells, legacy, 1)
    mark(cells, a, 2)

    def fail(self, *arguments):
        raise BackendError("no", call=refused)

    monkeypatch.setattr(FakeQueue, refused, fail)
    with pytest.raises(CudaError, match=f"UNKNOWN.*{refused}"):
        mark(cells, legacy, 3)
    monkeypatch.undo()
    mark(cells, legacy, 3)
    cells.fake.release()
    cells.context.synchronize()


def test_a_host_copy_in_a_blocking_stream_waits_for_the_default_stream(cells):
    blocking, free = cells.context.create_stream(), cells.context.create_stream(flags=1)
    cells.fake.hold()
    mark(cells, cells.context.legacy, 9)
    assert free.turn().done()
    wait = blocking.turn()
    assert not wait.done()
    cells.fake.release()
    assert wait.done()
    assert cells.context.read(cells.cells[9], 1, blocking) == b"\x09"
