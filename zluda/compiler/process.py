"""A helper process as its starter sees it: start, talk with deadlines, tell how it died, kill."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from zluda.compiler.channel import Channel
from zluda.compiler.errors import CompileError, Kind

_START_LIMIT = 60.0
"""Seconds for a process to come up, on a busy machine."""

_LOG_TAIL = 16 << 10
"""Bytes of a dead process's standard error that its CompileError shows."""


class Process:
    """A Python process that runs `main(descriptor of its channel, pid of this process)` of a module of ours.

    It finds packages where this process does. Raises CompileError (died) when it cannot be started.
    """

    def __init__(self, what: str, module: str, *, setup: str = "", new_session: bool) -> None:
        """`what` names the process in messages; `setup` are statements to run first; `new_session` makes it a group of
        its own, so that `kill` ends what it has started too."""
        if not sys.executable:
            raise CompileError(
                f"The {what} needs the path of a Python; this process has no sys.executable", kind="died"
            )
        self._what = what
        self._group = new_session
        self._ready = False
        ours, theirs = socket.socketpair()
        # Its standard output and error: for the CompileError when it dies.
        self._said = os.memfd_create("zluda-process-output")
        fcntl.fcntl(self._said, fcntl.F_SETFL, os.O_APPEND | fcntl.fcntl(self._said, fcntl.F_GETFL))
        program = (
            f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); {setup}"
            f"from {module} import main; main({theirs.fileno()}, {os.getpid()})"
        )
        path = [entry or str(Path.cwd()) for entry in sys.path]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program, json.dumps(path)],
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                pass_fds=(theirs.fileno(),),
                start_new_session=new_session,
            )
        except OSError as error:
            ours.close()
            os.close(self._said)
            raise CompileError(f"The {what} cannot be started: {error}", kind="died") from error
        finally:
            theirs.close()
        self._channel = Channel(ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._said >= 0 and self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Waits for the frame that a process sends when it has come up. Raises CompileError."""
        if not self._ready:
            limit = time.monotonic() + _START_LIMIT
            self.receive(f"start of the {self._what}", since=limit - _START_LIMIT, deadline=limit)
            self._ready = True

    def send(
        self, what: str, header: dict[str, Any], blob: bytes, *, since: float = 0.0, deadline: float | None = None
    ) -> None:
        """One frame to the process, in the course of `what`. Raises CompileError; the process is gone then."""
        os.ftruncate(self._said, 0)
        try:
            self._channel.send(header, blob, deadline=deadline)
        except TimeoutError:
            raise self._late(what, since, deadline) from None
        except EOFError:
            raise self._dead(what) from None

    def receive(self, what: str, *, since: float = 0.0, deadline: float | None = None) -> tuple[dict[str, Any], bytes]:
        """One frame from the process; `deadline` counts from `since`, both of time.monotonic().

        Raises CompileError (timeout, died); the process is gone then.
        """
        try:
            return self._channel.receive(deadline=deadline)
        except TimeoutError:
            raise self._late(what, since, deadline) from None
        except EOFError:
            raise self._dead(what) from None

    def said(self) -> str:
        """The end of what the process has printed since the last `send`."""
        size = os.fstat(self._said).st_size
        return os.pread(self._said, _LOG_TAIL, max(0, size - _LOG_TAIL)).decode(errors="replace")

    def _late(self, what: str, since: float, deadline: float | None) -> CompileError:
        self.kill()
        limit = (deadline or since) - since
        return self._end(f"{what}: it took more than {limit:.3g} s and was ended", "timeout")

    def _dead(self, what: str) -> CompileError:
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        return self._end(f"{what}: the {self._what} {how_it_ended(code)}", "died")

    def _end(self, message: str, kind: Kind) -> CompileError:
        said = self.said()
        self.close()
        return CompileError(with_fatal_line(message, said), kind=kind, log=said)

    def kill(self) -> None:
        """End the process, and its group if it has one of its own. Harmless when it is gone; from any thread."""
        if self._process.poll() is None:
            try:
                if self._group:
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()
            except ProcessLookupError:
                # It ended in between.
                return

    def close(self) -> None:
        """End the process and release what is held for it. Harmless twice."""
        if self._said < 0:
            return
        self.kill()
        self._process.wait()
        self._channel.close()
        os.close(self._said)
        self._said = -1


def how_it_ended(code: int) -> str:
    """A return code as subprocess gives it, in words: a signal's name for negative ones."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def with_fatal_line(message: str, said: str) -> str:
    """A message with the line by which LLVM told why it gave up, if there is one."""
    fatal = next((line for line in said.splitlines() if "LLVM ERROR" in line or "Assertion" in line), "")
    return f"{message}: {fatal}" if fatal else message
