"""Which branches the threads of a block may take differently, and which blocks lie on only some threads' way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from zluda.compiler.lower.body import has_result, names, reads, writes
from zluda.compiler.lower.flow import ENDS, Flow, post_dominators
from zluda.compiler.lower.scan import is_barrier
from zluda.ptx.tree import Component, Instruction

_OWN = ("%tid", "%laneid", "%lanemask_", "%warpid", "%clock", "%globaltimer", "%smid")
"""Special registers that differ between the threads of a block."""

_VARYING = frozenset(["atom", "shfl", "vote", "match", "activemask", "redux", "elect", "call"])


@dataclass(slots=True)
class Divergence:
    """What is known of the branches of a body. `varying` holds registers that may differ between threads."""

    flow: Flow
    barriers: set[int]
    """Blocks in which all threads must arrive."""
    meeting: list[int]
    """Where the ways from each block come together again; the number of blocks stands for the end."""
    varying: set[str] = field(default_factory=set)
    regions: dict[int, frozenset[int]] = field(default_factory=dict)
    """For each block that ends in a varying branch: the blocks before its ways meet."""

    def reaches(self, start: int) -> frozenset[int]:
        """Blocks that can be reached from one, itself included."""
        return region(self.flow, [start], -1)


def analyse(
    flow: Flow, calls_barrier: Callable[[Instruction], bool], leaves: frozenset[int] = frozenset()
) -> Divergence:
    """Find the varying registers and branches; blocks in `leaves` end in branches whose ways are not held apart."""
    body = flow.body
    barriers = {
        number
        for number in flow.order
        for index in range(flow.blocks[number].first, flow.blocks[number].last)
        if is_barrier(body.instructions[index]) or calls_barrier(body.instructions[index])
    }
    found = Divergence(flow, barriers, post_dominators(flow))
    if not body.function.entry:
        found.varying.update(p.name for p in body.function.parameters)
    changed = True
    while changed:
        changed = False
        apart = frozenset().union(*found.regions.values()) if found.regions else frozenset()
        for number in flow.order:
            block = flow.blocks[number]
            for index in range(block.first, block.last):
                instruction = body.instructions[index]
                if not varies(instruction, found, number in apart):
                    continue
                new = set(writes(instruction, body)) - found.varying
                if new:
                    found.varying |= new
                    changed = True
            if number not in found.regions and number not in leaves and branch_varies(found, number):
                found.regions[number] = region(flow, flow.blocks[number].successors, found.meeting[number])
                changed = True
    return found


def varies(instruction: Instruction, found: Divergence, apart: bool = False) -> bool:
    """Whether an instruction's result may differ between threads."""
    body = found.flow.body
    if instruction.opcode.name in _VARYING:
        return True
    if any(name in found.varying for name in reads(instruction, body)):
        return True
    for operand in instruction.operands[1 if has_result(instruction) else 0 :]:
        if isinstance(operand, Component) and operand.name.startswith(_OWN):
            return True
        if any(name.startswith(_OWN) and body.register_type(name) is None for name in names(operand)):
            return True
    # A register that threads write on different ways differs where the ways meet.
    return apart


def branch_varies(found: Divergence, number: int) -> bool:
    """Whether threads may leave a block in different directions."""
    block = found.flow.blocks[number]
    if len(block.successors) + block.leaves < 2:
        return False
    last = found.flow.body.instructions[block.last - 1]
    if last.opcode.name not in ENDS:
        return False
    if last.guard is not None and last.guard.name in found.varying:
        return True
    return last.opcode.name == "brx" and any(name in found.varying for name in reads(last, found.flow.body))


def region(flow: Flow, starts: list[int], meeting: int) -> frozenset[int]:
    """Blocks that can be reached from some without passing another."""
    seen: set[int] = set()
    work = list(starts)
    while work:
        at = work.pop()
        if at == meeting or at in seen:
            continue
        seen.add(at)
        work.extend(flow.blocks[at].successors)
    return frozenset(seen)
