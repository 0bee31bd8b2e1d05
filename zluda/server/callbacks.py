"""Functions of the host in streams: the client's thread runs them, one at a time, when they are named to it."""

from __future__ import annotations

import queue
import threading

from zluda.server.segment import Segment
from zluda.spec.protocol import protocol
from zluda.window.futex import Futex

_control = protocol().structures["control"]
_SLEEP_SECONDS = 1.0


class HostCalls:
    """The mailbox in the control block."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._call = _control.offset("host_call") // 8
        self._done = _control.offset("host_done") // 8
        self._status = _control.offset("host_status") // 4
        self._call_futex = Futex(segment.address + _control.offset("host_call"))
        self._done_futex = Futex(segment.address + _control.offset("host_done"))
        self._turn = threading.Lock()
        self._unplaced: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        self._has_thread = False

    def call(self, task: int, status: int) -> None:
        """Let the client run a task, and wait until it has. `status` is the CUresult of the work before it."""
        segment = self._segment
        with self._turn:
            segment.u32[self._status] = status
            segment.fence()
            segment.u64[self._call] = task
            self._call_futex.wake()
            while (done := segment.u64[self._done]) != task:
                self._done_futex.wait(done, _SLEEP_SECONDS)

    def give_back(self, task: int, status: int) -> None:
        """Tell the client of a task that got into no stream; returns at once."""
        self._unplaced.put((task, status))
        if not self._has_thread:
            self._has_thread = True
            threading.Thread(target=self._tell, name="zluda-callbacks", daemon=True).start()

    def _tell(self) -> None:
        while True:
            self.call(*self._unplaced.get())
