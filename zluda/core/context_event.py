"""Events of whole contexts: one that holds all work of a context, and a context that waits for one.

CUDA driver API, cuCtxRecordEvent and cuCtxWaitEvent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zluda.core.errors import invalid_handle
from zluda.core.stream import NON_BLOCKING

if TYPE_CHECKING:
    from zluda.core.context import Context
    from zluda.core.event import Event


def record(context: Context, event: Event) -> None:
    """Hold in `event` what is in any stream of `context` now. CUDA_ERROR_INVALID_HANDLE for another context's event."""
    if event.context is not context:
        raise invalid_handle("the event is another context's")
    with context.device.lock:
        if context.gatherer is None:
            context.gatherer = context.create_stream(NON_BLOCKING)
        queue = context.gatherer.enter()
        for stream in context.streams():
            if stream is not context.gatherer:
                stream._hold_up(queue)
        event.record(context.gatherer)


def wait(context: Context, event: Event) -> None:
    """Let all later work of `context`, in streams that are and that will be, wait for what `event` holds now."""
    context.check()
    event._check()
    point = event.point
    if point is None or point.reached():
        return
    event._flush()
    with context.device.lock:
        context.gates = [gate for gate in context.gates if not gate.reached()]
        for stream in context.streams():
            stream.hold(point)
        context.gates.append(point)
