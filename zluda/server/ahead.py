"""A driver process that is started before anybody needs it: it loads itself, and waits for the program to claim it."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from pathlib import Path

from zluda.server.segment import CONSTANTS
from zluda.server.watch import end_unless_claimed
from zluda.spec.protocol import protocol

UNCLAIMED_SECONDS = 60.0
"""How long a driver waits for a program that may never call cuInit."""

CLAIM_SECONDS = 1.0
"""How long a process that has connected may take to send its claim."""

_claim = protocol().structures["claim"].compiled()
_DESCRIPTORS = 2
_STARTED_WITH = ("LD_LIBRARY_PATH", "ZLUDA_PYTHON")
"""Variables that cannot be changed in a process that runs."""
_INHERITED_FILES = ("cgroup", "oom_score_adj")
_INHERITED_STATUS = {"Uid", "Gid", "Groups", "Umask", "NoNewPrivs", "Seccomp", "Seccomp_filters"}
_RAISED = {"Max open files", "Max address space", "Max data size", "Max file size", "Max cpu time"}


def claimed(listener: socket.socket, program: int) -> socket.socket | None:
    """Load what a driver needs and become that of the process which claims it first; its connection.

    This process then has that one's environment, working directory and standard error. None if nobody comes in time,
    or the one that came is gone.
    It ends with `program`, a pidfd, before it is claimed.
    """
    claim = end_unless_claimed(program)
    _load()
    until = time.monotonic() + UNCLAIMED_SECONDS
    with listener:
        while (left := until - time.monotonic()) > 0:
            if not select.select([listener], [], [], left)[0]:
                continue
            connection, _ = listener.accept()
            environment = _agree(connection) if _peer(connection)[1] == os.geteuid() else None
            if environment is None:
                connection.close()
                continue
            claim()
            os.environ.clear()
            os.environ.update(environment)
            try:
                connection.send(_claim.pack(CONSTANTS["MAGIC"], protocol().identity, os.getpid(), 0))
            except OSError:  # it has ended meanwhile, and there is no way back to before its claim
                return None
            return connection
    return None


def _load() -> None:
    """Import and read what any program's driver needs to be ready; nothing that depends on the environment.

    What its first module needs is not among it (process.py looks ahead to that): the program may be waiting by now.
    """
    import zluda.compiler.cache
    import zluda.compiler.service
    import zluda.core
    import zluda.server.describe
    import zluda.server.dispatch
    import zluda.server.loop
    import zluda.server.startup
    import zluda.server.state  # noqa: F401
    from zluda.backend.registry import installed

    installed()


def _agree(connection: socket.socket) -> dict[str, str] | None:
    """Take a claim. The environment of the process that makes it; None if this driver cannot be that process's.

    It then starts one of its own, just as where nobody listens.
    """
    connection.settimeout(CLAIM_SECONDS)
    try:
        data, descriptors, _, _ = socket.recv_fds(connection, _claim.size + 1, _DESCRIPTORS)
    except OSError:
        return None
    finally:
        connection.settimeout(None)
    try:
        if len(data) != _claim.size or len(descriptors) != _DESCRIPTORS:
            return None
        magic, identity, host, _ = _claim.unpack(data)
        if magic != CONSTANTS["MAGIC"] or identity != protocol().identity or not _same_world(connection, host):
            return None
        environment = _read_environment(descriptors[0])
        if any(environment.get(name) != os.environ.get(name) for name in _STARTED_WITH):
            return None
        os.chdir(f"/proc/{host}/cwd")
        for stream in (1, 2):
            os.dup2(descriptors[1], stream)
        return environment
    except OSError:
        return None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    """Process, user and group at the other end."""
    pid, uid, gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid, gid


def _same_world(connection: socket.socket, host: int) -> bool:
    """Whether a driver that the process at the other end started now would be as this one. Raises OSError."""
    its, own = Path(f"/proc/{host}"), Path("/proc/self")
    return (
        _peer(connection)[0] == host
        and (its / "root").samefile(own / "root")
        and all(space.readlink() == (its / "ns" / space.name).readlink() for space in (own / "ns").iterdir())
        and all((its / name).read_bytes() == (own / name).read_bytes() for name in _INHERITED_FILES)
        and _status(its) == _status(own)
        and _limits(its) == _limits(own)
        and os.sched_getscheduler(host) == os.sched_getscheduler(0)
        and os.getpriority(os.PRIO_PROCESS, host) == os.getpriority(os.PRIO_PROCESS, 0)
    )


def _status(process: Path) -> dict[str, str]:
    """What a process may do and as whom, in which a child is as its parent (proc_pid_status(5))."""
    lines = (line.partition(":") for line in (process / "status").read_text().splitlines())
    return {name: value for name, _, value in lines if name in _INHERITED_STATUS or name.startswith("Cap")}


def _limits(process: Path) -> dict[str, list[str]]:
    """Soft and hard limits by name; the hard one alone for those that a driver raises (proc_pid_limits(5))."""
    rows = (process / "limits").read_text().splitlines()[1:]
    limits = {row[:26].strip(): row[26:].split()[:2] for row in rows}
    return {name: values[1:] if name in _RAISED else values for name, values in limits.items()}


def _read_environment(descriptor: int) -> dict[str, str]:
    """Variables from a file of `NAME=VALUE` entries, each with a null behind it. The first of a name counts."""
    content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    environment: dict[str, str] = {}
    for entry in content.split(b"\0"):
        name, equals, value = os.fsdecode(entry).partition("=")
        if name and equals:
            environment.setdefault(name, value)
    return environment
