"""The driver process: how it starts, what it inherits; it ends with its program, and its program not with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.client.conftest import Client


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("segv", "segmentation fault"),
        ("abort", "signal 6"),
        ("exit", "exited with status 7"),
        ("fail", ""),
    ],
)
def test_work_that_ends_the_driver(client: Client, how: str, says: str) -> None:
    done = client.run([client.build("death.c"), how])
    assert done.returncode == 0, done.stderr
    assert says in done.stderr


def test_a_fault_names_the_kernel_and_keeps_its_stack_for_debugging(client: Client) -> None:
    program = client.build("death.c")
    done = client.run([program, "segv"])
    said = [line for line in done.stderr.splitlines() if line.startswith("zluda: the driver process")]
    assert said == [
        "zluda: the driver process ended by a segmentation fault: a kernel touched memory that is not there; "
        "the last kernel launched was crash"
    ]
    assert "ZLUDA_LOG=debug shows" in done.stderr and "Fatal Python error" not in done.stderr
    done = client.run([program, "segv"], client.environment(ZLUDA_LOG="debug"))
    assert "Fatal Python error" in done.stderr and "ZLUDA_LOG=debug shows" not in done.stderr


def test_a_killed_driver(client: Client) -> None:
    running = client.start([client.build("death.c"), "killed"])
    running.expect("waiting")
    os.kill(running.driver(), signal.SIGKILL)
    _, stderr = running.process.communicate(timeout=3)
    assert running.process.returncode == 0, stderr
    assert "signal 9" in stderr


def test_a_killed_driver_with_a_full_ring(client: Client) -> None:
    running = client.start([client.build("flood.c")])
    running.expect("posting")
    driver = running.driver()
    os.kill(driver, signal.SIGSTOP)
    time.sleep(0.5)
    assert running.process.poll() is None
    os.kill(driver, signal.SIGKILL)
    _, stderr = running.process.communicate(timeout=3)
    assert running.process.returncode == 0, stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_program_leaves_nothing(client: Client, number: signal.Signals) -> None:
    running = client.start([client.build("idle.c")])
    running.expect("ready")
    assert running.driver()
    running.process.send_signal(number)
    running.process.wait(timeout=5)
    assert running.gone_within(1.0)


def test_a_forked_child_does_not_keep_the_driver(client: Client) -> None:
    running = client.start([client.build("forked.c")])
    running.expect("ready")
    drivers = [p for p in running.drivers() if b"fake_driver" in Path(f"/proc/{p}/cmdline").read_bytes()]
    (child,) = set(running.drivers()) - set(drivers)
    running.process.kill()
    running.process.wait(timeout=5)
    until = time.monotonic() + 1.0
    while set(drivers) & set(running.drivers()) and time.monotonic() < until:
        time.sleep(0.01)
    assert running.drivers() == [child]
    os.kill(child, signal.SIGKILL)


def test_a_program_that_replaces_itself_leaves_nothing(client: Client) -> None:
    running = client.start([client.build("idle.c"), "sleep", "20"])
    running.expect("ready")
    driver = running.driver()
    assert running.process.stdin is not None
    running.process.stdin.write("go\n")
    running.process.stdin.flush()
    until = time.monotonic() + 1.5
    while Path(f"/proc/{driver}/fd/0").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert running.process.poll() is None
    assert not Path(f"/proc/{driver}/fd/0").exists()


def _status(process: int, key: str) -> str:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith(f"{key}:"))


def test_what_the_driver_inherits(client: Client) -> None:
    environment = client.environment(
        PYTHONHOME="/nonexistent",
        PYTHONPATH="/nonexistent",
        PYTHONSTARTUP="/nonexistent",
        LD_PRELOAD="",
        ZLUDA_LD_LIBRARY_PATH="/opt/vendor/lib",
        ZLUDA_BACKEND="kept",
        CUDA_VISIBLE_DEVICES="0",
    )
    read, write = os.pipe()
    os.set_inheritable(write, True)
    tag = environment["ZLUDA_TEST_TAG"] = uuid.uuid4().hex
    program = client.build("idle.c")
    process = subprocess.Popen(
        ["taskset", "-c", "0", program],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[write],
    )
    running = client.adopt(process, tag)
    os.close(write)
    running.expect("ready")
    driver = running.driver()
    environ = Path(f"/proc/{driver}/environ").read_bytes().decode()
    variables = dict(v.split("=", 1) for v in environ.split("\0") if "=" in v)
    assert variables["ZLUDA_BACKEND"] == "kept"
    assert variables["CUDA_VISIBLE_DEVICES"] == "0"
    assert variables["LD_LIBRARY_PATH"] == "/opt/vendor/lib"
    assert not {"PYTHONHOME", "PYTHONSTARTUP", "LD_PRELOAD"} & set(variables)
    assert os.getsid(driver) == driver
    assert os.sched_getaffinity(driver) == os.sched_getaffinity(0) or len(os.sched_getaffinity(0)) == 1
    assert int(_status(driver, "SigIgn"), 16) >> (signal.SIGINT - 1) & 1
    assert int(_status(driver, "SigBlk"), 16) == 0
    # Nobody else holds the pipe's end: it closes with the program.
    process.kill()
    process.wait()
    assert os.read(read, 1) == b""
    os.close(read)


def test_a_driver_that_refuses(client: Client) -> None:
    done = client.run([client.build("tryinit.c")], client.environment(ZLUDA_TEST_REFUSE="1"))
    assert done.stdout == "100 100\n"
    assert done.stderr.count("zluda: the test device refuses") == 2


def test_a_driver_that_dies_at_the_start(client: Client) -> None:
    done = client.run([client.build("tryinit.c")], client.environment(ZLUDA_TEST_DIE="1"))
    assert done.stdout == "802 802\n"
    assert "ended before it was ready" in done.stderr


def test_a_python_without_zluda(client: Client, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # without site-packages
    python.chmod(0o755)
    done = client.run([client.build("tryinit.c")], client.environment(ZLUDA_PYTHON=str(python)))
    assert done.stdout == "802 802\n"
    assert "No module named" in done.stderr
    assert f"started as `{python} -m zluda.server`: ZLUDA_PYTHON must name a Python in which zluda" in done.stderr
    assert "zluda run" in done.stderr


def test_no_python(client: Client) -> None:
    done = client.run([client.build("tryinit.c")], client.environment(ZLUDA_PYTHON="/nonexistent/python"))
    assert done.stdout == "802 802\n"
    assert "/nonexistent/python" in done.stderr and "No such file" in done.stderr
