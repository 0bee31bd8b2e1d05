"""Result codes of the CUDA driver API, read from spec/errors.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from zluda.spec import spec_path


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """A CUresult: its name, number and text; `sticky` if it ruins the context it happens in."""

    name: str
    code: int
    text: str
    sticky: bool = False


@cache
def errors() -> dict[str, ErrorSpec]:
    """All CUresults by name, in the order of their numbers."""
    with spec_path("errors.toml").open("rb") as file:
        table = tomllib.load(file)
    return {name: ErrorSpec(name, **fields) for name, fields in table.items()}


@cache
def by_code() -> dict[int, ErrorSpec]:
    """All CUresults by number."""
    return {spec.code: spec for spec in errors().values()}
