"""Executable graphs: recorded commands that are enqueued again and again.

The shape of a graph, its nodes' parameters and captures live in the client, which answers for them at once. What comes
here is the outcome of an instantiation: the commands in an order that keeps every dependency. A launch enqueues them
into one stream, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zluda.core.copies import Copy3D
from zluda.core.errors import invalid_value

if TYPE_CHECKING:
    from zluda.core.context import Context
    from zluda.core.event import Event
    from zluda.core.function import Function
    from zluda.core.stream import Stream


class Step(Protocol):
    """One command of a graph."""

    def enqueue(self, stream: Stream) -> None:
        """Enqueue it; errors as the stream's own methods."""


class NoStep:
    """An empty node, a disabled one, or one that the client runs itself."""

    def enqueue(self, stream: Stream) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A launch; `arguments` is the packed parameter block."""

    function: Function
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: bytes

    def enqueue(self, stream: Stream) -> None:
        self.function.launch(self.grid, self.block, self.arguments, self.shared_bytes, stream)


@dataclass(frozen=True, slots=True)
class CopyStep:
    """A copy of `depth` slices of `height` rows of `width` bytes; pitches in bytes, `*_height` in rows a slice."""

    destination: int
    destination_pitch: int
    destination_height: int
    source: int
    source_pitch: int
    source_height: int
    width: int
    height: int
    depth: int

    def enqueue(self, stream: Stream) -> None:
        if self.height == self.depth == 1:
            stream.copy(self.destination, self.source, self.width)
            return
        request = Copy3D(
            width=self.width,
            height=self.height,
            depth=self.depth,
            source=self.source,
            destination=self.destination,
            source_pitch=self.source_pitch,
            destination_pitch=self.destination_pitch,
            source_height=self.source_height,
            destination_height=self.destination_height,
        )
        stream.copy_3d(request)


@dataclass(frozen=True, slots=True)
class FillStep:
    """A fill of `height` rows of `width` elements of `value_bytes` bytes each."""

    destination: int
    pitch: int
    value: int
    value_bytes: int
    width: int
    height: int

    def enqueue(self, stream: Stream) -> None:
        if self.height == 1:
            stream.fill(self.destination, self.value, self.value_bytes, self.width)
        else:
            stream.fill_2d(self.destination, self.pitch, self.value, self.value_bytes, self.width, self.height)


@dataclass(frozen=True, slots=True)
class RecordStep:
    """Records an event each time."""

    event: Event

    def enqueue(self, stream: Stream) -> None:
        self.event.record(stream)


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Waits for what an event holds when the graph is launched."""

    event: Event

    def enqueue(self, stream: Stream) -> None:
        stream.wait_event(self.event)


class ExecutableGraph:
    """A CUgraphExec. All steps are in one context; the launching stream may be in another."""

    def __init__(self, context: Context, steps: Sequence[Step]) -> None:
        self.context = context
        self._steps = list(steps)
        self._last: Stream | None = None
        self._own: Stream | None = None

    def __len__(self) -> int:
        return len(self._steps)

    def replace(self, index: int, step: Step) -> None:
        """Another command at this place, for launches from now on. CUDA_ERROR_INVALID_VALUE for no such place."""
        if not 0 <= index < len(self._steps):
            raise invalid_value(f"no step {index} in a graph of {len(self._steps)}")
        self._steps[index] = step

    def replace_all(self, steps: Sequence[Step]) -> None:
        """Other commands throughout, for launches from now on."""
        self._steps = list(steps)

    def launch(self, stream: Stream, first: int = 0, count: int | None = None) -> None:
        """cuGraphLaunch: enqueue `count` steps (all if None), behind the stream's work and earlier launches.

        In a stream of another context they run in a stream of their own, between two waits.
        """
        steps = self._steps[first : len(self._steps) if count is None else first + count]
        where = stream if stream.context is self.context else self._own_stream()
        if where is not stream:
            begin = stream.mark()
            stream.flush()
            where.wait_point(begin)
        last = self._last
        if last is not None and last is not where:
            where.wait_for(last)
        self._last = where
        for step in steps:
            step.enqueue(where)
        if where is not stream:
            end = where.mark()
            where.flush()
            stream.wait_point(end)

    def _own_stream(self) -> Stream:
        if self._own is None:
            self._own = self.context.create_stream(1)
        return self._own

    def close(self) -> None:
        """Let go of the steps; launches that were enqueued go on. Twice is harmless."""
        own, self._own, self._last = self._own, None, None
        self._steps = []
        if own is not None and not own.destroyed:
            own.destroy()
