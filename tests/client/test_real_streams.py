"""Host functions, values in memory, events and launches on the OpenCL CPU device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.client.conftest import Client


@pytest.mark.parametrize("end", ["exit", "reset"])
def test_streams(client: Client, end: str) -> None:
    client.check("real_streams.c", end, environment=client.environment(real=True))


def test_memory_operations(client: Client) -> None:
    client.check("memop.c", environment=client.environment(real=True))
