"""Starting a program's driver process ahead of the program, so that the two load side by side.

The driver listens on an abstract socket that DRIVER_VARIABLE names; whichever process of the program calls cuInit first
claims it (zluda/client/src/claim.c, zluda/server/ahead.py), any other starts a driver of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping

DRIVER_VARIABLE = "ZLUDA_DRIVER"

_WAITING = 64
"""Processes that may be waiting to claim."""

_LISTENER, _PROGRAM = 3, 4
_PID_BYTES = 8
_ORPHAN = b"orphan"


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
        started = _start_orphan(listener.fileno(), program, environment)
    except OSError:
        return {}
    listener.close()
    os.close(program)
    return {DRIVER_VARIABLE: name} if started else {}


def _start_orphan(listener: int, program: int, environment: Mapping[str, str]) -> bool:
    """Fork the driver off so that the program will not find it among its children; whether that could be done.

    A child in between ends at once. Where this process is the first of its PID namespace, or adopts orphans for another
    reason, the driver would be its child after all, and the program would wait for it: then there is none.
    """
    own = os.getpid()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            between = os.getpid()
            driver = os.fork()
            if driver:
                os.write(writing, driver.to_bytes(_PID_BYTES, "little"))
            else:
                while (parent := os.getppid()) == between:
                    time.sleep(0.0001)
                if parent != own:
                    os.write(writing, _ORPHAN)
                    _become_driver(listener, program, environment)
        finally:
            # What fails here is not shown: the program will start a driver of its own, and that says what is wrong.
            os._exit(0)
    os.close(writing)
    _reap(child)
    said = b""
    while not said.endswith(_ORPHAN) and (part := os.read(reading, 16)):
        said += part
    os.close(reading)
    if said.endswith(_ORPHAN):
        return True
    if said:
        _reap(int.from_bytes(said, "little"))
    return False


def _reap(process: int) -> None:
    # None is left to wait for where SIGCHLD is ignored, and none where it was adopted by another.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, 0)


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
    os.chdir("/")  # the program's directory is not to be held
    null = os.open(os.devnull, os.O_RDWR)
    # Above those they are to become: one that is there already would keep its close-on-exec flag.
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _PROGRAM + 1) for descriptor in (null, listener, program)]
    for descriptor, place in zip((moved[0], moved[0], *moved), (0, 1, 2, _LISTENER, _PROGRAM), strict=True):
        os.dup2(descriptor, place)
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208 - pathlib costs more than the rest
        if int(entry) > _PROGRAM:
            with contextlib.suppress(OSError):  # the listing's own
                os.close(int(entry))
    arguments = ["-P", "-m", "zluda.server", "--listen", str(_LISTENER), "--program", str(_PROGRAM)]
    os.execve(sys.executable, [sys.executable, *arguments], _driver_environment(environment))


def _driver_environment(environment: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in environment.items() if not name.startswith(("LD_", "PYTHON"))}
    if "ZLUDA_LD_LIBRARY_PATH" in own:
        own["LD_LIBRARY_PATH"] = own.pop("ZLUDA_LD_LIBRARY_PATH")
    return own
