"""Whether threads of a block may part ways around a barrier: some leave early while others still meet at it.

A device's compiler that runs a block as loops over its threads mishandles that unless the kernel fixes its subgroup
size, so such a kernel is launched flat.
"""

from __future__ import annotations

from collections.abc import Callable

from zluda.compiler.lower.body import has_result, names, reads, writes
from zluda.compiler.lower.flow import ENDS, Flow, post_dominators
from zluda.compiler.lower.scan import is_barrier
from zluda.ptx.tree import Component, Instruction

_OWN = ("%tid", "%laneid", "%lanemask_", "%warpid", "%clock", "%globaltimer", "%smid")
"""Special registers that differ between the threads of a block."""

_VARYING = frozenset(["atom", "shfl", "vote", "match", "activemask", "redux", "elect", "call"])


def parts_around_barrier(flow: Flow, calls_barrier: Callable[[Instruction], bool]) -> bool:
    """Whether a branch that threads may take differently has a barrier on one of its ways before they meet again."""
    body = flow.body
    barriers = {
        number
        for number in flow.order
        for index in range(flow.blocks[number].first, flow.blocks[number].last)
        if is_barrier(body.instructions[index]) or calls_barrier(body.instructions[index])
    }
    if not barriers:
        return False
    meeting = post_dominators(flow)
    varying: set[str] = set() if body.function.entry else {p.name for p in body.function.parameters}
    regions: dict[int, frozenset[int]] = {}
    changed = True
    while changed:
        changed = False
        apart = frozenset().union(*regions.values()) if regions else frozenset()
        for number in flow.order:
            block = flow.blocks[number]
            for index in range(block.first, block.last):
                instruction = body.instructions[index]
                if not _varies(instruction, flow, varying, number in apart):
                    continue
                new = set(writes(instruction, body)) - varying
                if new:
                    varying |= new
                    changed = True
            if number not in regions and _branches(flow, number) and _guard_varies(flow, number, varying):
                regions[number] = _region(flow, number, meeting[number])
                changed = True
    return any(barriers & region for region in regions.values())


def _varies(instruction: Instruction, flow: Flow, varying: set[str], apart: bool) -> bool:
    if instruction.opcode.name in _VARYING:
        return True
    if any(name in varying for name in reads(instruction, flow.body)):
        return True
    for operand in instruction.operands[1 if has_result(instruction) else 0 :]:
        if isinstance(operand, Component) and operand.name.startswith(_OWN):
            return True
        if any(name.startswith(_OWN) and flow.body.register_type(name) is None for name in names(operand)):
            return True
    # A register that threads write on different ways differs where the ways meet.
    return apart


def _branches(flow: Flow, number: int) -> bool:
    block = flow.blocks[number]
    return len(block.successors) + block.leaves > 1


def _guard_varies(flow: Flow, number: int, varying: set[str]) -> bool:
    block = flow.blocks[number]
    last = flow.body.instructions[block.last - 1]
    if last.opcode.name not in ENDS:
        return False
    if last.guard is not None and last.guard.name in varying:
        return True
    return last.opcode.name == "brx" and any(name in varying for name in reads(last, flow.body))


def _region(flow: Flow, number: int, meeting: int) -> frozenset[int]:
    """Blocks on the ways from a branch to where all of them meet."""
    seen: set[int] = set()
    work = list(flow.blocks[number].successors)
    while work:
        at = work.pop()
        if at == meeting or at in seen:
            continue
        seen.add(at)
        work.extend(flow.blocks[at].successors)
    return frozenset(seen)
