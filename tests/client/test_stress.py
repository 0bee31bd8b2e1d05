"""Threads that do random things with checked results: as they are, and with the client under gcc's sanitizers."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.client.conftest import Client, build_library, compile_c

if TYPE_CHECKING:
    from collections.abc import Iterator

SANITIZERS = {"address": "address,undefined", "thread": "thread"}
PROGRAMS = ["stress", "threads", "stream", "launch", "context", "init", "device"]


def stress(client: Client, threads: int, operations: int, prefix: tuple[str, ...] = (), **extra: str) -> None:
    """A new seed each time; it is in the output of a run that fails."""
    seed = str(random.randrange(2**32))
    real = extra.pop("real", "")
    environment = client.environment(real=bool(real), ZLUDA_LOG="error", **extra)
    done = client.run([*prefix, client.folder / "stress", str(threads), str(operations), seed], environment)
    assert done.returncode == 0, f"seed {seed}\n{done.stderr}"
    assert done.stdout == f"seed {seed}\n{threads * operations} operations\n"


def test_random_operations(client: Client) -> None:
    client.build("stress.c")
    stress(client, 16, 500)


def test_random_operations_on_the_cpu_device(client: Client) -> None:
    client.build("stress.c")
    stress(client, 8, 300, real="yes")


def test_a_driver_killed_at_a_random_moment(client: Client) -> None:
    """Never a hang, never a wrong result taken for a right one, nothing left."""
    program = client.build("stress.c")
    for _ in range(8):
        seed, moment = random.randrange(2**32), random.uniform(0, 0.7)
        running = client.start([program, "8", "0", str(seed), "60"], client.environment(ZLUDA_LOG="error"))
        running.expect(f"seed {seed}")
        while not running.drivers():
            time.sleep(0.001)
        time.sleep(moment)
        for driver in running.drivers():
            with contextlib.suppress(ProcessLookupError):  # one in between, that starts the driver
                os.kill(driver, signal.SIGKILL)
        _, stderr = running.process.communicate(timeout=5)
        assert running.process.returncode == 1, stderr
        assert re.search(r": cu\w+\(.* gives (719|802), not CUDA_SUCCESS|gives (719|802), not CUDA_ERROR", stderr), (
            stderr
        )
        assert "does not hold" not in stderr, f"seed {seed}: a wrong result\n{stderr}"
        assert running.gone_within(1.0)


@pytest.fixture(scope="module", params=sorted(SANITIZERS))
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The library under a sanitizer."""
    folder = tmp_path_factory.mktemp(request.param)
    option = [f"-fsanitize={SANITIZERS[request.param]}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    build_library(folder, *option)
    client = Client(tmp_path_factory.mktemp("programs"), folder)
    for name in PROGRAMS:
        client.build(f"{name}.c", *option)
    yield client
    client.stop()


# A sanitizer needs addresses: files of 4 GiB make a small window, and ThreadSanitizer wants it at a fixed place.
PREFIX = ("prlimit", "--fsize=4294967296:", "setarch", "-R")


@pytest.mark.skipif(not shutil.which("prlimit") or not shutil.which("setarch"), reason="util-linux is not installed")
@pytest.mark.xdist_group("sanitizers")
@pytest.mark.parametrize("name", PROGRAMS)
def test_under_a_sanitizer(sanitized: Client, name: str) -> None:
    # Leaks: a test program may end without freeing; the library's own memory is reachable until then.
    if name == "stress":
        stress(sanitized, 8, 200, PREFIX, ASAN_OPTIONS="detect_leaks=1")
        return
    environment = sanitized.environment(ASAN_OPTIONS="detect_leaks=0")
    done = sanitized.run([*PREFIX, sanitized.folder / name], environment)
    assert done.returncode == 0, done.stderr
    assert "Sanitizer:" not in done.stderr


@pytest.mark.skipif(not shutil.which("prlimit") or not shutil.which("setarch"), reason="util-linux is not installed")
@pytest.mark.parametrize("name", ["threads", "launch"])
def test_tracing_under_a_sanitizer(sanitized: Client, name: str, tmp_path: Path) -> None:
    environment = sanitized.environment(ASAN_OPTIONS="detect_leaks=0", ZLUDA_TRACE=str(tmp_path))
    done = sanitized.run([*PREFIX, sanitized.folder / name], environment)
    assert done.returncode == 0, done.stderr
    assert "Sanitizer:" not in done.stderr and len(list(tmp_path.glob("*.calls"))) >= 1


def test_what_a_sanitizer_would_say(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The sanitizers are there and end a program: a test above that passes has looked."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "wrong.c").write_text("int main(int n, char **v) { int a[4] = {0}; (void)v; return a[n + 3]; }\n")
    compile_c([folder / "wrong.c", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o", folder / "wrong"])
    done = subprocess.run([folder / "wrong"], capture_output=True, text=True)
    assert done.returncode and "wrong.c:1" in done.stderr
