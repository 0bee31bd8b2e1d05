"""C programs on streams, launches and contexts, over the driver process with the test device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.client.conftest import Client


@pytest.mark.parametrize("name", ["callback", "memop", "stream_attribute", "launch_ex", "launch_old", "context_old"])
def test_program(client: Client, name: str) -> None:
    client.check(f"{name}.c")


@pytest.mark.parametrize("name", ["callback", "memop"])
def test_what_is_never_due_does_not_hold_up_the_end(client: Client, name: str) -> None:
    client.check(f"{name}.c", "exit")
