"""One worker process as its parent sees it: start, talk with deadlines, tell how it died, kill."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zluda.compiler.errors import CompileError, Kind
from zluda.compiler.kernel import CompiledImage
from zluda.compiler.wire import Channel, unpack

_log = logging.getLogger("zluda.compiler")

_START_LIMIT = 60.0
"""Seconds for a worker to come up, on a busy machine."""

_LOG_TAIL = 16 << 10
"""Bytes of a dead worker's standard error that its CompileError shows."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from zluda.compiler.worker import main; main({}, {})"
)


class Worker:
    """A worker process. To be used by the one thread that made it, which must outlive it; `kill` may come from any.

    Raises CompileError (died) when the process does not come up.
    """

    def __init__(self) -> None:
        if not sys.executable:
            raise CompileError(
                "Compile workers need the path of a Python; this process has no sys.executable", kind="died"
            )
        ours, theirs = socket.socketpair()
        # Its standard error and output: for the CompileError when it dies.
        self._said = os.memfd_create("zluda-compile-worker")
        fcntl.fcntl(self._said, fcntl.F_SETFL, os.O_APPEND | fcntl.fcntl(self._said, fcntl.F_GETFL))
        path = [entry or str(Path.cwd()) for entry in sys.path]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM.format(theirs.fileno(), os.getpid()), json.dumps(path)],
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            os.close(self._said)
            raise CompileError(f"No compile worker can be started: {error}", kind="died") from error
        finally:
            theirs.close()
        self._channel = Channel(ours)
        self._receive(time.monotonic() + _START_LIMIT, "start of the compile worker", _START_LIMIT)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def run(
        self,
        header: dict[str, Any],
        blob: bytes,
        *,
        what: str,
        since: float,
        deadline: float,
        on_portable: Callable[[CompiledImage], float],
    ) -> CompiledImage:
        """One job. `deadline` counts from `since`, both of time.monotonic().

        `on_portable` gets the portable image when that half is done, and gives the deadline of the rest.

        Raises CompileError; after the kinds `died` and `timeout` the process is gone.
        """
        os.ftruncate(self._said, 0)
        try:
            self._channel.send({**header, "log_level": _log.getEffectiveLevel()}, blob, deadline=deadline)
        except TimeoutError:
            raise self._late(what, deadline - since) from None
        except EOFError:
            raise self._dead(what) from None
        while True:
            answer, data = self._receive(deadline, what, deadline - since)
            for name, level, message in answer.get("records", ()):
                logging.getLogger(name).log(level, "%s", message)
            match answer["type"]:
                case "portable":
                    deadline = on_portable(unpack(data))
                case "done":
                    return unpack(data)
                case "error":
                    raise CompileError.from_wire(answer["error"])

    def _receive(self, deadline: float, what: str, limit: float) -> tuple[dict[str, Any], bytes]:
        try:
            return self._channel.receive(deadline=deadline)
        except TimeoutError:
            raise self._late(what, limit) from None
        except EOFError:
            raise self._dead(what) from None

    def _late(self, what: str, limit: float) -> CompileError:
        self.kill()
        return self._end(f"{what}: it took more than {limit:.3g} s and was ended", "timeout")

    def _dead(self, what: str) -> CompileError:
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        if code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        else:
            how = f"ended with status {code}"
        return self._end(f"{what}: the compile worker {how}", "died")

    def _end(self, message: str, kind: Kind) -> CompileError:
        said = self._tail()
        self.close()
        fatal = next((line for line in said.splitlines() if "LLVM ERROR" in line or "Assertion" in line), "")
        return CompileError(f"{message}: {fatal}" if fatal else message, kind=kind, log=said)

    def _tail(self) -> str:
        size = os.fstat(self._said).st_size
        return os.pread(self._said, _LOG_TAIL, max(0, size - _LOG_TAIL)).decode(errors="replace")

    def kill(self) -> None:
        """End the process and what it started. Harmless when it is gone."""
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
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
