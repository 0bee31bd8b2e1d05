"""Types and numbers of the driver API, from spec/driver_api/types.toml. Without pydantic: every start needs them."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from zluda.spec import spec_path


@cache
def types() -> dict[str, Any]:
    """The file as it stands: the constants and enumerations that the project's own code uses."""
    return tomllib.loads((spec_path("driver_api") / "types.toml").read_text())


@cache
def enum(name: str) -> dict[str, int]:
    """Names and numbers of an enumeration, `CUjit_option` say. KeyError if there is none of that name."""
    for entry in types()["enum"]:
        if entry["name"] == name:
            return dict(entry["values"])
    raise KeyError(f"spec/driver_api/types.toml has no enumeration {name}")


@cache
def constant(name: str) -> int:
    """The number of a constant, `CU_MEMHOSTALLOC_PORTABLE` say. KeyError; ValueError for one that is an expression."""
    for entry in types()["constant"]:
        if entry["name"] == name:
            return int(entry["value"], 0)
    raise KeyError(f"spec/driver_api/types.toml has no constant {name}")


def driver_version() -> int:
    """CUDA_VERSION: 1000 * major + 10 * minor."""
    version: int = types()["version"]
    return version
