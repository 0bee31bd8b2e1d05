"""A trace as text: a line per call, as it returns."""

from __future__ import annotations

from typing import TextIO

from zluda.trace.calls import Call, Process
from zluda.trace.values import parameters, result_name


class TextWriter:
    """Lines `SECONDS [THREAD] CALL(PARAMETERS) = RESULT DURATION`; seconds count from `origin`, CLOCK_MONOTONIC ns."""

    def __init__(self, file: TextIO, origin: int) -> None:
        self._file = file
        self._origin = origin

    def process(self, process: Process) -> None:
        self._file.write(f"# process {process.number}: {' '.join(process.command)}\n")

    def call(self, call: Call) -> None:
        if call.end is None or call.result is None:
            self._file.write(f"{self._beginning(call)} did not return\n")
            return
        took = (call.end - call.start) / 1e3
        self._file.write(f"{self._beginning(call)} = {result_name(call.result)} {took:.1f} µs\n")

    def finish(self, lost: int) -> None:
        """After the last call; `lost` records are missing."""
        if lost:
            self._file.write(f"# {lost} records are missing: there was no room for them on the disk\n")
        self._file.flush()

    def flush(self) -> None:
        self._file.flush()

    def _beginning(self, call: Call) -> str:
        seconds = (call.start - self._origin) / 1e9
        given = ", ".join(f"{name}={text}" for name, text in parameters(call).items())
        return f"{seconds:11.6f} [{call.thread.number}] {call.entry.symbol}({given})"
