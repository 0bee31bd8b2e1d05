"""Ending with the host: nothing of a program's driver is left when the program is gone."""

from __future__ import annotations

import os
import select
import signal
import threading


def end_with(host: int, socket: int) -> None:
    """End this process, and the workers it started, once the pidfd `host` tells of the host's end or `socket` closes.

    The socket closes when the host's program is replaced (exec), which leaves its process alive.
    """
    threading.Thread(target=_watch, args=(host, socket), name="zluda-watch", daemon=True).start()


def _watch(host: int, socket: int) -> None:
    poller = select.poll()
    poller.register(host, select.POLLIN)
    poller.register(socket, select.POLLHUP | select.POLLRDHUP)
    while not poller.poll():
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)
