"""Zluda's Level Zero backend. Importing this loads no Level Zero library; `Backend.probe` does."""

from __future__ import annotations

from zluda.backend.hooks import hookimpl
from zluda.backend.seam import Backend

__version__ = "0.1.0"


@hookimpl
def zluda_backends() -> list[Backend]:
    """The Level Zero backend."""
    from zluda_level_zero.backend import LevelZeroBackend

    return [LevelZeroBackend()]
