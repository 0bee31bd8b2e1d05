"""ZLUDA_LOG: levels by area, in the client library and in the driver process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.client.conftest import Client

CONNECTED = "zluda: connected to driver process "
DEVICES = "zluda: device 0: "  # said before cuInit returns


@pytest.mark.parametrize(
    ("value", "client_says", "server_says"),
    [
        ("", False, False),
        ("info", True, True),
        ("INFO", True, True),
        ("client=info", True, False),
        ("server=info", False, True),
        ("info,client=error", False, True),
        ("client=error,info", False, True),
        (" warning , client = debug ", True, False),
        ("info,server=warning", True, False),
    ],
)
def test_each_area_has_its_level(client: Client, value: str, client_says: bool, server_says: bool) -> None:
    done = client.run([client.build("init.c")], client.environment(ZLUDA_LOG=value))
    assert (CONNECTED in done.stderr, DEVICES in done.stderr) == (client_says, server_says), done.stderr
    assert "no level" not in done.stderr and "no area" not in done.stderr


def test_what_is_no_area_or_level_is_said_once(client: Client) -> None:
    done = client.run([client.build("init.c")], client.environment(ZLUDA_LOG="error,kernel=info,core=loud"))
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert "core=loud is left out, as 'loud' is no level: use debug, info, warning or error" in lines[0]
    assert "'kernel' is no area of the log: use backend, client," in lines[1]
