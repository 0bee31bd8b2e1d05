"""From the files of a trace to a writer, in the order in which calls return."""

from __future__ import annotations

import time
from typing import Protocol

from zluda.trace.calls import Call, Process
from zluda.trace.files import Trace

LATE_NS = 5_000_000
"""How long after a call has returned another that returned before it may still show up: between taking the time of its
return and writing it down a thread may be set aside."""


class Writer(Protocol):
    def process(self, process: Process) -> None: ...
    def call(self, call: Call) -> None: ...
    def finish(self, lost: int) -> None: ...
    def flush(self) -> None: ...


class Follower:
    """Gives a writer what has come since the last time."""

    def __init__(self, trace: Trace, writer: Writer) -> None:
        self._trace = trace
        self._writer = writer
        self._held: list[Call] = []
        self._said = 0

    def step(self) -> None:
        """Write what nothing can come before any more. Raises OSError of the writer, UnreadableTrace."""
        self._write(time.monotonic_ns() - LATE_NS)
        self._writer.flush()

    def finish(self) -> None:
        """Write all that is there, then what has not returned, and what was lost."""
        self._write(None)
        while self._trace.reached is not None:
            self._write(None)
        for call in self._trace.unfinished():
            self._writer.call(call)
        self._writer.finish(self._trace.count_lost())

    def _write(self, until: int | None) -> None:
        self._held += self._trace.read()
        self._held.sort(key=lambda call: call.end or 0)
        processes = self._trace.processes
        for process in processes[self._said :]:
            self._writer.process(process)
        self._said = len(processes)
        ready = len(self._held)
        reached = self._trace.reached
        if reached is not None:
            until = reached if until is None else min(until, reached)
        if until is not None:
            ready = next((i for i, call in enumerate(self._held) if (call.end or 0) > until), ready)
        for call in self._held[:ready]:
            self._writer.call(call)
        del self._held[:ready]
