"""The environment in which a CUDA program finds Zluda's client libraries."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import zluda.client


class NotInstalled(Exception):
    """A part that the installation should have built is missing; the message says how to get it."""


def _find(part: str) -> Path:
    for place in zluda.client.__path__:
        path = Path(place) / part
        if path.exists():
            return path
    raise NotInstalled(
        f"{part} is not beside {zluda.client.__path__[0]}: zluda was not built; run `pip install .` in its checkout"
    )


def library_directory() -> Path:
    """The folder that holds libcuda.so.1."""
    return _find("lib/libcuda.so.1").parent


def include_directory() -> Path:
    """The folder of the generated cuda.h, for building driver-API programs without a CUDA toolkit."""
    return _find("include/cuda.h").parent


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What `zluda run` adds to an environment: where libcuda.so.1 is, and what the driver process starts with.

    The driver gets the user's own LD_LIBRARY_PATH, which a vendor's runtime may need, and nothing a program adds.
    """
    library = str(library_directory())
    paths = [path for path in environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path and path != library]
    return {
        "LD_LIBRARY_PATH": os.pathsep.join([library, *paths]),
        "ZLUDA_PYTHON": sys.executable,
        "ZLUDA_LD_LIBRARY_PATH": os.pathsep.join(paths),
    }
