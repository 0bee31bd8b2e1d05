"""Threads for what takes time: waiting for the device, compiling. The reader never does either."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class Waiters:
    """As many threads as there are things to wait for at one time; each stays a while for the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def start(self, task: Callable[[], None]) -> None:
        """Run `task`, which must not raise, on some thread, at once."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._queue.put(task)
                return
        threading.Thread(target=self._run, args=(task,), name="zluda-waiter", daemon=True).start()

    def _run(self, task: Callable[[], None]) -> None:
        # A thread that is idle counts as such until a task is meant for it; so it takes exactly one per count.
        while True:
            task()
            with self._lock:
                self._idle += 1
            task = self._queue.get()
