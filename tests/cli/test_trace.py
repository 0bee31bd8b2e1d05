"""`zluda trace`, run as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAXPY = [sys.executable, "examples/saxpy.py"]


def trace(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zluda", "trace", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **variables},
        timeout=120,
    )


@pytest.mark.parametrize("to_file", [False, True])
def test_text_of_a_whole_program(tmp_path: Path, to_file: bool) -> None:
    """On the real device: what examples/saxpy.py does, in order, and nothing left behind."""
    output = tmp_path / "trace.txt"
    done = trace(*(["-o", str(output)] if to_file else []), "--", *SAXPY, TMPDIR=str(tmp_path))
    assert done.returncode == 0 and done.stdout.startswith("saxpy over 1048576 elements: all right")
    text = output.read_text() if to_file else done.stderr
    assert (
        not (to_file and done.stderr) and text.startswith("# process ") and "examples/saxpy.py" in text.splitlines()[0]
    )
    calls = [
        m for line in text.splitlines()[1:] if (m := re.match(r" *[\d.]+ \[\d+\] (\w+)\(.*\) = (\w+) [\d.]+ µs$", line))
    ]
    assert len(calls) == len(text.splitlines()) - 1
    order = [m[1] for m in calls if m[1] in ("cuInit", "cuModuleLoadData", "cuLaunchKernel", "cuMemcpyDtoH_v2")]
    assert order[0] == "cuInit" and order[-2:] == ["cuLaunchKernel", "cuMemcpyDtoH_v2"]
    assert re.search(r"cuLaunchKernel\(f=0x\w+ saxpy, gridDimX=4096, .* kernelParams=0x\w+ → \(", text)
    assert [p.name for p in tmp_path.iterdir()] == (["trace.txt"] if to_file else [])


def test_a_timeline_of_a_whole_program(tmp_path: Path) -> None:
    output = tmp_path / "trace.json"
    done = trace("--format", "chrome", "-o", str(output), "--", *SAXPY)
    assert done.returncode == 0, done.stderr
    made = json.loads(output.read_text())
    slices = [e for e in made["traceEvents"] if e["ph"] == "X"]
    (stream,) = {e["tid"] for e in slices if e["name"] == "saxpy"}
    on_stream = [e["name"] for e in slices if e["tid"] == stream]
    assert on_stream == ["cuMemcpyHtoD_v2"] * 2 + ["saxpy"] * on_stream.count("saxpy") + ["cuMemcpyDtoH_v2"]
    assert made["otherData"]["lost_records"] == 0


@pytest.mark.parametrize(
    ("command", "status"), [("exit 7", 7), ("exit 0", 0), ("kill -TERM $$", -15), ("kill -KILL $$", -9)]
)
def test_it_ends_as_the_program_does(tmp_path: Path, command: str, status: int) -> None:
    done = trace("-o", str(tmp_path / "trace"), "--", "sh", "-c", f"echo out; echo err >&2; {command}")
    assert (done.returncode, done.stdout, done.stderr) == (status, "out\n", "err\n")


def test_an_unknown_program() -> None:
    done = trace("--", "no-such-program")
    assert done.returncode == 127 and done.stderr == "zluda trace: no-such-program: no such program on PATH\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_the_programs(number: signal.Signals) -> None:
    """One sent to the command is passed on; the terminal's reach both, and what then happens is up to the program."""
    script = "trap 'echo caught; exit 3' TERM INT; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [sys.executable, "-m", "zluda", "trace", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Ignored in what a shell starts in the background, and a shell cannot trap what it began ignoring.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.communicate(timeout=20)[0] == "caught\n" and process.returncode == 3


def test_a_program_leaves_its_folder_to_be_read(tmp_path: Path) -> None:
    """ZLUDA_TRACE without the command; then --read, any number of times."""
    code = "from ctypes import *; c = CDLL('libcuda.so.1'); c.cuDriverGetVersion(byref(c_int())); c.cuInit(5)"
    command = [sys.executable, "-m", "zluda", "run", "--", sys.executable, "-c", code]
    subprocess.run(command, check=True, env={**os.environ, "ZLUDA_TRACE": str(tmp_path)}, cwd=ROOT)
    for _ in range(2):
        lines = trace("--read", str(tmp_path)).stderr.splitlines()
        assert len(lines) == 3
        assert re.search(r"cuDriverGetVersion\(driverVersion=0x\w+ → 13\d\d\d\) = CUDA_SUCCESS", lines[1])
        assert re.search(r"cuInit\(Flags=5\) = CUDA_ERROR_INVALID_VALUE", lines[2])


def test_text_comes_while_the_program_runs(tmp_path: Path) -> None:
    output = tmp_path / "trace"
    code = "import ctypes, sys; ctypes.CDLL('libcuda.so.1').cuInit(5); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-m", "zluda", "trace", "-o", output, "--", sys.executable, "-c", code], stdin=subprocess.PIPE
    )
    until = time.monotonic() + 20
    while "cuInit" not in (output.read_text() if output.exists() else "") and time.monotonic() < until:
        time.sleep(0.05)
    assert process.poll() is None and "cuInit(Flags=5)" in output.read_text()
    process.communicate(timeout=20)
    assert process.returncode == 0


def test_what_cannot_be_written(tmp_path: Path) -> None:
    done = trace("-o", str(tmp_path / "missing" / "trace"), "--", "true")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "No such file or directory" in done.stderr
    code = "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(5)"
    done = trace("-o", "/dev/full", "--", sys.executable, "-c", code)
    assert done.returncode == 2 and done.stderr == "zluda trace: the trace stops here: No space left on device\n"
    assert trace("-o", "/dev/full", "--", sys.executable, "-c", f"{code}; raise SystemExit(4)").returncode == 4


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    for arguments in ([], ["--read", str(tmp_path), "--", "true"], ["--format", "chrome", "--", "true"]):
        done = trace(*arguments)
        assert done.returncode == 2 and "Usage: " in done.stderr
    assert trace("--read", str(tmp_path / "missing")).stderr.endswith("no such folder\n")
