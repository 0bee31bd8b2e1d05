"""Streams and events."""

# ruff: noqa: ARG001 - every handler takes the state and the context first
from __future__ import annotations

from zluda.core import CudaError, StreamKind, Wait, context_event
from zluda.server.dispatch import handles
from zluda.server.state import State

NOT_READY = "CUDA_ERROR_NOT_READY"


@handles("stream_create")
def stream_create(state: State, handle: int, stream: int, flags: int, priority: int) -> None:
    state.streams[stream] = state.context(handle).context.create_stream(flags, priority)


@handles("stream_destroy")
def stream_destroy(state: State, handle: int, stream: int) -> None:
    found = state.streams.pop(stream, None)
    if found is not None:
        found.destroy()


@handles("stream_priority")
def stream_priority(state: State, handle: int, stream: int, priority: int, _: int) -> None:
    state.stream(state.context(handle), stream).set_priority(priority)


@handles("context_record")
def context_record(state: State, handle: int, event: int) -> None:
    context_event.record(state.context(handle).context, state.event(event))


@handles("context_wait")
def context_wait(state: State, handle: int, event: int) -> None:
    context_event.wait(state.context(handle).context, state.event(event))


@handles("thread_end")
def thread_end(state: State, handle: int, stream: int) -> None:
    """A thread of the client is gone, and its default streams with it."""
    for record in list(state.contexts.values()):
        if record.context.active:
            record.context.end_thread(stream)


@handles("cuStreamSynchronize")
def stream_synchronize(state: State, handle: int, stream: int) -> Wait:
    return state.stream(state.context(handle), stream).wait_handle()


@handles("cuStreamQuery")
def stream_query(state: State, handle: int, stream: int) -> None:
    if not state.stream(state.context(handle), stream).query():
        raise CudaError(NOT_READY)


@handles("event_wait")
def event_wait(state: State, handle: int, stream: int, event: int) -> None:
    state.stream(state.context(handle), stream).wait_event(state.event(event))


@handles("turn")
def turn(state: State, handle: int, wire: int) -> Wait:
    """When a synchronous copy in the stream may touch memory: behind its work and what its order implies."""
    record = state.context(handle)
    stream = state.stream(record, wire)
    if stream.kind is StreamKind.LEGACY:
        return stream.wait_handle()
    # A point of its own: taking it makes a blocking stream wait for the default stream's work first.
    point = stream.mark()
    stream.flush()
    return Wait(record.context, [point])


@handles("event_create")
def event_create(state: State, handle: int, event: int, flags: int) -> None:
    state.events[event] = state.context(handle).context.create_event(flags)


@handles("event_destroy")
def event_destroy(state: State, handle: int, event: int) -> None:
    found = state.events.pop(event, None)
    if found is not None:
        found.destroy()


@handles("event_record")
def event_record(state: State, handle: int, event: int, stream: int) -> None:
    state.event(event).record(state.stream(state.context(handle), stream))


@handles("cuEventQuery")
def event_query(state: State, handle: int, event: int) -> None:
    if not state.event(event).query():
        raise CudaError(NOT_READY)


@handles("cuEventSynchronize")
def event_synchronize(state: State, handle: int, event: int) -> Wait:
    return state.event(event).wait_handle()


@handles("cuEventElapsedTime")
@handles("cuEventElapsedTime_v2")
def event_elapsed_time(state: State, handle: int, start: int, end: int) -> tuple[float]:
    return (state.event(start).elapsed(state.event(end)),)
