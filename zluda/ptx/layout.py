"""Sizes, alignments and places of PTX variables and kernel parameters. All numbers are bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zluda.ptx.tree import Variable

_SUFFIXES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16, "1024": 128}

SIZES: dict[str, int] = {
    **{f"{kind}{bits}": _SUFFIXES[bits] for kind in "su" for bits in ("8", "16", "32", "64")},
    **{f"b{bits}": size for bits, size in _SUFFIXES.items()},
    **{f"f{bits}": _SUFFIXES[bits] for bits in ("16", "32", "64")},
    "bf16": 2,
    "tf32": 4,
    **dict.fromkeys(("f16x2", "bf16x2", "u16x2", "s16x2"), 4),
    "f32x2": 8,
    **dict.fromkeys(("e4m3", "e5m2", "e2m3", "e3m2", "ue8m0", "e2m1x2"), 1),
    **dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2", "e2m1x4"), 2),
    **dict.fromkeys(("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "u8x4", "s8x4"), 4),
    **dict.fromkeys(("texref", "samplerref", "surfref"), 8),
}
"""Bytes of one element of a type in memory (sections 5.2 and 5.3); opaque types are 64-bit handles.

`.pred` and the packed tensor types have none: they cannot lie in memory.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something lies in its block."""

    name: str
    offset: int
    size: int
    align: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in order; `size` ends with the last one, without padding behind it."""

    places: tuple[Place, ...]
    size: int
    align: int


def element_size(variable: Variable) -> int:
    """Bytes of one scalar or vector element. Raises ValueError for a type that cannot lie in memory."""
    size = SIZES.get(variable.type)
    if size is None:
        raise ValueError(f".{variable.type} {variable.name} cannot lie in memory")
    return size * variable.vector


def dimensions(variable: Variable) -> tuple[int, ...]:
    """The sizes of an array's dimensions; one left open is that of the initialiser, else 0 (section 5.4.2)."""
    found: list[int] = []
    level = variable.initialiser
    for extent in variable.shape:
        items = level if isinstance(level, tuple) else ()
        found.append(len(items) if extent is None else extent)
        level = items[0] if items else None
    return tuple(found)


def size_of(variable: Variable) -> int:
    """Bytes of a variable or parameter; 0 for an unsized array (dynamic shared memory). Raises ValueError."""
    size = element_size(variable)
    for extent in dimensions(variable):
        size *= extent
    return size


def align_of(variable: Variable) -> int:
    """The declared alignment, else the natural one, the size of an element (section 5.4.5). Raises ValueError."""
    return variable.align or element_size(variable)


def place(variables: Iterable[Variable]) -> Layout:
    """Places for variables one behind the other, each at its alignment. Raises ValueError."""
    places: list[Place] = []
    end = 0
    widest = 1
    for variable in variables:
        align = align_of(variable)
        offset = -(-end // align) * align
        size = size_of(variable)
        places.append(Place(variable.name, offset, size, align))
        end = offset + size
        widest = max(widest, align)
    return Layout(tuple(places), end, widest)


def parameters(function_parameters: Iterable[Variable]) -> Layout:
    """The parameter block of a kernel, as cuLaunchKernel's `extra` wants it packed: each parameter at its natural or
    declared alignment; `size` is that of CU_LAUNCH_PARAM_BUFFER_SIZE. Raises ValueError."""
    return place(function_parameters)
