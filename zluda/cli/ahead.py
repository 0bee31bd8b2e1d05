"""Starting a program's driver process ahead of the program, so that the two load side by side.

The driver listens on an abstract socket that DRIVER_VARIABLE names; whichever process of the program calls cuInit first
claims it (zluda/client/src/claim.c, zluda/server/ahead.py), any other starts a driver of its own.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
from collections.abc import Mapping

DRIVER_VARIABLE = "ZLUDA_DRIVER"

_WAITING = 64
"""Processes that may be waiting to claim."""

_LISTENER, _PROGRAM = 3, 4


def start(environment: Mapping[str, str]) -> dict[str, str]:
    """Start the driver of the program that this process is about to become, whose variables are `environment`.

    Returns the variable that names it; nothing where it cannot be started, as the program will then start its own.
    """
    name = f"zluda-{os.getpid()}-{os.urandom(8).hex()}"
    try:
        program = os.pidfd_open(os.getpid())
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(f"\0{name}")
        listener.listen(_WAITING)
        child = os.fork()
    except OSError:
        return {}
    if not child:
        try:
            if not os.fork():  # a child in between, so that the driver is none of the program's
                _become_driver(listener.fileno(), program, environment)
        finally:
            # What fails here is not shown: the program will start a driver of its own, and that says what is wrong.
            os._exit(0)
    os.waitpid(child, 0)
    listener.close()
    os.close(program)
    return {DRIVER_VARIABLE: name}


def _become_driver(listener: int, program: int, environment: Mapping[str, str]) -> None:
    """As zluda/client/src/spawn.c has it. Standard error is the program's from when it claims the driver."""
    import resource

    os.setsid()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
    for limit in (
        resource.RLIMIT_NOFILE,
        resource.RLIMIT_AS,
        resource.RLIMIT_DATA,
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_CPU,
    ):
        most = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most))
    kept = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _PROGRAM + 1) for descriptor in (listener, program)]
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, place in zip((null, null, null, *kept), (0, 1, 2, _LISTENER, _PROGRAM), strict=True):
        os.dup2(descriptor, place)
    os.closerange(_PROGRAM + 1, 65536)
    arguments = ["-P", "-m", "zluda.server", "--listen", str(_LISTENER), "--program", str(_PROGRAM)]
    os.execve(sys.executable, [sys.executable, *arguments], _driver_environment(environment))


def _driver_environment(environment: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in environment.items() if not name.startswith(("LD_", "PYTHON"))}
    if "ZLUDA_LD_LIBRARY_PATH" in own:
        own["LD_LIBRARY_PATH"] = own.pop("ZLUDA_LD_LIBRARY_PATH")
    return own
