"""Zluda's OpenCL backend. Importing this loads no OpenCL library; `Backend.probe` and `Backend.open` do."""

from __future__ import annotations

from zluda.backend.hooks import hookimpl
from zluda.backend.seam import Backend

__version__ = "0.1.0"


@hookimpl
def zluda_backends() -> list[Backend]:
    """The OpenCL backend."""
    from zluda_opencl.backend import OpenCLBackend

    return [OpenCLBackend()]
