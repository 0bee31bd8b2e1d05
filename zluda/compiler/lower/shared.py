"""The shared block of a kernel: static variables, then the dynamic part where every `extern .shared` array lies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from zluda.ptx.layout import align_of, size_of
from zluda.ptx.tree import Variable

DYNAMIC_ALIGN = 16
"""Alignment of the dynamic part at least: CUDA gives 16 bytes."""


@dataclass(slots=True)
class SharedLayout:
    """Offsets of shared variables in the block. Two functions may each have a variable of one name: keys name both."""

    offsets: dict[tuple[str | None, str], int] = field(default_factory=dict)
    """(function, or None for a module variable, name) to byte offset."""
    static_bytes: int = 0

    def offset(self, function: str, name: str) -> int:
        found = self.offsets.get((function, name))
        return self.offsets[None, name] if found is None else found


def layout(variables: Iterable[tuple[str | None, Variable]]) -> SharedLayout:
    """Place (owner, variable) pairs; the largest alignment first, then as declared."""
    found = SharedLayout()
    pairs = list(variables)
    static = [pair for pair in pairs if size_of(pair[1])]
    offset = 0
    for owner, variable in sorted(static, key=lambda pair: -align_of(pair[1])):
        align = align_of(variable)
        offset = -(-offset // align) * align
        found.offsets[owner, variable.name] = offset
        offset += size_of(variable)
    dynamic = [pair for pair in pairs if not size_of(pair[1])]
    if dynamic:
        align = max(DYNAMIC_ALIGN, *(align_of(variable) for _, variable in dynamic))
        offset = -(-offset // align) * align
        for owner, variable in dynamic:
            found.offsets[owner, variable.name] = offset
    found.static_bytes = offset
    return found
