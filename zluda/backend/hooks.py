"""The hooks a plugin may implement. Hooks discover and describe; they are never on a hot path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from zluda.backend.seam import Backend

PROJECT = "zluda"
"""pluggy's project name, and the entry point group that backend packages register under."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def zluda_backends() -> list[Backend]:  # type: ignore[empty-body]
    """The backends a plugin brings. Called once per process, before any probing.

    Constructing a backend must not load vendor libraries: that is `Backend.probe`'s work.
    """
