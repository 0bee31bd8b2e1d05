"""Events: points in a stream that a program names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError
from zluda.core.errors import CudaError, from_backend, invalid_handle, invalid_value
from zluda.core.pool import settled
from zluda.core.wait import Point, Wait
from zluda.spec.types import enum

if TYPE_CHECKING:
    from zluda.core.context import Context
    from zluda.core.stream import Stream

_FLAGS = enum("CUevent_flags")
BLOCKING_SYNC = _FLAGS["CU_EVENT_BLOCKING_SYNC"]
DISABLE_TIMING = _FLAGS["CU_EVENT_DISABLE_TIMING"]
INTERPROCESS = _FLAGS["CU_EVENT_INTERPROCESS"]


class Event:
    """A CUevent. `flags` are CU_EVENT_*; interprocess events are refused with CUDA_ERROR_NOT_SUPPORTED."""

    def __init__(self, context: Context, flags: int = 0) -> None:
        if flags & ~(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS):
            raise invalid_value(f"unknown event flags {flags:#x}")
        if flags & INTERPROCESS:
            if not flags & DISABLE_TIMING:
                raise invalid_value("an interprocess event needs CU_EVENT_DISABLE_TIMING")
            raise CudaError("CUDA_ERROR_NOT_SUPPORTED", "interprocess events are not built")
        self.context = context
        self.flags = flags
        self._point: Point | None = None
        self._stream: Stream | None = None
        self._destroyed = False

    @property
    def timing(self) -> bool:
        """Whether the event measures time."""
        return not self.flags & DISABLE_TIMING

    def record(self, stream: Stream | None = None) -> None:
        """cuEventRecord: hold what is in `stream` now (the default stream if None).

        CUDA_ERROR_INVALID_HANDLE for a stream of another context.
        """
        self._check()
        stream = stream or self.context.legacy
        if stream.context is not self.context:
            raise invalid_handle("the event and the stream belong to different contexts")
        self._point = stream.mark(self.timing)
        self._stream = stream

    def query(self) -> bool:
        """cuEventQuery: whether the recorded work has finished; True before the first record."""
        self._check()
        self.context.check()
        point = self._point
        if point is None:
            return True
        self._flush()
        return point.reached()

    def synchronize(self) -> None:
        """cuEventSynchronize: wait for the recorded work."""
        self.wait_handle().block()

    def wait_handle(self) -> Wait:
        """The recorded work, to be waited for."""
        self._check()
        self.context.check()
        self._flush()
        return settled(Wait(self.context, [self._point] if self._point else []))

    def elapsed(self, end: Event) -> float:
        """cuEventElapsedTime: milliseconds from this event to `end`.

        CUDA_ERROR_INVALID_HANDLE if either was never recorded, does not time, or belongs to another device;
        CUDA_ERROR_NOT_READY if either has not been reached.
        """
        for event in (self, end):
            event._check()
            if not event.timing:
                raise invalid_handle("an event was created with CU_EVENT_DISABLE_TIMING")
            if event._point is None:
                raise invalid_handle("an event was never recorded")
        if self.context.device is not end.context.device:
            raise invalid_handle("the events belong to different devices")
        first, last = self._point, end._point
        assert first is not None and last is not None
        self._flush()
        end._flush()
        if not (first.reached() and last.reached()):
            raise CudaError("CUDA_ERROR_NOT_READY", "an event has not been reached")
        try:
            return first.marker.elapsed(last.marker)
        except BackendError as error:
            raise from_backend(error) from error

    def destroy(self) -> None:
        """cuEventDestroy: returns at once; work that waits for the event goes on."""
        self._check()
        self._destroyed = True
        self._point = self._stream = None

    @property
    def point(self) -> Point | None:
        """What was recorded last."""
        return self._point

    def _check(self) -> None:
        if self._destroyed:
            raise invalid_handle("the event was destroyed")

    def _flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def close(self) -> None:
        """Let go of what was recorded; the context is being emptied."""
        self._destroyed = True
        self._point = self._stream = None
