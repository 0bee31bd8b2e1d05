"""The driver process from its first line to its last."""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from zluda.server import logs, startup
from zluda.server.watch import end_with

SWITCH_SECONDS = 0.0005
"""How long a thread that answers a wait may have to stand behind the reader."""

AHEAD_SECONDS = 0.03
"""When to look ahead: behind the first calls, which ask for a device and a context at once."""

_log = logging.getLogger("zluda.server")


def run(descriptor: int) -> int:
    """Serve the client at the other end of `descriptor` until it ends; the exit status if that never began."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.start(os.environ.get("ZLUDA_LOG"))
    os.set_inheritable(descriptor, False)
    return _meet(socket.socket(fileno=descriptor))


def run_ahead(listener: int, program: int) -> int:
    """The same for the client that claims this process at the socket `listener`, while the pidfd `program` lives."""
    from zluda.server import ahead

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    early = _Kept()
    logging.basicConfig(handlers=[early], level=logging.DEBUG)
    for descriptor in (listener, program):
        os.set_inheritable(descriptor, False)
    connection = ahead.claimed(socket.socket(fileno=listener), program)
    if connection is None:
        return 0
    logging.getLogger().removeHandler(early)
    logs.start(os.environ.get("ZLUDA_LOG"))
    early.say()
    _log.info("started ahead of the program, claimed after %.0f ms", _age())
    return _meet(connection)


class _Kept(logging.Handler):
    """Keeps what is said until there is somebody to say it to."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)

    def say(self) -> None:
        """Log it all again, at the level that is now known."""
        for record in self._records:
            logger = logging.getLogger(record.name)
            if logger.isEnabledFor(record.levelno):
                logger.handle(record)


def _meet(connection: socket.socket) -> int:
    try:
        client = startup.meet(connection)
    except startup.Failure as failure:
        startup.refuse(connection, failure.code, str(failure))
        return 1
    except EOFError:
        return 1
    end_with(client.host, connection.fileno())
    faulthandler.enable(file=client.note)
    return _serve(client)


def _serve(client: startup.Client) -> int:
    try:
        driver = startup.start_driver(client.window, os.environ)
    except startup.Failure as failure:
        startup.refuse(client.connection, failure.code, str(failure))
        return 1
    except Exception as error:  # noqa: BLE001 - cuInit tells the program, whatever it is
        _log.exception("the driver process cannot start")
        unknown = startup.Failure("CUDA_ERROR_UNKNOWN", f"the driver process cannot start: {error!r}")
        startup.refuse(client.connection, unknown.code, str(unknown))
        return 1
    from zluda.server.describe import device_record
    from zluda.server.dispatch import table
    from zluda.server.loop import Reader
    from zluda.server.state import State

    state = State(driver, client.window, client.segment)
    entries = table(state)
    client.segment.announce([device_record(device) for device in driver.devices])
    # What start-up has made stays: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    gc.enable()
    sys.setswitchinterval(SWITCH_SECONDS)
    for device in driver.devices:
        _log.info("device %d: %s, by backend %s", device.ordinal, device.name, device.info.backend)
    startup.ready(client)
    _log.info("ready after %.0f ms", _age())
    ahead = threading.Timer(AHEAD_SECONDS, _look_ahead)
    ahead.daemon = True
    ahead.start()
    Reader(state, entries).serve()
    return 0


def _look_ahead() -> None:
    """Import what the first module will need while the program is still making its PTX."""
    import zluda.compiler.lower.data
    import zluda.ptx.index
    import zluda.ptx.parser  # noqa: F401


def _age() -> float:
    """Milliseconds since this process was started, by the clock ticks that /proc has (proc_pid_stat(5), starttime)."""
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return 1e3 * (time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK"))
