"""A CUDA program as a child of the command, which ends as the program does."""

from __future__ import annotations

import os
import resource
import select
import signal
from collections.abc import Mapping, Sequence
from types import FrameType

from zluda.cli.launch import launch

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What is sent to this process is meant for the program."""
_SHARED = (signal.SIGINT, signal.SIGQUIT)
"""A terminal sends these to both; what they end is up to the program."""


class Child:
    """`program` with the variables `extra`, started as `zluda COMMAND` would."""

    def __init__(self, program: Sequence[str], extra: Mapping[str, str], command: str) -> None:
        handled = {*_PASSED_ON, *_SHARED}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, handled)
        self._process = os.fork()
        if not self._process:
            status = 1
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                status = launch(program, extra, command)
            finally:
                os._exit(status)
        for number in _SHARED:
            signal.signal(number, signal.SIG_IGN)
        for number in _PASSED_ON:
            signal.signal(number, self._pass_on)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._status: int | None = None
        self._handle = os.pidfd_open(self._process)

    def ended(self, seconds: float) -> bool:
        """Whether it has ended; waits for that so long at most."""
        if self._status is None and select.select([self._handle], [], [], seconds)[0]:
            self.wait()
        return self._status is not None

    def wait(self) -> None:
        """Until it has ended."""
        if self._status is None:
            self._status = os.waitpid(self._process, 0)[1]
            os.close(self._handle)

    def leave(self) -> int:
        """Its exit status; this process ends of the signal that ended the program, if one did."""
        self.wait()
        status = self._status or 0
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return 128 + number
        return os.waitstatus_to_exitcode(status)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        if self._status is None:
            os.kill(self._process, number)
