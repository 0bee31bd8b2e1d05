"""Typed access to the machine-readable specification in spec/."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def spec_root() -> Path:
    """The folder of the specification: spec/ of a source checkout, else the copy installed beside this package."""
    checkout = Path(__file__).resolve().parents[2] / "spec"
    if (checkout / "capabilities.toml").is_file():
        return checkout
    for place in __path__:
        data = Path(place) / "data"
        if data.is_dir():
            return data
    raise FileNotFoundError(
        f"the specification is neither at {checkout} nor installed in {list(__path__)}; reinstall zluda"
    )


def spec_path(name: str) -> Path:
    """The path of one file or folder of the specification, e.g. `driver_api` or `errors.toml`."""
    path = spec_root() / name
    if not path.exists():
        raise FileNotFoundError(f"the specification has no {name} in {spec_root()}")
    return path
