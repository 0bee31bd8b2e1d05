"""Control flow of a body: basic blocks, their order, dominators, and which registers live across them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from zluda.compiler.lower.body import Body, reads, writes
from zluda.ptx.errors import PtxSyntaxError, PtxUnsupported
from zluda.ptx.tree import Instruction, Name

ENDS = frozenset(["bra", "brx", "ret", "exit", "trap"])
"""Opcodes that end a basic block. A guarded one falls through as well."""


@dataclass(slots=True)
class BasicBlock:
    """Instructions `first` to `last` (exclusive) of a body; successors and predecessors are block numbers."""

    first: int
    last: int
    successors: list[int] = field(default_factory=list)
    predecessors: list[int] = field(default_factory=list)
    leaves: bool = False
    """Whether a thread can return or exit here."""


@dataclass(slots=True)
class Flow:
    """The control-flow graph; block 0 is the entry. Blocks that are never reached have no place in `order`."""

    body: Body
    blocks: list[BasicBlock]
    block_of: dict[str, int]
    """Label to block."""
    order: list[int]
    """Reverse postorder: a dominator stands before what it dominates."""
    dominator: list[int]
    """Immediate dominators; of the entry itself, -1 for unreached blocks."""

    def dominates(self, a: int, b: int) -> bool:
        while b > 0 and b != a and self.dominator[b] != b:
            b = self.dominator[b]
        return a == b


def branch_targets(instruction: Instruction, body: Body) -> list[str]:
    """Labels that a bra or brx.idx may go to."""
    name, operands = instruction.opcode.name, instruction.operands
    if name == "bra" and operands and isinstance(operands[0], Name):
        return [operands[0].name]
    if name == "brx" and len(operands) == 2 and isinstance(operands[1], Name):
        if operands[1].name not in body.targets:
            raise PtxSyntaxError(
                body.source,
                instruction.offset,
                f"{operands[1].name} is no .branchtargets list",
                function=body.function.name,
            )
        return list(body.targets[operands[1].name])
    return []


def build(body: Body) -> Flow:
    """Cut a body into blocks. Raises PtxSyntaxError for an unknown label."""
    instructions = body.instructions
    starts = {0, *body.labels.values()}
    for index, instruction in enumerate(instructions):
        if instruction.opcode.name in ENDS:
            starts.add(index + 1)
    cuts = sorted(starts)
    if cuts[-1] != len(instructions):
        cuts.append(len(instructions))
    # A label at the very end makes an empty last block, which returns.
    blocks = [BasicBlock(a, b) for a, b in itertools.pairwise(cuts)] or [BasicBlock(0, 0)]
    if len(instructions) in body.labels.values() and blocks[-1].first != len(instructions):
        blocks.append(BasicBlock(len(instructions), len(instructions)))
    at = {block.first: number for number, block in enumerate(blocks)}
    block_of = {label: at[index] for label, index in body.labels.items()}
    for number, block in enumerate(blocks):
        _connect(body, blocks, block_of, number, block)
    for number, block in enumerate(blocks):
        for successor in block.successors:
            blocks[successor].predecessors.append(number)
    order = _reverse_postorder(blocks)
    return Flow(body, blocks, block_of, order, _dominators(blocks, order))


def _connect(body: Body, blocks: list[BasicBlock], block_of: dict[str, int], number: int, block: BasicBlock) -> None:
    last = body.instructions[block.last - 1] if block.last > block.first else None
    falls = True
    if last is not None and last.opcode.name in ENDS:
        falls = last.guard is not None
        for target in branch_targets(last, body):
            if target not in block_of:
                raise PtxSyntaxError(
                    body.source, last.offset, f"there is no label {target} here", function=body.function.name
                )
            if block_of[target] not in block.successors:
                block.successors.append(block_of[target])
        if last.opcode.name in ("ret", "exit", "trap"):
            block.leaves = True
        elif not block.successors:
            raise PtxUnsupported(
                body.source, last.offset, "a branch through a register is not lowered", function=body.function.name
            )
    if falls:
        if number + 1 < len(blocks):
            if number + 1 not in block.successors:
                block.successors.append(number + 1)
        else:
            block.leaves = True


def _reverse_postorder(blocks: list[BasicBlock]) -> list[int]:
    seen = {0}
    order: list[int] = []
    stack = [(0, iter(blocks[0].successors))]
    while stack:
        number, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(blocks[successor].successors)))
                break
        else:
            order.append(number)
            stack.pop()
    order.reverse()
    return order


def _dominators(blocks: list[BasicBlock], order: list[int]) -> list[int]:
    """Cooper, Harvey and Kennedy's iteration over reverse postorder."""
    place = {number: index for index, number in enumerate(order)}
    dominator = [-1] * len(blocks)
    dominator[0] = 0
    changed = True
    while changed:
        changed = False
        for number in order[1:]:
            new = -1
            for predecessor in blocks[number].predecessors:
                if predecessor not in place or dominator[predecessor] < 0:
                    continue
                if new < 0:
                    new = predecessor
                    continue
                a, b = predecessor, new
                while a != b:
                    while place[a] > place[b]:
                        a = dominator[a]
                    while place[b] > place[a]:
                        b = dominator[b]
                new = a
            if new != dominator[number]:
                dominator[number] = new
                changed = True
    return dominator


def post_dominators(flow: Flow) -> list[int]:
    """Immediate post-dominators; the number of blocks stands for the exit behind all that leave, -1 where unknown."""
    exit_number = len(flow.blocks)
    reverse = [BasicBlock(0, 0) for _ in range(exit_number + 1)]
    reached = set(flow.order)
    # Numbered from the exit so that block 0 of the reversed graph is the entry of the walk.
    turn = [exit_number, *range(exit_number)]
    number_of = {original: index for index, original in enumerate(turn)}
    for number in flow.order:
        block = flow.blocks[number]
        targets = [s for s in block.successors if s in reached] + ([exit_number] if block.leaves else [])
        for target in targets:
            reverse[number_of[target]].successors.append(number_of[number])
            reverse[number_of[number]].predecessors.append(number_of[target])
    found = _dominators(reverse, _reverse_postorder(reverse))
    result = [-1] * (exit_number + 1)
    for index, dominator in enumerate(found):
        if dominator >= 0:
            result[turn[index]] = turn[dominator]
    return result


class Keeping:
    """How the values of registers are kept: `single` ones are plain values everywhere, `slots` need memory.

    All others are written before they are read in every block, so that their values never leave a block.
    """

    def __init__(self, flow: Flow) -> None:
        body, blocks = flow.body, flow.blocks
        defined: dict[str, list[tuple[int, int, bool]]] = {}
        used: dict[str, list[tuple[int, int]]] = {}
        self.written: list[list[str]] = [writes(i, body) for i in body.instructions]
        for parameter in body.function.parameters:
            if parameter.name in body.registers:
                defined[parameter.name] = [(0, -1, False)]
        for number in flow.order:
            block = blocks[number]
            for index in range(block.first, block.last):
                instruction = body.instructions[index]
                for name in reads(instruction, body):
                    used.setdefault(name, []).append((number, index))
                for name in self.written[index]:
                    partial = instruction.guard is not None or (
                        name in body.parameters and instruction.opcode.name == "st"
                    )
                    defined.setdefault(name, []).append((number, index, partial))
            if block.leaves and block.last == len(body.instructions):
                for variable in body.function.returns:
                    if variable.name in body.registers:
                        used.setdefault(variable.name, []).append((number, block.last))
        self.single: set[str] = set()
        self.defined, self.used = defined, used
        rest: list[str] = []
        for name, places in defined.items():
            if len(places) == 1 and not places[0][2] and self._covers(flow, places[0], used.get(name, [])):
                self.single.add(name)
            else:
                rest.append(name)
        self._liveness(flow, rest, defined, used)

    @staticmethod
    def _covers(flow: Flow, definition: tuple[int, int, bool], uses: list[tuple[int, int]]) -> bool:
        block, index, _ = definition
        return all(
            (number == block and at > index) or (number != block and flow.dominates(block, number))
            for number, at in uses
        )

    def _liveness(
        self,
        flow: Flow,
        rest: list[str],
        defined: dict[str, list[tuple[int, int, bool]]],
        used: dict[str, list[tuple[int, int]]],
    ) -> None:
        bits = {name: 1 << index for index, name in enumerate(rest)}
        count = len(flow.blocks)
        needs, kills, self.live_out = [0] * count, [0] * count, [0] * count
        self.bits = bits
        first_whole: dict[tuple[str, int], int] = {}
        guarded = 0
        for name in rest:
            for number, index, partial in defined[name]:
                if partial:
                    guarded |= bits[name]
                else:
                    key = (name, number)
                    first_whole[key] = min(first_whole.get(key, index), index)
        for (name, number), _ in first_whole.items():
            kills[number] |= bits[name]
        for name in rest:
            for number, index in used.get(name, []):
                if first_whole.get((name, number), index) >= index:
                    needs[number] |= bits[name]
        live_in = list(needs)
        changed = True
        while changed:
            changed = False
            for number in reversed(flow.order):
                out = 0
                for successor in flow.blocks[number].successors:
                    out |= live_in[successor]
                self.live_out[number] = out
                new = needs[number] | (out & ~kills[number])
                if new != live_in[number]:
                    live_in[number] = new
                    changed = True
        anywhere = guarded
        for number in flow.order:
            anywhere |= live_in[number]
        self.guarded = guarded
        self.slots = {name for name in rest if bits[name] & anywhere}
        self.undefined_at_start = {name for name in rest if bits[name] & live_in[0]}

    def stored(self, name: str, block: int) -> bool:
        """Whether a value written to this register in a block must go to its slot."""
        bit = self.bits.get(name, 0)
        return bool(bit & (self.live_out[block] | self.guarded))
