"""Linking, modules, logs: C programs on the client library, over the driver process with the test device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.client.conftest import Client


@pytest.mark.parametrize("name", ["link", "images", "absent", "settings", "launch_old"])
def test_program(client: Client, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    client.check(f"{name}.c")


def test_logs(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "cuda.log"
    environment = client.environment(CUDA_LOG_FILE=str(log))
    client.check("logs.c", str(tmp_path / "dump"), environment=environment)
    lines = log.read_text().splitlines()
    assert len(lines) > 500
    assert all("][CUDA][E] " in line for line in lines)


def test_linked_code_runs(client: Client) -> None:
    client.check("linkrun.c", environment=client.environment(real=True))
