"""Bad input, and hosts that are unkind to a library that starts a process."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.client.conftest import Client


@pytest.mark.parametrize("what", ["names", "sizes", "launches", "images"])
def test_garbage(client: Client, what: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("garbage")
    done = client.run(["sh", "-c", f'cd "{folder}"; exec "{client.build("garbage.c")}" {what}'])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "what",
    ["subreaper", "closed", "at_once", "fork_in_init", "cancelled", "exiting", "all_memory", "asking", "in_flight"],
)
def test_hosts(client: Client, what: str) -> None:
    client.check("hosts.c", what)


@pytest.mark.parametrize(("limit", "status"), [("-Sn 12", 0), ("-Sf 100000000", 0), ("-f 1000", 1), ("-v 1000000", 1)])
def test_limits(client: Client, limit: str, status: int) -> None:
    """Enough is enough, and too little is an error that says so: no signal ends the host."""
    program = client.build("hosts.c")
    done = client.run(["sh", "-c", f'ulimit {limit}; exec "{program}" exiting'])
    assert done.returncode == status, done.stderr
    # With files as small as that the host's error goes to a pipe all the same.
    assert ("RLIMIT_" in done.stderr) == bool(status)


def test_an_empty_environment(client: Client) -> None:
    environment = client.environment()
    keep = [f"{name}={environment[name]}" for name in ("LD_LIBRARY_PATH", "ZLUDA_PYTHON")]
    program = client.build("hosts.c")
    done = subprocess.run(["env", "-i", *keep, program, "exiting"], capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr
    assert os.fspath(client.library) not in done.stderr
