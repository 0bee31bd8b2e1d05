"""Kernel parameters: which pieces of the parameter block become arguments of the device's function."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from zluda.backend.info import Argument, ArgumentKind
from zluda.compiler.kernel import Parameter
from zluda.compiler.lower.body import Body, names
from zluda.ptx.layout import SIZES, parameters
from zluda.ptx.tree import Address, Function, Instruction, Name, Variable, Vector


@dataclass(frozen=True, slots=True)
class Piece:
    """`size` bytes at an offset into the parameter block, passed as one argument."""

    offset: int
    size: int
    pointer: bool = False
    constant: bool = False
    """For a pointer: whether all that is read through it is read by ld.global.nc, so nothing writes it meanwhile."""

    @property
    def name(self) -> str:
        return f"%arg{self.offset}" + ("" if self.size == 8 else f".{self.size}")

    @property
    def argument(self) -> Argument:
        kind = ArgumentKind.POINTER if self.pointer else ArgumentKind.VALUE
        return Argument(kind=kind, offset=self.offset, size=self.size)


@dataclass(slots=True)
class KernelParameters:
    """The parameter block of a kernel."""

    places: dict[str, Parameter] = field(default_factory=dict)
    total: int = 0
    pieces: list[Piece] = field(default_factory=list)
    in_memory: set[str] = field(default_factory=set)
    """Parameters that are read in other ways than whole pieces at constant offsets: copied to local memory at entry."""

    def piece(self, offset: int, size: int) -> Piece | None:
        return next((p for p in self.pieces if p.offset == offset and p.size == size), None)


def block(function: Function) -> tuple[dict[str, Parameter], int]:
    """Places of a kernel's parameters in the packed block, and its size. Bytes."""
    found = parameters(function.parameters)
    return {p.name: Parameter(offset=p.offset, size=p.size, align=p.align) for p in found.places}, found.size


def is_parameter_load(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    return opcode.name == "ld" and any(m.partition("::")[0] == "param" for m in opcode.modifiers)


def load_shape(instruction: Instruction) -> tuple[int, int]:
    """(elements, bytes of each) of an ld or st."""
    modifiers = instruction.opcode.modifiers
    count = next((int(m[1:]) for m in modifiers if m in ("v2", "v4", "v8")), 1)
    return count, SIZES[modifiers[-1]]


def plan(body: Body, classes: dict[str, str]) -> KernelParameters:
    """Decide for every parameter how it is passed. `classes` are the registers kept as pointers."""
    function = body.function
    found = KernelParameters()
    found.places, found.total = block(function)
    variables = {v.name: v for v in function.parameters}
    touched: dict[str, set[tuple[int, int]]] = {}
    pointers: set[int] = set()
    for instruction in body.instructions:
        direct = _direct(instruction, variables)
        if direct is not None:
            name, address = direct
            count, size = load_shape(instruction)
            for index in range(count):
                touched.setdefault(name, set()).add((address.offset + index * size, size))
            target = instruction.operands[0]
            items = target.items if isinstance(target, Vector) else (target,)
            for index, item in enumerate(items):
                if isinstance(item, Name) and classes.get(item.name) in ("global", "generic") and size == 8:
                    pointers.add(found.places[name].offset + address.offset + index * size)
            continue
        for operand in instruction.operands:
            found.in_memory.update(n for n in names(operand) if n in variables and n not in body.registers)
    for name, accesses in touched.items():
        ordered = sorted(accesses)
        overlap = any(a[0] + a[1] > b[0] for a, b in itertools.pairwise(ordered))
        if overlap or ordered[0][0] < 0 or ordered[-1][0] + ordered[-1][1] > found.places[name].size:
            found.in_memory.add(name)
    for name, place in found.places.items():
        if name in found.in_memory:
            found.pieces.extend(Piece(place.offset + at, size) for at, size in words(place.size))
        else:
            for at, size in sorted(touched.get(name, ())):
                found.pieces.append(Piece(place.offset + at, size, place.offset + at in pointers and size == 8))
    return found


def words(size: int) -> list[tuple[int, int]]:
    """(offset, size) of the words that make up so many bytes: eights, then what is left."""
    found = []
    at = 0
    for word in (8, 4, 2, 1):
        while size - at >= word:
            found.append((at, word))
            at += word
    return found


def _direct(instruction: Instruction, variables: dict[str, Variable]) -> tuple[str, Address] | None:
    """The kernel parameter that an ld.param reads at a constant offset."""
    if not is_parameter_load(instruction) or len(instruction.operands) < 2:
        return None
    address = instruction.operands[1]
    if isinstance(address, Address) and isinstance(address.base, Name) and address.base.name in variables:
        return address.base.name, address
    return None
