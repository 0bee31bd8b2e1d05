"""A trace as a timeline for Perfetto (ui.perfetto.dev) or chrome://tracing: Chrome's trace-event format, in JSON.

Threads of the host are tracks, and so are CUDA streams. What a device does when is not known here: on a stream's track
stands what was put into it, in that order, at the time of the call that did.
"""

from __future__ import annotations

import json
import re
from typing import Any, TextIO

from zluda.trace.calls import Call, Process, Thread
from zluda.trace.values import arguments, member, parameters, result_name

_WORK = re.compile(
    r"cu(Launch|Memcpy|Memset|EventRecord|GraphLaunch|Mem\w*Async|FabricCpy"
    r"|Stream(WaitEvent|WaitValue|WriteValue|BatchMemOp|AddCallback|AttachMemAsync))"
)
_STREAM_TRACKS = 1 << 30
"""Numbers of tracks beyond those of threads."""
_LEGACY, _PER_THREAD = 1, 2
_BRIEF = 1
"""ns: the least that an event lasts, so that it can be seen."""


class ChromeWriter:
    """Writes events as they come. Times are microseconds of CLOCK_MONOTONIC since `origin` ns."""

    def __init__(self, file: TextIO, origin: int) -> None:
        self._file = file
        self._origin = origin
        self._first = True
        self._threads: set[int] = set()
        self._streams: dict[tuple[int, int, int], int] = {}
        self._busy: dict[int, int] = {}
        """Until when a stream's track is taken."""
        self._last = origin
        file.write('{"displayTimeUnit": "ns", "traceEvents": [')

    def process(self, process: Process) -> None:
        name = " ".join(process.command) or str(process.number)
        self._event(ph="M", name="process_name", pid=process.number, tid=0, args={"name": name})

    def call(self, call: Call) -> None:
        thread = call.thread
        self._name(thread)
        end = call.end or max(self._last, call.start)
        self._last = max(self._last, end)
        result = "did not return" if call.result is None else result_name(call.result)
        given = {**parameters(call), "result": result}
        pid = thread.process.number
        self._slice(call.entry.symbol, "host", pid, thread.number, call.start, end, given)
        if call.result == 0 and _WORK.match(call.entry.function.name):
            self._put(call, end, given)

    def finish(self, lost: int) -> None:
        """After the last call; `lost` records are missing."""
        self._file.write(f'\n], "otherData": {{"lost_records": {lost}}}}}\n')
        self._file.flush()

    def flush(self) -> None:
        self._file.flush()

    def _put(self, call: Call, end: int, given: dict[str, str]) -> None:
        """On the track of the call's stream; a slice there never begins before the one before it ends."""
        pid = call.thread.process.number
        track = self._track(call)
        start = max(call.start, self._busy.get(track, 0))
        end = max(end, start + _BRIEF)
        self._busy[track] = end
        name, category = call.entry.symbol, "enqueued"
        if call.kernel:
            name = call.kernel.name
            given = {**given, "arguments": ", ".join(arguments(call))}
        given = {"times": "of the call that enqueued it, not the device's", **given}
        self._slice(name, category, pid, track, start, end, given)

    def _track(self, call: Call) -> int:
        stream = next(
            (w for p, w in zip(call.entry.function.parameters, call.words, strict=True) if p.type == "CUstream"), 0
        )
        stream = stream or member(call, "CUlaunchConfig", "hStream") or 0
        stream = stream or (_PER_THREAD if call.entry.per_thread else _LEGACY)
        thread = call.thread.number if stream == _PER_THREAD else 0
        key = call.thread.process.number, stream, thread
        if key not in self._streams:
            track = self._streams[key] = _STREAM_TRACKS + len(self._streams)
            name = {_LEGACY: "legacy default stream", _PER_THREAD: f"default stream of thread {thread}"}.get(
                stream, f"stream {stream:#x}"
            )
            self._label(key[0], track, f"{name} (order of enqueueing)")
        return self._streams[key]

    def _name(self, thread: Thread) -> None:
        if thread.number not in self._threads:
            self._threads.add(thread.number)
            self._label(thread.process.number, thread.number, thread.name)

    def _label(self, pid: int, tid: int, name: str) -> None:
        self._event(ph="M", name="thread_name", pid=pid, tid=tid, args={"name": name})

    def _slice(self, name: str, cat: str, pid: int, tid: int, start: int, end: int, args: dict[str, str]) -> None:
        ts, dur = (start - self._origin) / 1e3, (end - start) / 1e3
        self._event(ph="X", name=name, cat=cat, pid=pid, tid=tid, ts=ts, dur=dur, args=args)

    def _event(self, **event: Any) -> None:
        self._file.write(("\n" if self._first else ",\n") + json.dumps(event, ensure_ascii=False))
        self._first = False
