"""Waiting for device work without holding anything up: points in queues, and sets of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError, Marker
from zluda.core.errors import CudaError, from_backend

if TYPE_CHECKING:
    from zluda.core.context import Context


class MarkerBin:
    """Markers that nobody refers to any more, to be closed by a thread that may call the backend."""

    def __init__(self) -> None:
        self._markers: deque[Marker] = deque()
        self._open = True

    def drop(self, marker: Marker) -> None:
        """Take a marker whose last reference went away, on any thread."""
        if self._open:
            self._markers.append(marker)
        else:
            marker.close()

    def empty(self) -> None:
        """Close what was dropped. The device's lock is held."""
        markers = self._markers
        while markers:
            markers.popleft().close()

    def close(self) -> None:
        """Empty the bin for good: later markers are closed as they come."""
        self._open = False
        self.empty()


class Point:
    """A place in a stream's order. Shared by events, streams and waits; its marker is closed after the last of them."""

    __slots__ = ("_bin", "_reached", "context", "marker")

    def __init__(self, context: Context, marker: Marker) -> None:
        self.context = context
        self.marker = marker
        self._bin = context.device.marker_bin
        self._reached = False

    def __del__(self) -> None:
        self._bin.drop(self.marker)

    def reached(self) -> bool:
        """Whether the device has come this far. Raises CudaError for work that failed, after marking the context."""
        if not self._reached:
            try:
                self._reached = self.marker.query()
            except BackendError as error:
                raise self._failed(error) from error
        return self._reached

    def block(self) -> None:
        """Wait until it has; called without locks."""
        if not self._reached:
            try:
                self.marker.synchronize()
            except BackendError as error:
                raise self._failed(error) from error
            self._reached = True

    def _failed(self, error: BackendError) -> CudaError:
        self._reached = True
        return self.context.fail(from_backend(error, executing=True))


class Wait:
    """Device work to be finished, taken at the moment of the call that returned it.

    Poll `done` or call `block`, from any thread, without locks. `then` actions run once, at the end, by
    whoever notices it.
    """

    def __init__(self, context: Context, points: Iterable[Point] = (), *, quiet: bool = False) -> None:
        self.context = context
        self._points = tuple(points)
        self._quiet = quiet
        self._error: CudaError | None = None
        self._actions: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def then(self, action: Callable[[], None]) -> Wait:
        """Do `action` when the work has finished, or failed; returns this wait."""
        self._actions.append(action)
        return self

    def done(self) -> bool:
        """Whether the work has finished. Raises CudaError once it has, if it failed or the context had failed."""
        for point in self._points:
            try:
                if not point.reached():
                    return False
            except CudaError as error:
                self._error = self._error or error
        self._finish()
        return True

    def block(self) -> None:
        """Return when the work has finished. Raises CudaError if it failed or the context had failed."""
        for point in self._points:
            try:
                point.block()
            except CudaError as error:
                self._error = self._error or error
        self._finish()

    def _finish(self) -> None:
        with self._lock:
            actions, self._actions = self._actions, []
        for action in actions:
            action()
        if not self._quiet:
            if self._error is not None:
                raise self._error
            self.context.check_sticky()
