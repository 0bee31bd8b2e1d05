"""The driver process that `zluda run` starts ahead of the program: who gets it, what becomes of it otherwise."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zluda.server.segment import CONSTANTS
from zluda.spec.protocol import protocol

if TYPE_CHECKING:
    from tests.client.conftest import Client, Running

CLAIM = protocol().structures["claim"].compiled()
RUN = [sys.executable, "-m", "zluda", "run", "--"]

STRANGERS = r"""
import ctypes, os, socket
name = "\0" + os.environ["ZLUDA_DRIVER"]
def connect():
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stranger.connect(name)
    return stranger
connect().close()
rude = connect()
rude.send(b"x" * 100)
files = connect()
socket.send_fds(files, [b"y" * 32], [0, 1, 2])
silent = connect()
print(ctypes.CDLL("libcuda.so.1").cuInit(0), flush=True)
input()
"""


def started(client: Client, command: list[str | Path], **extra: str) -> Running:
    return client.start([*RUN, *command], client.environment() | extra)


def how(process: int) -> str:
    """`--listen` for a driver started ahead, `--fd` for one that its program started; or what else it is."""
    arguments = Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")
    return next((a for a in arguments if a in ("--listen", "--fd")), arguments[0])


def drivers(running: Running) -> list[str]:
    return sorted(kind for kind in map(how, running.drivers()) if kind.startswith("--"))


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def end(running: Running) -> None:
    running.process.kill()
    running.process.communicate()
    assert running.gone_within(1.0)


def test_the_program_takes_it(client: Client) -> None:
    running = started(client, [client.build("idle.c")])
    running.expect("ready")
    assert drivers(running) == ["--listen"]
    end(running)


def test_of_two_processes_one_takes_it(client: Client) -> None:
    program = client.build("idle.c")
    running = started(client, ["sh", "-c", 'exec 3<&0; "$0" <&3 & "$0" <&3 & wait', program])
    running.expect("ready")
    running.expect("ready")
    assert drivers(running) == ["--fd", "--listen"]
    running.process.kill()
    for process in running.drivers():
        if how(process) == str(program):
            os.kill(process, signal.SIGKILL)
    assert running.gone_within(1.0)


def test_it_takes_over_what_the_program_is_at_that_time(client: Client, tmp_path: Path) -> None:
    script = f"cd {tmp_path} && unset TO_GO && TO_COME=here ZLUDA_LOG=info exec $0 2>log"
    running = started(client, ["sh", "-c", script, client.build("idle.c")], TO_GO="x", ZLUDA_LOG="error")
    running.expect("ready")
    assert drivers(running) == ["--listen"]
    assert "started ahead of the program" in (tmp_path / "log").read_text()
    assert Path(f"/proc/{running.driver()}/cwd").readlink() == tmp_path
    _, stderr = running.process.communicate("go\n")
    assert not stderr


def test_it_selects_devices_as_the_program_says(client: Client) -> None:
    done = client.run([*RUN, "env", "CUDA_VISIBLE_DEVICES=nonsense", client.build("tryinit.c")], client.environment())
    assert done.stdout == "100 100\n"
    assert done.stderr.count("CUDA_VISIBLE_DEVICES=nonsense names no device") == 2


@pytest.mark.parametrize(
    "changed",
    [
        ["env", "ZLUDA_LD_LIBRARY_PATH=/opt/vendor/lib"],
        ["unshare", "--mount"],
        ["unshare", "--net"],
        ["nice", "-n", "5"],
        ["chrt", "--batch", "0"],
        ["setpriv", "--no-new-privs"],
        ["setpriv", "--bounding-set=-all"],
        ["choom", "-n", "500", "--"],
        ["prlimit", "--core=0"],
        ["sh", "-c", 'umask 077; exec "$0"'],
    ],
    ids=" ".join,
)
def test_a_program_in_another_world_starts_its_own(client: Client, changed: list[str]) -> None:
    if shutil.which(changed[0]) is None or subprocess.run([*changed, "true"], capture_output=True).returncode:
        pytest.skip(f"{' '.join(changed)} is not to be had here")
    running = started(client, [*changed, client.build("idle.c")])
    running.expect("ready")
    assert "--fd" in drivers(running)
    end(running)


def test_a_program_that_needs_no_driver_leaves_none(client: Client) -> None:
    running = started(client, ["sleep", "60"])
    assert wait_for(lambda: drivers(running) == ["--listen"])
    end(running)
    client.run([*RUN, "true"], client.environment())


def test_what_it_has_before_it_is_claimed(client: Client) -> None:
    """Nobody waits for the end of a pipe that it holds."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    environment = client.environment(LD_PRELOAD="", PYTHONHOME="", ZLUDA_TEST_TAG="before-the-claim")
    command = [*RUN, "taskset", "-c", "0", "sleep", "60"]
    process = subprocess.Popen(command, env=environment, pass_fds=[write], stdout=write, stderr=write)
    running = client.adopt(process, "before-the-claim")
    os.close(write)
    assert wait_for(lambda: drivers(running) == ["--listen"])
    driver = running.driver()
    held = {int(f.name): str(f.readlink()) for f in Path(f"/proc/{driver}/fd").iterdir()}
    assert [held[stream] for stream in range(3)] == ["/dev/null"] * 3
    assert not any(place.startswith("pipe:") for place in held.values())
    variables = Path(f"/proc/{driver}/environ").read_bytes().decode().split("\0")
    assert not [v for v in variables if v.startswith(("LD_PRELOAD", "PYTHON"))]
    assert os.getsid(driver) == driver
    process.kill()
    process.wait()
    assert os.read(read, 1) == b""
    os.close(read)
    assert running.gone_within(1.0)


def test_strangers_do_not_keep_it_from_the_program(client: Client) -> None:
    running = started(client, [sys.executable, "-c", STRANGERS])
    running.expect("0")
    assert drivers(running) == ["--listen"]
    running.process.communicate("\n")
    assert running.gone_within(1.0)


WAIT_FOR_ALL = """
import os
try:
    while True:
        print(os.wait(), flush=True)
except ChildProcessError:
    print("no more", flush=True)
"""
ADOPT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])"


@pytest.mark.parametrize("way", ["first of its namespace", "adopts orphans"])
def test_it_is_no_child_of_the_program(client: Client, way: str) -> None:
    """A program that has no children has none to wait for."""
    prefix = ["unshare", "--pid", "--fork", "--mount-proc"]
    if way == "adopts orphans":
        prefix = [sys.executable, "-c", ADOPT]
    elif subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespaces here")
    done = client.run([*prefix, *RUN, sys.executable, "-c", WAIT_FOR_ALL], client.environment())
    assert (done.stdout, done.stderr, done.returncode) == ("no more\n", "", 0)


@pytest.mark.parametrize("ignored", ["CHLD", "INT HUP TERM PIPE"])
def test_signals_that_are_ignored(client: Client, ignored: str) -> None:
    program = client.build("tryinit.c")
    done = client.run(["sh", "-c", f'trap "" {ignored}; exec "$@"', "sh", *RUN, program], client.environment())
    assert (done.stdout, done.stderr, done.returncode) == ("0 0\n", "", 0)


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "<&- 2>&-", ">&-"])
def test_standard_streams_that_are_closed(client: Client, closed: str, tmp_path: Path) -> None:
    script = f'exec "$@" {closed}'
    inner = ["sh", "-c", f'exec "$0" >{tmp_path}/out 2>{tmp_path}/log', client.build("tryinit.c")]
    client.run(["sh", "-c", script, "sh", *RUN, *inner], client.environment(ZLUDA_LOG="info"))
    assert (tmp_path / "out").read_text() == "0 0\n"
    assert "started ahead of the program" in (tmp_path / "log").read_text()


def test_it_does_not_hold_the_programs_directory(client: Client, tmp_path: Path) -> None:
    running = started(client, ["sh", "-c", "cd /; exec sleep 60"])
    assert wait_for(lambda: drivers(running) == ["--listen"])
    assert str(Path(f"/proc/{running.driver()}/cwd").readlink()) == "/"
    end(running)


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_another_user_cannot_keep_it(client: Client) -> None:
    """Who connects and says nothing is waited for, unless it is a stranger."""
    stranger = (
        "import os, socket, sys; os.setuid(65534)\n"
        "kept = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(20)]\n"
        "for s in kept: s.connect('\\0' + os.environ['ZLUDA_DRIVER'])\n"
        "print('connected', flush=True); sys.stdin.read()"
    )
    script = f'exec 3<&0; "$1" -c "{stranger}" <&3 & sleep 2; exec "$2" <&3'
    running = started(client, ["sh", "-c", script, "sh", sys.executable, client.build("idle.c")])
    running.expect("connected")
    before = time.monotonic()
    running.expect("ready")
    assert time.monotonic() - before < 10
    assert "--listen" in drivers(running)
    running.process.communicate("go\n")


def test_one_that_is_stopped_is_not_waited_for(client: Client) -> None:
    running = started(client, ["sh", "-c", 'read go; exec "$0"', client.build("tryinit.c")])
    assert wait_for(lambda: drivers(running) == ["--listen"])
    driver = running.driver()
    os.kill(driver, signal.SIGSTOP)
    try:
        assert running.process.stdin is not None
        running.process.stdin.write("go\n")
        running.process.stdin.flush()
        running.expect("0 0")
        assert running.process.wait(timeout=10) == 0
    finally:
        os.kill(driver, signal.SIGCONT)
    assert running.gone_within(2.0)


@pytest.mark.parametrize("name", ["nobody-listens", "x" * 200, "", "\xff\x01"])
def test_a_name_that_leads_nowhere(client: Client, name: str) -> None:
    done = client.run([client.build("tryinit.c")], client.environment(ZLUDA_DRIVER=name))
    assert done.stdout == "0 0\n" and not done.stderr


@pytest.mark.parametrize(
    "answer",
    [b"", b"short", b"x" * CLAIM.size, CLAIM.pack(CONSTANTS["MAGIC"], b"another build", 1, 0)],
    ids=["nothing", "short", "nonsense", "another build"],
)
def test_something_else_that_listens(client: Client, answer: bytes) -> None:
    name = f"zluda-test-{os.getpid()}-{os.urandom(4).hex()}"
    got = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{name}")
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                data, descriptors, _, _ = socket.recv_fds(connection, 1000, 8)
                got.append((data, len(descriptors)))
                for descriptor in descriptors:
                    os.close(descriptor)
                if answer:
                    connection.send(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = client.run([client.build("tryinit.c"), "once"], client.environment(ZLUDA_DRIVER=name))
        thread.join(timeout=10)
    assert done.stdout == "0 0\n" and not done.stderr
    ((data, descriptors),) = got
    assert struct.unpack_from("<Q", data)[0] == CONSTANTS["MAGIC"] and descriptors == 2


def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"\0zluda-test-{os.getpid()}-{os.urandom(4).hex()}")
    listener.listen()
    program = os.pidfd_open(os.getpid())
    code = (
        "import sys, zluda.server.ahead as ahead, zluda.server.process as process\n"
        "ahead.UNCLAIMED_SECONDS = 0.1\n"
        "sys.exit(process.run_ahead(int(sys.argv[1]), int(sys.argv[2])))"
    )
    with listener:
        descriptors = [listener.fileno(), program]
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, descriptors)], pass_fds=descriptors, capture_output=True, timeout=30
        )
    os.close(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_what_is_said_early_is_not_lost() -> None:
    code = (
        "import logging, zluda.server.process as process\n"
        "kept = process._Kept()\n"
        "logging.basicConfig(handlers=[kept], level=logging.DEBUG)\n"
        "log = logging.getLogger('zluda.early')\n"
        "log.warning('plugin %s', 'broken'); log.debug('its traceback')\n"
        "logging.getLogger().removeHandler(kept)\n"
        "process.logs.start(None)\n"
        "kept.say()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "zluda: plugin broken\n"
