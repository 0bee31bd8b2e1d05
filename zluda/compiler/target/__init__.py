"""Targets: the one place where code for one vendor differs from code for another."""

from __future__ import annotations

from collections.abc import Callable

from zluda.backend.info import TargetInfo
from zluda.compiler.target.base import Target, UnknownTarget
from zluda.compiler.target.spirv import SpirvTarget

_TARGETS: dict[str, Callable[[TargetInfo], Target]] = {SpirvTarget.name: SpirvTarget}


def target_for(info: TargetInfo) -> Target:
    """The target for a device. Raises UnknownTarget for a name that none goes by."""
    try:
        make = _TARGETS[info.name]
    except KeyError:
        known = ", ".join(sorted(_TARGETS))
        raise UnknownTarget(f"no compiler target is called {info.name!r}; there is: {known}") from None
    return make(info)


__all__ = ["SpirvTarget", "Target", "UnknownTarget", "target_for"]
