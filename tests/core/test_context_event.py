"""Events of whole contexts, and streams whose priority changes."""

from __future__ import annotations

import pytest

from zluda.core import CudaError, context_event


def filled(stream, address, value):
    stream.fill(address, value, 1, 1)


def test_an_event_holds_the_work_of_all_streams(bench):
    context = bench.context
    address = context.allocate(8)
    streams = [context.create_stream(flags=1), context.create_stream(), context.legacy, context.per_thread(1)]
    event = context.create_event()
    bench.fake.hold()
    for number, stream in enumerate(streams):
        filled(stream, address + number, 1)
    context_event.record(context, event)
    filled(streams[0], address + 5, 1)
    context.flush()
    for stream in streams[1:]:
        while stream._queue.step():
            pass
    while context.gatherer._queue.step():
        pass
    assert not event._point.marker.reached
    bench.fake.step(streams[0]._queue, 2)  # its first fill, and the marker that was waited for
    while context.gatherer._queue.step():
        pass
    assert event._point.marker.reached
    assert context.device.driver.window.view(address + 5, 1)[0] == 0
    bench.fake.release()
    context.synchronize()


def test_a_context_waits_in_streams_old_and_new(bench):
    context = bench.context
    address = context.allocate(8)
    first, old = context.create_stream(flags=1), context.create_stream(flags=1)
    event = context.create_event()
    filled(old, address, 1)
    context.synchronize()
    bench.fake.hold()
    filled(first, address + 1, 1)
    event.record(first)
    context_event.wait(context, event)
    new = context.create_stream(flags=1)
    filled(old, address + 2, 1)
    filled(new, address + 3, 1)
    context.flush()
    for stream in (old, new):
        while stream._queue.step():
            pass
    assert bytes(context.device.driver.window.view(address, 4)) == b"\1\0\0\0"
    bench.fake.release()
    context.synchronize()
    assert bytes(context.device.driver.window.view(address, 4)) == b"\1\1\1\1"
    context_event.wait(context, event)
    context_event.wait(context, context.create_event())
    assert context.gates == [event._point]


def test_what_is_refused(bench):
    other = bench.device.create_context()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        context_event.record(bench.context, other.create_event())
    gone = bench.context.create_event()
    gone.destroy()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        context_event.record(bench.context, gone)
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        context_event.wait(bench.context, gone)


def test_a_new_priority_keeps_the_order(bench):
    context = bench.context
    stream = context.create_stream(flags=1)
    stream.set_priority(-3)
    address = context.allocate(4)
    bench.fake.hold()
    filled(stream, address, 1)
    first = stream._queue
    assert first.priority == -3
    stream.set_priority(-99)
    filled(stream, address, 2)
    stream.flush()
    second = stream._queue
    assert second is not first and second.priority == stream.priority == -5
    while second.step():
        pass
    assert context.device.driver.window.view(address, 1)[0] == 0
    bench.fake.release()
    stream.synchronize()
    assert context.device.driver.window.view(address, 1)[0] == 2
    context.synchronize()
    assert first.closed == 1 and not second.closed
