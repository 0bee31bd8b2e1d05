"""From a case to what an executor has to hand over: values and buffers, poisoned and guarded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .bits import Element, Pointer, pack
from .case import Case, Triple

POISON = 0xA5
"""What output buffers hold before the launch."""
GUARD_BYTE = 0x5A
GUARD = 256
"""Guard bytes before and after each buffer; the alignment that cuMemAlloc promises, so that buffers keep it."""


@dataclass(frozen=True)
class Fixup:
    """Eight bytes at `at` that must hold the address of argument `argument`'s buffer plus `offset`."""

    at: int
    argument: int
    offset: int


@dataclass(frozen=True)
class Value:
    """An argument that is passed by value: `data`, after `fixups`. `align` is the parameter's alignment in bytes."""

    data: bytes
    align: int
    fixups: tuple[Fixup, ...] = ()


@dataclass(frozen=True)
class Buffer:
    """Device memory that an argument points to. The kernel is given the address of `image` plus `start`."""

    image: bytes
    start: int
    fixups: tuple[Fixup, ...] = ()
    passed: bool = True
    """Whether a parameter of the kernel points to it."""


@dataclass(frozen=True)
class Launch:
    """All an executor needs. It returns the images of the buffers after the launch, in order."""

    kernel: str
    grid: Triple
    block: Triple
    shared: int
    arguments: tuple[Value | Buffer, ...]


def plan(case: Case) -> Launch:
    """The launch that `case` asks for."""
    arguments: list[Value | Buffer] = []
    for argument in case.arguments:
        if argument.kind == "value":
            arguments.append(Value(pack(argument.bits, argument.width), argument.align, _fixups(argument.bits, 0)))
            continue
        if argument.kind == "out":
            payload = bytes([POISON]) * (argument.width * argument.count)
        else:
            payload = pack(argument.bits, argument.width)
        guard = bytes([GUARD_BYTE]) * GUARD
        arguments.append(Buffer(guard + payload + guard, GUARD, _fixups(argument.bits, GUARD), argument.passed))
    return Launch(case.kernel, case.grid, case.block, case.shared, tuple(arguments))


def _fixups(elements: Sequence[Element], start: int) -> tuple[Fixup, ...]:
    return tuple(
        Fixup(start + 8 * index, element.argument, element.offset)
        for index, element in enumerate(elements)
        if isinstance(element, Pointer)
    )


def with_addresses(data: bytes, fixups: Sequence[Fixup], addresses: Sequence[int]) -> bytes:
    """`data` with the fixups applied; `addresses` are what the kernel is given for each argument (0 for values)."""
    patched = bytearray(data)
    for fixup in fixups:
        patched[fixup.at : fixup.at + 8] = (addresses[fixup.argument] + fixup.offset).to_bytes(8, "little")
    return bytes(patched)
