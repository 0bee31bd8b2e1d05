"""The files of a trace, read while they are being written or afterwards."""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from zluda.spec.protocol import protocol
from zluda.spec.trace import entries, identity
from zluda.trace.calls import Call, Kernel, Process, Thread

_spec = protocol()
_VALUES = _spec.constants
_file = _spec.structures["trace_file"].compiled()
_record = _spec.structures["trace_record"].compiled()


class UnreadableTrace(Exception):
    """The files are no trace of this build; the message says why."""


class _Header(NamedTuple):
    magic: int
    identity: bytes
    started: int
    process: int
    thread: int
    sequence: int
    closed: int
    lost: int
    name: bytes
    used: int


class _Reading:
    """A thread's files, one after another."""

    def __init__(self) -> None:
        self.waiting: dict[int, Path] = {}
        """Files by their place in the sequence."""
        self.sequence = 0
        self.at = 0
        self.thread: Thread | None = None
        self.reached: int | None = None
        """There is more to read: up to this time, in ns, nothing is missing."""


class Trace:
    """The folder of a trace. `consume`: files are removed once all of theirs is read."""

    def __init__(self, folder: Path, consume: bool = False) -> None:
        self._folder = folder
        self._consume = consume
        self._readings: dict[tuple[str, int], _Reading] = defaultdict(_Reading)
        self._known: set[str] = set()
        self._processes: dict[str, Process] = {}

    @property
    def processes(self) -> list[Process]:
        """Those seen so far."""
        return list(self._processes.values())

    def earliest(self) -> int:
        """When the first process made its first call, in ns; 0 if there is none. May raise UnreadableTrace."""
        self._look()
        return min((process.started for process in self._processes.values()), default=0)

    @property
    def reached(self) -> int | None:
        """The time in ns up to which all is read that was there, where `read` has left something; None: all of it."""
        return min((r.reached for r in self._readings.values() if r.reached is not None), default=None)

    def read(self) -> list[Call]:
        """The calls that have returned since the last time, by when they did; of a thread no more than is in one file,
        so that whoever falls behind needs no more memory. Raises UnreadableTrace."""
        self._look()
        found = [call for reading in self._readings.values() for call in self._calls(reading)]
        return sorted(found, key=lambda call: call.end or 0)

    def unfinished(self) -> list[Call]:
        """Calls that have not returned, by when they began."""
        threads = [r.thread for r in self._readings.values() if r.thread]
        return sorted((call for thread in threads for call in thread.calls), key=lambda call: call.start)

    def count_lost(self) -> int:
        """Bring every process's `lost` up to date; their sum."""
        for key, process in self._processes.items():
            header = _header(self._folder / f"{key}.process")
            process.lost = header.lost if header else process.lost
        return sum(process.lost for process in self._processes.values())

    def _look(self) -> None:
        """Take note of new files."""
        names = sorted(set(os.listdir(self._folder)) - self._known)  # noqa: PTH208 - often, for names alone
        for name in names:
            key, _, kind = name.rpartition(".")
            path = self._folder / name
            if kind == "process" and (header := _header(path)):
                with path.open("rb") as file:
                    text = file.read(_file.size + header.used)[_file.size :]
                command = tuple(os.fsdecode(part) for part in text.split(b"\0")[:-1])
                self._processes[key] = Process(header.process, header.started, command)
            elif kind == "calls":
                process, serial, sequence = key.rsplit("-", 2)
                self._readings[process, int(serial)].waiting[int(sequence)] = path
            else:
                continue
            self._known.add(name)

    def _calls(self, reading: _Reading) -> Iterator[Call]:
        reading.reached = None
        last = 0
        while path := reading.waiting.get(reading.sequence):
            if last:
                reading.reached = last
                return
            header = _header(path)
            if header is None:
                return
            closed = header.closed
            if closed:  # nothing is added after this is set: what is read now is all
                header = _header(path) or header
            if reading.thread is None:
                process = self._processes.get(path.name.rsplit("-", 2)[0])
                if process is None:
                    return
                reading.thread = Thread(process, header.thread, header.name.rstrip(b"\0").decode(errors="replace"))
            with path.open("rb") as file:
                file.seek(_file.size + reading.at)
                data = file.read(header.used - reading.at)
            for call in _parse(reading.thread, data):
                last = call.end or 0
                yield call
            reading.at = header.used
            if not closed:
                return
            if self._consume:
                path.unlink(missing_ok=True)
            del reading.waiting[reading.sequence]
            reading.sequence += 1
            reading.at = 0


def _header(path: Path) -> _Header | None:
    """None for a file that is not filled in yet. Raises UnreadableTrace for one of another build."""
    try:
        with path.open("rb") as file:
            data = file.read(_file.size)
    except FileNotFoundError:
        return None
    if len(data) < _file.size:
        return None
    header = _Header._make(_file.unpack(data))
    if not header.magic:
        return None
    if header.magic != _VALUES["TRACE_MAGIC"] or header.identity != identity():
        raise UnreadableTrace(f"{path} was written by another build of Zluda, or is no trace")
    return header


def _parse(thread: Thread, data: bytes) -> Iterator[Call]:
    table, calls, kernels = entries(), thread.calls, thread.process.kernels
    at, end = 0, len(data)
    while at < end:
        kind, index, size, value = _record.unpack_from(data, at)
        content = at + _record.size
        at += size
        if size < _record.size or at > end:
            raise UnreadableTrace(f"the trace of thread {thread.number} is damaged")
        if kind == _VALUES["TRACE_CALL"]:
            words = struct.unpack_from(f"<{(at - content) // 8}Q", data, content)
            calls.append(Call(thread, table[index], value, words))
        elif kind == _VALUES["TRACE_KERNEL"]:
            kernels[value] = _kernel(data[content:at])
        elif not calls:  # its beginning was lost
            continue
        elif kind == _VALUES["TRACE_RETURN"]:
            call = calls.pop()
            call.result, call.end = index, value
            yield call
        elif kind == _VALUES["TRACE_VALUE"]:
            calls[-1].values[index] = data[content : content + value]
        elif kind == _VALUES["TRACE_ARGUMENTS"]:
            calls[-1].launched, calls[-1].arguments = value, data[content:at]


def _kernel(data: bytes) -> Kernel:
    (count,) = struct.unpack_from("<Q", data)
    numbers = struct.unpack_from(f"<{2 * count}I", data, 8)
    name = data[8 + 8 * count :].split(b"\0")[0].decode(errors="replace")
    return Kernel(name, tuple(zip(numbers[::2], numbers[1::2], strict=True)))
