"""Events, after the manual's section on event management."""

import pytest

from zluda.core import CudaError


@pytest.fixture
def work(bench):
    address = bench.context.allocate(64)
    bench.work = lambda stream=None: (stream or bench.context.legacy).fill(address, 1, 1, 64)
    return bench


def test_an_event_never_recorded_is_an_empty_set_of_work(bench):
    event = bench.context.create_event()
    assert event.query()
    event.synchronize()
    bench.context.legacy.wait_event(event)
    assert bench.fake.queues == []


def test_query_and_synchronize(work):
    event = work.context.create_event()
    work.fake.hold()
    work.work()
    event.record()
    assert not event.query()
    wait = event.wait_handle()
    assert not wait.done()
    work.fake.release()
    wait.block()
    assert event.query()


def test_recording_again_replaces_what_was_captured(work):
    event = work.context.create_event()
    event.record()
    event.synchronize()
    work.fake.hold()
    work.work()
    event.record()
    assert not event.query()


def test_elapsed_is_device_time(work):
    start, end = work.context.create_event(), work.context.create_event()
    start.record()
    for _ in range(3):
        work.work()
    end.record()
    end.synchronize()
    # The fake's clock counts a millisecond a command: three fills and the second record.
    assert start.elapsed(end) == 4.0


def test_elapsed_errors(work):
    timed, untimed, never = work.context.create_event(), work.context.create_event(flags=2), work.context.create_event()
    timed.record()
    untimed.record()
    for start, end in ((timed, untimed), (untimed, timed), (timed, never), (never, timed)):
        with pytest.raises(CudaError, match="INVALID_HANDLE"):
            start.elapsed(end)
    work.fake.hold()
    work.work()
    late = work.context.create_event()
    late.record()
    with pytest.raises(CudaError, match="NOT_READY"):
        timed.elapsed(late)


def test_stream_waits_for_an_event_of_another(work):
    a, b = work.context.create_stream(flags=1), work.context.create_stream(flags=1)
    event = work.context.create_event(flags=2)
    work.fake.hold()
    work.work(a)
    event.record(a)
    b.wait_event(event)
    work.work(b)
    work.context.flush()
    with work.fake.changed:
        while b._queue.step():
            pass
    assert "fill" not in [what for name, what in work.fake.order if name == b._queue.name]
    work.fake.release()
    b.synchronize()
    fills = [name for name, what in work.fake.order if what == "fill"]
    assert fills == [a._queue.name, b._queue.name]


def test_later_records_do_not_move_a_wait(work):
    a, b = work.context.create_stream(flags=1), work.context.create_stream(flags=1)
    event = work.context.create_event(flags=2)
    work.fake.hold()
    work.work(a)
    event.record(a)
    b.wait_event(event)
    work.work(b)
    work.work(a)
    event.record(a)
    work.context.flush()
    work.fake.step(a._queue, 2)
    work.fake.step(b._queue, 2)
    assert [name for name, what in work.fake.order if what == "fill"] == [a._queue.name, b._queue.name]


def test_event_in_the_default_stream_covers_blocking_streams(work):
    stream = work.context.create_stream()
    event = work.context.create_event()
    work.fake.hold()
    work.work(stream)
    event.record()
    work.context.flush()
    with work.fake.changed:
        while work.context.legacy._queue.step():
            pass
    assert not event._point.marker.reached
    work.fake.release()
    assert event.query()


def test_flags(bench):
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        bench.context.create_event(flags=8)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        bench.context.create_event(flags=4)
    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
        bench.context.create_event(flags=4 | 2)
    bench.context.create_event(flags=1)


def test_event_and_stream_of_different_contexts(bench):
    other = bench.device.create_context()
    event = bench.context.create_event()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        event.record(other.legacy)
    other.destroy()


def test_destroyed_event(work):
    event = work.context.create_event()
    event.record()
    event.destroy()
    for call in (event.record, event.query, event.synchronize, event.destroy):
        with pytest.raises(CudaError, match="INVALID_HANDLE"):
            call()


def test_polling_an_event_starts_the_work_before_it(work):
    # Nothing else is called, so `query` itself must flush.
    event = work.context.create_event()
    work.work()
    event.record()
    assert event.query()
