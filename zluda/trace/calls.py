"""What a trace is made of: processes, their threads, and the calls of those."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from zluda.spec.trace import Entry


class Kernel(NamedTuple):
    """A kernel's name, and where its parameters lie in the packed arguments: (offset, size) of each."""

    name: str
    parameters: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Process:
    """A process that has made calls. Times are of CLOCK_MONOTONIC in ns."""

    number: int
    started: int
    command: tuple[str, ...]
    kernels: dict[int, Kernel] = field(default_factory=dict)
    lost: int = 0
    """Records for which the process could make no file."""


@dataclass(slots=True)
class Thread:
    process: Process
    number: int
    name: str
    calls: list[Call] = field(default_factory=list)
    """Those it is in: a host function or a signal handler may call within a call."""


@dataclass(slots=True)
class Call:
    """A call; `end` and `result` are None while it has not returned."""

    thread: Thread
    entry: Entry
    start: int
    words: tuple[int, ...]
    """The parameters, as their first 8 bytes."""
    values: dict[int, bytes] = field(default_factory=dict)
    """What some of them point to, by number (zluda.spec.trace.pointee)."""
    launched: int | None = None
    """The function that was launched, the key of its kernel."""
    arguments: bytes = b""
    end: int | None = None
    result: int | None = None

    @property
    def kernel(self) -> Kernel | None:
        """The kernel that was launched, if any."""
        return None if self.launched is None else self.thread.process.kernels.get(self.launched)
