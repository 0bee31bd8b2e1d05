"""Pointers that loops move: how far from which other pointer they always are, counted in elements of how many bytes."""

from __future__ import annotations

from zluda.compiler.lower.affine import WIDEST, divisor
from zluda.compiler.lower.body import Body, writes
from zluda.compiler.lower.provenance import Pointers
from zluda.ptx.tree import Address, Instruction, Integer, Name, Operand

_MANY = ""
"""Stands for more than one root."""


def find(body: Body, pointers: Pointers) -> dict[str, tuple[str, int]]:
    """Pointer registers to (root register, bytes that divide the distance), for those that have one root other than
    themselves."""
    analysis = _Roots(body, pointers)
    analysis.solve()
    return {
        name: (root, analysis.granules.get(name, 1))
        for name, root in analysis.roots.items()
        if root != _MANY and root != name
    }


class _Roots:
    def __init__(self, body: Body, pointers: Pointers) -> None:
        self.body, self.classes, self.bases = body, pointers.classes, pointers.bases
        self.roots: dict[str, str] = {}
        self.granules: dict[str, int] = {}
        self.multiples: dict[str, int] = {}
        self.definitions: list[tuple[str, Instruction, int]] = []
        for instruction in body.instructions:
            written = writes(instruction, body)
            self.definitions.extend((name, instruction, len(written)) for name in written)

    def solve(self) -> None:
        for step in (self._multiple, self._root, self._granule):
            changed = True
            while changed:
                changed = False
                for name, instruction, count in self.definitions:
                    changed |= step(name, instruction, count)

    # --- numbers: which power of two divides them ---

    def multiple(self, operand: Operand) -> int:
        if isinstance(operand, Integer):
            return divisor(operand.value)
        if isinstance(operand, Name) and self.body.register_type(operand.name) is not None:
            return self.multiples.get(operand.name, WIDEST)
        return 1

    def _multiple(self, name: str, instruction: Instruction, count: int) -> bool:
        new = self._divides(instruction) if count == 1 else 1
        old = self.multiples.get(name, WIDEST)
        self.multiples[name] = min(old, new)
        return new < old

    def _divides(self, instruction: Instruction) -> int:
        operands, modifiers = instruction.operands, instruction.opcode.modifiers
        match instruction.opcode.name:
            case "mov" if len(operands) == 2:
                return self.multiple(operands[1])
            case "add" | "sub" if len(operands) == 3 and "sat" not in modifiers and "cc" not in modifiers:
                return min(self.multiple(operands[1]), self.multiple(operands[2]))
            case "selp":
                return min(self.multiple(operands[1]), self.multiple(operands[2]))
            case "mul" if "hi" not in modifiers and modifiers[-1][0] in "us":
                return min(WIDEST, self.multiple(operands[1]) * self.multiple(operands[2]))
            case "mad" if "hi" not in modifiers and modifiers[-1][0] in "us" and "sat" not in modifiers:
                product = min(WIDEST, self.multiple(operands[1]) * self.multiple(operands[2]))
                return min(product, self.multiple(operands[3]))
            case "shl" if isinstance(operands[2], Integer):
                return min(WIDEST, self.multiple(operands[1]) << min(operands[2].value & 0xFFFFFFFF, 6))
            case "cvt" if modifiers[-1] in ("s32", "u32") and modifiers[-2] in ("s64", "u64"):
                return self.multiple(operands[1])
        return 1

    # --- pointers ---

    def sources(self, instruction: Instruction) -> list[str] | None:
        """Registers that a pointer comes from; None when it comes from elsewhere."""
        operands = instruction.operands
        match instruction.opcode.name:
            case "add" | "sub":
                base = self.bases.get(instruction.offset)
                return [base] if base is not None else None
            case "mad":
                candidates: list[Operand] = [operands[3]]
            case "mov" | "cvta":
                candidates = [operands[1]]
            case "selp":
                candidates = list(operands[1:3])
            case "ld":
                address = operands[1]
                named = isinstance(address, Address) and isinstance(address.base, Name) and address.offset == 0
                if not named or not isinstance(address, Address) or address.base is None:
                    return None
                if not isinstance(address.base, Name) or address.base.name not in self.body.parameters:
                    return None
                candidates = [address.base]
            case _:
                return None
        found = [o.name for o in candidates if isinstance(o, Name) and o.name in self.classes]
        return found if len(found) == len(candidates) else None

    def _root(self, name: str, instruction: Instruction, _: int) -> bool:
        if name not in self.classes:
            return False
        sources = self.sources(instruction)
        old = self.roots.get(name)
        new = old
        if sources is None or any(self.classes[s] != self.classes[name] for s in sources):
            new = name if old in (None, name) else _MANY
        else:
            for source in sources:
                root = self.roots.get(source)
                if source in self.body.parameters and root is None:
                    root = source
                if root is not None and root != new:
                    new = root if new is None else _MANY
        if new == old or old == _MANY:
            return False
        assert new is not None
        self.roots[name] = new
        return True

    def _granule(self, name: str, instruction: Instruction, _: int) -> bool:
        if name not in self.classes:
            return False
        old = self.granules.get(name, WIDEST)
        sources = self.sources(instruction)
        new = old if sources is None else min(old, *(self.granules.get(s, WIDEST) for s in sources))
        operands = instruction.operands
        match instruction.opcode.name:
            case "add" | "sub":
                base = self.bases.get(instruction.offset)
                first, second = operands[1:3]
                new = min(new, self.multiple(second if isinstance(first, Name) and first.name == base else first))
            case "mad":
                new = min(new, self.multiple(operands[1]) * self.multiple(operands[2]))
        self.granules[name] = new
        return new < old
