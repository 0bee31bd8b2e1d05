"""Which 64-bit registers carry addresses, and into which memory.

Address arithmetic through pointers and getelementptr keeps what a device's compiler needs to see; through integers a
vector add ran 3.4 times slower. A register is taken for a pointer when it can come from an address and is used as one.
Taking a number for a pointer, or a pointer for a number, costs speed only: arithmetic is the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from zluda.compiler.lower.body import Body, writes
from zluda.ptx.tree import Address, Group, Instruction, Integer, Name, Offset, Operand, Space

CLASSES = {"global": "global", "const": "global", "local": "local", "shared": "shared", "param": "local"}
"""State space of an address to the class of register that holds it; const banks lie in global memory."""


class Rank(IntEnum):
    """How surely a register's bits come from an address."""

    NUMBER = 0
    LOADED = 1
    PARAMETER = 2
    ADDRESS = 3


@dataclass(slots=True)
class _Definition:
    """One write of a register: from an address of some space, or from other registers."""

    rank: Rank = Rank.NUMBER
    space: str | None = None
    sources: tuple[str, ...] = ()
    kind: str = "copy"
    """copy: any of the sources; add: whichever source is the base; sub: the first, unless the second is an address."""
    offset: int = 0
    """Of the instruction in the source."""
    forced: bool = False
    """Whether `space` holds whatever the sources say (cvta)."""
    null: bool = False


@dataclass(frozen=True, slots=True)
class Pointers:
    """Registers that are kept as pointers, and where additions start from."""

    classes: dict[str, str]
    """Register to `global`, `local`, `shared` or `generic`."""
    bases: dict[int, str]
    """Offset of an add or sub to the operand that is the address, the other being a number."""


@dataclass(slots=True)
class _Inference:
    body: Body
    space_of: Callable[[str], Space | None]
    definitions: dict[str, list[_Definition]] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)
    spaces: dict[str, str | None] = field(default_factory=dict)
    needed: set[str] = field(default_factory=set)
    anchors: list[str] = field(default_factory=list)
    kernel_parameters: frozenset[str] = frozenset()

    def wide(self, operand: Operand) -> str | None:
        if isinstance(operand, Name):
            type = self.body.register_type(operand.name)
            if type is not None and type in ("b64", "u64", "s64"):
                return operand.name
        return None

    def define(self, register: str, definition: _Definition) -> None:
        self.definitions.setdefault(register, []).append(definition)

    # --- reading the body ---

    def instruction(self, instruction: Instruction) -> None:
        for operand in instruction.operands:
            if isinstance(operand, Address) and isinstance(operand.base, Name):
                base = self.wide(operand.base)
                if base is not None and base not in self.body.parameters:
                    self.anchors.append(base)
        if not instruction.operands:
            return
        if instruction.opcode.name == "isspacep" and (tested := self.wide(instruction.operands[1])) is not None:
            self.anchors.append(tested)
        name, operands = instruction.opcode.name, instruction.operands
        target = self.wide(operands[0])
        if name == "st" and isinstance(operands[0], Address) and len(operands) > 1:
            written = writes(instruction, self.body)
            source = self.wide(operands[1])
            if written and operands[0].offset == 0 and source is not None:
                self.define(written[0], _Definition(sources=(source,)))
            return
        if target is None or not writes(instruction, self.body):
            for register in writes(instruction, self.body):
                rank = Rank.LOADED if name in ("ld", "ldu", "call") else Rank.NUMBER
                if self.wide(Name(register)):
                    self.define(register, self._loaded(instruction) if rank else _Definition())
            return
        self.define(target, self._definition(instruction, name))

    def _loaded(self, instruction: Instruction) -> _Definition:
        if instruction.opcode.name == "ld" and len(instruction.operands) > 1:
            address = instruction.operands[1]
            if (
                isinstance(address, Address)
                and isinstance(address.base, Name)
                and address.base.name in self.kernel_parameters
            ):
                return _Definition(Rank.PARAMETER, "global")
        return _Definition(Rank.LOADED, "generic")

    def _definition(self, instruction: Instruction, name: str) -> _Definition:
        operands, modifiers = instruction.operands, instruction.opcode.modifiers
        sources = tuple(r for r in map(self.wide, operands[1:]) if r is not None)
        match name:
            case "mov":
                return self._moved(operands[1])
            case "selp":
                null = any(isinstance(o, Integer) for o in operands[1:3])
                return _Definition(sources=tuple(r for r in map(self.wide, operands[1:3]) if r), null=null)
            case "ld" | "ldu":
                address = operands[1] if len(operands) > 1 else None
                if (
                    isinstance(address, Address)
                    and isinstance(address.base, Name)
                    and address.base.name in self.body.parameters
                    and address.offset == 0
                ):
                    return _Definition(sources=(address.base.name,))
                return self._loaded(instruction)
            case "add" if "cc" not in modifiers:
                return _Definition(sources=sources, kind="add", offset=instruction.offset)
            case "sub" if "cc" not in modifiers:
                first = self.wide(operands[1])
                if first is None:
                    return _Definition()
                second = self.wide(operands[2])
                return _Definition(
                    sources=(first, second) if second else (first,), kind="sub", offset=instruction.offset
                )
            case "mad" if "hi" not in modifiers and "cc" not in modifiers:
                last = self.wide(operands[3])
                return _Definition(sources=(last,) if last else ())
            case "cvta":
                space = next((CLASSES[m] for m in (x.partition("::")[0] for x in modifiers) if m in CLASSES), "generic")
                source = self.wide(operands[1])
                if space == "shared":
                    if "to" in modifiers:
                        self.anchors.extend(sources)
                        return _Definition()
                    return _Definition(Rank.ADDRESS, "shared")
                found = self._moved(operands[1])
                return _Definition(Rank.ADDRESS, space, (source,) if source else found.sources, forced=True)
            case "mapa":
                return _Definition(Rank.ADDRESS, "generic")
        return _Definition()

    def _moved(self, operand: Operand) -> _Definition:
        register = self.wide(operand)
        if register is not None:
            return _Definition(sources=(register,))
        if isinstance(operand, Integer):
            return _Definition(null=operand.value == 0)
        if isinstance(operand, Name | Offset):
            space = self.space_of(operand.name)
            if space is not None and CLASSES.get(space.value, "shared") != "shared":
                return _Definition(Rank.ADDRESS, CLASSES[space.value])
        return _Definition()

    # --- solving ---

    def base(self, definition: _Definition) -> str | None:
        """The source that an add or sub starts from."""
        ranked = sorted(definition.sources, key=lambda r: -self.ranks.get(r, Rank.NUMBER))
        if not ranked:
            return None
        if definition.kind == "sub" and len(definition.sources) == 2:
            first, second = (self.ranks.get(r, Rank.NUMBER) for r in definition.sources)
            return definition.sources[0] if first > second else None
        return ranked[0]

    def rank_of(self, definition: _Definition) -> Rank:
        rank = definition.rank
        if definition.kind == "copy":
            return max((rank, *(self.ranks.get(r, Rank.NUMBER) for r in definition.sources)))
        base = self.base(definition)
        return max(rank, self.ranks.get(base, Rank.NUMBER)) if base is not None else rank

    def solve(self) -> None:
        changed = True
        while changed:
            changed = False
            for register, definitions in self.definitions.items():
                rank = max(self.rank_of(d) for d in definitions)
                if rank > self.ranks.get(register, Rank.NUMBER):
                    self.ranks[register] = rank
                    changed = True
        changed = True
        while changed:
            changed = False
            for register, definitions in self.definitions.items():
                space = self.spaces.get(register)
                for definition in definitions:
                    space = _join(space, self.space_from(definition))
                if space != self.spaces.get(register):
                    self.spaces[register] = space
                    changed = True
        work = list(self.anchors)
        while work:
            register = work.pop()
            if register in self.needed or not self.ranks.get(register):
                continue
            self.needed.add(register)
            for definition in self.definitions.get(register, ()):
                if definition.kind == "copy":
                    work.extend(definition.sources)
                elif (base := self.base(definition)) is not None:
                    work.append(base)

    def space_from(self, definition: _Definition) -> str | None:
        if definition.forced or definition.space is not None:
            return definition.space
        if definition.null:
            space = None
            for source in definition.sources:
                space = _join(space, self.spaces.get(source))
            return "generic" if space == "shared" else space or "null"
        if definition.kind != "copy":
            base = self.base(definition)
            return self.spaces.get(base) if base is not None else "generic"
        if not definition.sources:
            return "generic"
        space = None
        for source in definition.sources:
            space = _join(space, self.spaces.get(source))
        return space


def _join(a: str | None, b: str | None) -> str | None:
    if a is None or a == b:
        return b
    if b is None:
        return a
    pair = {a, b}
    if "null" in pair and "shared" not in pair:
        # A null pointer is one in every space but shared, where 0 is an address.
        return a if b == "null" else b
    return "generic"


def infer(
    body: Body,
    space_of: Callable[[str], Space | None],
    pointer_arguments: Callable[[str], tuple[bool, ...]],
) -> Pointers:
    """Find the registers to keep as pointers.

    `space_of` knows the variables that can be named in the body; `pointer_arguments` which parameters a device function
    takes as pointers.
    """
    inference = _Inference(body, space_of)
    if body.function.entry:
        inference.kernel_parameters = frozenset(p.name for p in body.function.parameters)
    for parameter in body.function.parameters:
        if inference.wide(Name(parameter.name)):
            inference.define(parameter.name, _Definition(Rank.PARAMETER, "generic"))
    for instruction in body.instructions:
        inference.instruction(instruction)
        if instruction.opcode.name == "call":
            groups = [o for o in instruction.operands if isinstance(o, Group)]
            callee = next((o.name for o in instruction.operands if isinstance(o, Name)), None)
            if callee is not None and groups and isinstance(instruction.operands[-1], Group):
                for argument, pointer in zip(groups[-1].items, pointer_arguments(callee), strict=False):
                    register = inference.wide(argument)
                    if pointer and register is not None:
                        inference.anchors.append(register)
    inference.solve()
    found = {}
    for register in inference.needed:
        space = inference.spaces.get(register)
        found[register] = space if space in ("global", "local", "shared") else "generic"
    bases = {}
    for definitions in inference.definitions.values():
        for definition in definitions:
            if definition.kind != "copy" and (base := inference.base(definition)) is not None:
                bases[definition.offset] = base
    return Pointers(found, bases)
