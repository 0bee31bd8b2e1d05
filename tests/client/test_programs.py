"""C programs on the client library, over the driver process with the test device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.client.conftest import Client


@pytest.mark.parametrize(
    "name",
    [
        "init",
        "device",
        "context",
        "memory",
        "stream",
        "launch",
        "module",
        "threads",
        "fork",
        "graph",
        "capture",
        "graph_forms",
        "graph_threads",
    ],
)
def test_program(client: Client, name: str) -> None:
    client.check(f"{name}.c")


def test_changing_graphs(client: Client, tmp_path: Path) -> None:
    client.check("graph_update.c", str(tmp_path / "graph.dot"))


@pytest.mark.parametrize("name", ["memory", "fork"])
def test_without_address_randomisation(client: Client, name: str) -> None:
    done = client.run(["setarch", "-R", client.build(f"{name}.c")])
    assert done.returncode == 0, done.stderr


def test_with_a_limited_address_space(client: Client) -> None:
    """The window shrinks to what RLIMIT_AS leaves."""
    program = client.build("memory.c")
    done = client.run(["sh", "-c", f"ulimit -v {32 << 20}; exec {program}"])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("per_thread", ["0", "1"])
def test_cuda_bindings(client: Client, per_thread: str) -> None:
    """With the legacy default stream, and with each thread's own."""
    program = Path(__file__).parent / "programs" / "bindings.py"
    environment = client.environment() | {"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": per_thread}
    done = client.run([sys.executable, program], environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all right\n"


@pytest.mark.parametrize("randomised", [True, False])
def test_a_window_whose_place_is_taken(client: Client, randomised: bool) -> None:
    program = client.build("collide.c")
    prefix = [] if randomised else ["setarch", "-R"]
    here = client.run([*prefix, program, "here"])
    assert here.returncode == 0, here.stderr
    there = client.run([*prefix, program], client.environment(ZLUDA_TEST_TAKE="1"))
    assert there.returncode == 0, there.stderr


def test_the_library_exports_the_driver_api_alone(client: Client) -> None:
    from zluda.spec.driver_api import driver_api

    listing = subprocess.run(
        ["nm", "-D", "--defined-only", client.library / "libcuda.so.1"], capture_output=True, text=True, check=True
    ).stdout
    exported = {line.split()[-1] for line in listing.splitlines()}
    declared = {f.symbol for f in driver_api().function}
    declared |= {f"{f.symbol}_{f.per_thread}" for f in driver_api().function if f.per_thread}
    assert exported == declared
