"""Zluda's ROCm backend. Importing this loads no ROCm library; `Backend.probe` does."""

from __future__ import annotations

from zluda.backend.hooks import hookimpl
from zluda.backend.seam import Backend

__version__ = "0.1.0"


@hookimpl
def zluda_backends() -> list[Backend]:
    """The ROCm backend."""
    from zluda_rocm.backend import RocmBackend

    return [RocmBackend()]
