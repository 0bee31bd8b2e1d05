"""The vocabulary of capabilities, read from spec/capabilities.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from zluda.spec import spec_path

FILE = "capabilities.toml"


class Capability(BaseModel):
    """One thing that a device may be able to do."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: str = Field(pattern=r"^[a-z][a-z0-9]*(\.[a-z0-9]+)*$")
    meaning: str = Field(min_length=1)
    measured: str = Field(min_length=1)
    """How a backend knows that it may declare it, and how the conformance suite checks the claim."""
    cuda: tuple[str, ...] = ()
    """CUDA features that need it."""
    reach: tuple[str, ...] = ()
    """Backends whose every usable device must have it."""


class Vocabulary(BaseModel):
    """All capabilities, in the order of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    version: int
    capability: tuple[Capability, ...]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Vocabulary:
        ids = [entry.id for entry in self.capability]
        if twice := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"declared twice: {', '.join(twice)}")
        return self


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary in a TOML file. Raises pydantic's ValidationError or tomllib's TOMLDecodeError."""
    with path.open("rb") as file:
        return Vocabulary.model_validate(tomllib.load(file))


@cache
def vocabulary() -> dict[str, Capability]:
    """The project's capabilities by id."""
    return {entry.id: entry for entry in read_vocabulary(spec_path(FILE)).capability}


@cache
def capability_ids() -> frozenset[str]:
    """The ids alone, without building models: every `DeviceInfo` is checked against them, in every driver start."""
    with spec_path(FILE).open("rb") as file:
        return frozenset(entry["id"] for entry in tomllib.load(file)["capability"])
