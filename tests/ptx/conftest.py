"""Small pieces of PTX made into whole modules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zluda.ptx.parser import parse_module
from zluda.ptx.tree import Module, Statement

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


@pytest.fixture
def module() -> Callable[[str], Module]:
    """Parse text at module scope."""
    return lambda text: parse_module(HEADER + text)


@pytest.fixture
def body() -> Callable[[str], list[Statement]]:
    """Parse statements inside a kernel."""

    def parse(text: str) -> list[Statement]:
        statements = parse_module(f"{HEADER}.entry k()\n{{\n{text}\n}}").functions[0].body
        assert statements is not None
        return statements

    return parse
