"""Device and function attributes of the CUDA driver API, read from spec/attributes.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from zluda.spec import spec_path


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """An attribute: its number, and the one source of its value that is not None (see the file's head)."""

    name: str
    number: int
    limit: str | None = None
    cap: int | None = None
    capability: str | None = None
    property: str | None = None
    value: int | None = None
    why: str = ""
    settable: bool = False
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sources = [s for s in (self.limit, self.capability, self.property, self.value) if s is not None]
        if len(sources) != 1:
            raise ValueError(f"spec/attributes.toml: {self.name} needs exactly one source, has {len(sources)}")


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    with spec_path("attributes.toml").open("rb") as file:
        return tomllib.load(file)


def _section(section: str) -> dict[int, AttributeSpec]:
    specs = (
        AttributeSpec(name, **{**fields, "aliases": tuple(fields.get("aliases", ()))})
        for name, fields in _table()[section].items()
    )
    return {spec.number: spec for spec in specs}


@cache
def device_attributes() -> dict[int, AttributeSpec]:
    """CU_DEVICE_ATTRIBUTE_* by number."""
    return _section("device")


@cache
def function_attributes() -> dict[int, AttributeSpec]:
    """CU_FUNC_ATTRIBUTE_* by number."""
    return _section("function")


@cache
def numbers() -> dict[str, int]:
    """The number of every device and function attribute by name, older names included."""
    found: dict[str, int] = {}
    for section in (device_attributes(), function_attributes()):
        for spec in section.values():
            for name in (spec.name, *spec.aliases):
                found[name] = spec.number
    return found
