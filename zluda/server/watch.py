"""Ending with the host: nothing of a program's driver is left when the program is gone."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable


def end_with(host: int, socket: int) -> None:
    """End this process, and the workers it started, once the pidfd `host` tells of the host's end or `socket` closes.

    The socket closes when the host's program is replaced (exec), which leaves its process alive.
    """
    threading.Thread(target=_watch, args=(host, socket), name="zluda-watch", daemon=True).start()


def end_unless_claimed(program: int) -> Callable[[], None]:
    """End this process with the one of the pidfd `program`, unless the function returned is called before.

    Whoever has called it need not fear the end any more, not even one that was on its way.
    """
    deciding = threading.Lock()
    claimed = False

    def watch() -> None:
        select.select([program], [], [])
        with deciding:
            if not claimed:
                os._exit(0)

    def claim() -> None:
        nonlocal claimed
        with deciding:
            claimed = True

    threading.Thread(target=watch, name="zluda-unclaimed", daemon=True).start()
    return claim


def _watch(host: int, socket: int) -> None:
    poller = select.poll()
    poller.register(host, select.POLLIN)
    poller.register(socket, select.POLLHUP | select.POLLRDHUP)
    while not poller.poll():
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)
