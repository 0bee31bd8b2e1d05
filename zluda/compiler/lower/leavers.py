"""Threads that leave a kernel while others still meet at barriers.

CUDA does not wait for threads that have ended. A device's compiler that runs a block as loops over its threads, from
barrier to barrier, takes one thread's way for all: those that leave must go on with the others. So a thread that would
leave early goes along instead, without touching memory, until the kernel ends: its `alive` register is false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from zluda.compiler.lower.body import Body
from zluda.compiler.lower.flow import BasicBlock, Flow, build
from zluda.compiler.lower.scan import is_barrier
from zluda.compiler.lower.uniform import Divergence, analyse, branch_varies, region, varies
from zluda.ptx.errors import PtxUnsupported
from zluda.ptx.tree import Address, Guard, Instruction, Integer, Name, Opcode, Operand

ALIVE = "%alive!"
"""Whether the thread has not left; no PTX identifier holds a '!'."""

MOST_CLONED = 2000
"""Instructions that are copied at most for one place where threads leave."""

_TOUCHES = frozenset(
    [
        "ld",
        "ldu",
        "st",
        "stu",
        "atom",
        "red",
        "call",
        "shfl",
        "vote",
        "match",
        "activemask",
        "redux",
        "elect",
        "tex",
        "tld4",
        "suld",
        "sust",
        "sured",
        "cp",
        "multimem",
        "alloca",
        "trap",
    ]
)
"""Opcodes that a thread which has left must not do any more."""

_AND = Opcode("and", ("pred",))
_OR = Opcode("or", ("pred",))
_NOT = Opcode("not", ("pred",))
_MOV = Opcode("mov", ("pred",))
_BRANCH = Opcode("bra", ())
_RETURN = Opcode("ret", ())
ANY_ALIVE = Opcode("barrier", ("red", "or", "pred"))


@dataclass(slots=True)
class _Leave:
    """A block that ends in a branch with one way out and one way on to a barrier."""

    block: int
    out: int | None
    """Where the way out starts; None for a guarded ret or exit."""
    on: int
    taken: bool
    """Whether the way out is taken when the guard holds."""


def keep_together(body: Body, calls_barrier: Callable[[Instruction], bool]) -> Body:
    """The body of a kernel in which every thread that leaves early goes on to the barriers that others reach.

    The same body when no thread does. Raises PtxUnsupported where a thread that has left could not follow.
    """
    flow = build(body)
    found = analyse(flow, calls_barrier)
    if not found.barriers:
        return body
    leaves = _leaves(flow, found)
    if leaves:
        # What threads do behind such a branch does not make them differ: none goes another way any more.
        found = analyse(flow, calls_barrier, frozenset(leave.block for leave in leaves))
        leaves = [leave for leave in leaves if branch_varies(found, leave.block)]
    if not leaves:
        return body
    return _Rewriter(body, flow, leaves, calls_barrier).run()


def _leaves(flow: Flow, found: Divergence) -> list[_Leave]:
    """Branches that threads may take differently, where one way ends without a barrier and the other has one."""
    leaves = []
    for number in found.regions:
        block = flow.blocks[number]
        last = flow.body.instructions[block.last - 1]
        if last.guard is None or last.opcode.name not in ("bra", "ret", "exit"):
            continue
        ways: list[int | None] = list(block.successors)
        if last.opcode.name != "bra":
            ways = [None, number + 1]
        if len(ways) != 2:
            continue
        for index, out in enumerate(ways):
            on = ways[1 - index]
            if on is None or (out is not None and found.reaches(out) & found.barriers):
                continue
            if found.reaches(on) & found.barriers and _ends_otherwise(flow, number, on):
                leaves.append(_Leave(number, out, on, index == 0))
                break
    return leaves


def _ends_otherwise(flow: Flow, number: int, on: int) -> bool:
    """Whether threads that go on come to an end without this branch's way out: it is not the only end of a loop."""
    seen: set[int] = set()
    work = [on]
    while work:
        at = work.pop()
        if at in seen:
            continue
        seen.add(at)
        if at == number:
            work.append(on)
            continue
        if flow.blocks[at].leaves:
            return True
        work.extend(flow.blocks[at].successors)
    return False


class _Rewriter:
    def __init__(
        self, body: Body, flow: Flow, leaves: list[_Leave], calls_barrier: Callable[[Instruction], bool]
    ) -> None:
        self.body, self.flow, self.calls_barrier = body, flow, calls_barrier
        self.leaves = {leave.block: leave for leave in leaves}
        self.new: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.serial = 0
        self.ghosts: set[str] = set()
        """Labels of the blocks where threads go on that have left."""

    def run(self) -> Body:
        together = self._joined()
        return self._muted(together)

    def mark(self, hint: str) -> str:
        self.serial += 1
        return f"{hint}!{self.serial}!"

    def temporary(self) -> str:
        name = self.mark("%p")
        self.body.registers[name] = "pred"
        return name

    def block_label(self, number: int) -> str:
        return f"block!{number}!"

    def emit(self, offset: int, opcode: Opcode, *operands: Operand, guard: Guard | None = None) -> None:
        self.new.append(Instruction(offset, opcode, operands, guard))

    # --- first: one way for all ---

    def _joined(self) -> Body:
        body, flow = self.body, self.flow
        body.registers[ALIVE] = "pred"
        first = body.function.offset
        self.emit(first, _MOV, Name(ALIVE), Integer(1))
        by_start: dict[int, list[str]] = {}
        for label, index in body.labels.items():
            by_start.setdefault(index, []).append(label)
        for number, block in enumerate(flow.blocks):
            self.labels[self.block_label(number)] = len(self.new)
            for label in by_start.get(block.first, ()):
                self.labels[label] = len(self.new)
            leave = self.leaves.get(number)
            if leave is None:
                self.new.extend(body.instructions[block.first : block.last])
                continue
            self.new.extend(body.instructions[block.first : block.last - 1])
            self._leave(leave, body.instructions[block.last - 1])
        return replace(body, instructions=self.new, labels=self.labels)

    def _leave(self, leave: _Leave, last: Instruction) -> None:
        assert last.guard is not None
        on = self.block_label(leave.on)
        self.ghosts.add(on)
        negated = last.guard.negated == leave.taken
        # `out` holds for threads that leave here.
        out = self.temporary()
        if negated:
            self.emit(last.offset, _NOT, Name(out), Name(last.guard.name))
        else:
            self.emit(last.offset, _MOV, Name(out), Name(last.guard.name))
        self.emit(last.offset, _AND, Name(out), Name(out), Name(ALIVE))
        ways = [] if leave.out is None else self._cloned(leave.out, last)
        if any(i.opcode.name not in ("ret", "exit") for n in ways for i in self._instructions(n)):
            clone = self.mark("leave")
            self.emit(last.offset, _BRANCH, Name(clone), guard=Guard(out, False))
            self.emit(last.offset, _BRANCH, Name(on))
            self._clone(clone, ways, on, last.offset)
            return
        stays = self.temporary()
        self.emit(last.offset, _NOT, Name(stays), Name(out))
        self.emit(last.offset, _AND, Name(ALIVE), Name(ALIVE), Name(stays))
        self.emit(last.offset, _BRANCH, Name(on))

    def _instructions(self, number: int) -> list[Instruction]:
        block = self.flow.blocks[number]
        return self.body.instructions[block.first : block.last]

    def _cloned(self, start: int, last: Instruction) -> list[int]:
        """Blocks on the way out, its start first."""
        found = [start, *sorted(region(self.flow, [start], -1) - {start})]
        if sum(len(self._instructions(n)) for n in found) > MOST_CLONED:
            self.refuse(last.offset, "threads leave here by a long way while others go on to a barrier")
        return found

    def _clone(self, start: str, ways: list[int], on: str, offset: int) -> None:
        """Copies of blocks, in which returning means going on with the others."""
        copies = {number: self.mark("leave") for number in ways}
        renamed = {
            label: copies[self.flow.block_of[label]]
            for label in self.body.labels
            if self.flow.block_of[label] in copies
        }
        self.labels[start] = len(self.new)
        for number in ways:
            self.labels[copies[number]] = len(self.new)
            block = self.flow.blocks[number]
            ended = False
            for instruction in self._instructions(number):
                name = instruction.opcode.name
                if name in ("ret", "exit"):
                    skip = self.mark("leave")
                    if instruction.guard is not None:
                        guard = Guard(instruction.guard.name, not instruction.guard.negated)
                        self.emit(instruction.offset, _BRANCH, Name(skip), guard=guard)
                    self.emit(instruction.offset, _MOV, Name(ALIVE), Integer(0))
                    self.emit(instruction.offset, _BRANCH, Name(on))
                    self.labels[skip] = len(self.new)
                    ended = instruction.guard is None
                elif name == "bra":
                    (target,) = instruction.operands
                    assert isinstance(target, Name)
                    self.emit(
                        instruction.offset, instruction.opcode, Name(renamed[target.name]), guard=instruction.guard
                    )
                    ended = instruction.guard is None
                elif name == "brx":
                    self.refuse(instruction.offset, "threads leave by way of a switch while others go on to a barrier")
                else:
                    self.new.append(instruction)
                    ended = name == "trap" and instruction.guard is None
            if ended:
                continue
            if number + 1 in copies and number + 1 in block.successors:
                self.emit(offset, _BRANCH, Name(copies[number + 1]))
            else:
                self.emit(offset, _MOV, Name(ALIVE), Integer(0))
                self.emit(offset, _BRANCH, Name(on))

    # --- then: threads that have left touch nothing ---

    def _muted(self, body: Body) -> Body:
        flow = build(body)
        found = analyse(flow, self.calls_barrier)
        haunted: set[int] = set()
        for label in self.ghosts:
            haunted |= region(flow, [flow.block_of[label]], -1)
        self.new, self.labels = [], {}
        by_start: dict[int, list[str]] = {}
        for label, index in body.labels.items():
            by_start.setdefault(index, []).append(label)
        apart = frozenset().union(*found.regions.values()) if found.regions else frozenset()
        steps = [self._steps(body, found, block, n in haunted, n in apart) for n, block in enumerate(flow.blocks)]
        checks = self._checks(found) if any(loads for _, loads in steps) else frozenset()
        for number, block in enumerate(flow.blocks):
            for label in by_start.get(block.first, ()):
                self.labels[label] = len(self.new)
            self.labels[f"join!{number}!"] = len(self.new)
            if number in checks:
                self._end_when_all_left(body, block)
            for instruction in steps[number][0]:
                if instruction is body.instructions[block.last - 1] and number in haunted:
                    self._skip(found, number, instruction)
                self.new.append(instruction)
        return replace(body, instructions=self.new, labels=self.labels)

    def _checks(self, found: Divergence) -> frozenset[int]:
        """Where all threads meet again behind a place where some leave."""
        checks = set()
        for label in self.ghosts:
            at = found.flow.block_of[label]
            while (inside := next((d for d, blocks in found.regions.items() if at in blocks), None)) is not None:
                at = found.meeting[inside]
            if 0 <= at < len(found.flow.blocks):
                checks.add(at)
        return frozenset(checks)

    def _end_when_all_left(self, body: Body, block: BasicBlock) -> None:
        """Threads that have left follow the others, so there must be others: loads that all do alike need one alive."""
        offset = body.instructions[block.first].offset if block.last > block.first else body.function.offset
        someone = self.temporary()
        self.emit(offset, ANY_ALIVE, Name(someone), Integer(0), Name(ALIVE))
        self.emit(offset, _RETURN, guard=Guard(someone, True))

    def _steps(
        self, body: Body, found: Divergence, block: BasicBlock, haunted: bool, apart: bool
    ) -> tuple[list[Instruction], bool]:
        """A block's instructions, those that touch memory only for threads alive; whether all threads load alike."""
        instructions = body.instructions[block.first : block.last]
        if not haunted:
            return instructions, False
        before, self.new = self.new, []
        loads = False
        for instruction in instructions:
            if is_barrier(instruction) and "red" in instruction.opcode.modifiers:
                self._reduce(instruction)
            elif instruction.opcode.name in _TOUCHES and not _reads_parameters(instruction, body):
                if instruction.opcode.name in ("ld", "ldu") and not apart and not varies(instruction, found):
                    loads = loads or not any(m.startswith("shared") for m in instruction.opcode.modifiers)
                    self.new.append(instruction)
                    continue
                if self.calls_barrier(instruction):
                    self.refuse(
                        instruction.offset, "a function with a barrier is called after threads of the block have left"
                    )
                self._guarded(instruction)
            else:
                self.new.append(instruction)
        steps, self.new = self.new, before
        return steps, loads

    def _guarded(self, instruction: Instruction) -> None:
        guard = instruction.guard
        if guard is None:
            self.new.append(replace(instruction, guard=Guard(ALIVE, False)))
            return
        both = self.temporary()
        if guard.negated:
            self.emit(instruction.offset, _NOT, Name(both), Name(guard.name))
            self.emit(instruction.offset, _AND, Name(both), Name(both), Name(ALIVE))
        else:
            self.emit(instruction.offset, _AND, Name(both), Name(guard.name), Name(ALIVE))
        self.new.append(replace(instruction, guard=Guard(both, False)))

    def _reduce(self, instruction: Instruction) -> None:
        """bar.red: a thread that has left must not count."""
        predicate = instruction.operands[-1]
        counted = self.temporary()
        if "and" in instruction.opcode.modifiers:
            gone = self.temporary()
            self.emit(instruction.offset, _NOT, Name(gone), Name(ALIVE))
            self.emit(instruction.offset, _OR, Name(counted), predicate, Name(gone))
        else:
            self.emit(instruction.offset, _AND, Name(counted), predicate, Name(ALIVE))
        self.new.append(replace(instruction, operands=(*instruction.operands[:-1], Name(counted))))

    def _skip(self, found: Divergence, number: int, last: Instruction) -> None:
        """A thread that has left goes past what threads do differently: its registers may hold anything."""
        if number not in found.regions:
            return
        flow = found.flow
        if last.guard is not None and last.guard.name.startswith(("%alive!", "%p!")):
            return
        if found.regions[number] & found.barriers:
            self.refuse(
                last.offset, "a barrier on a way that not all threads take, after threads of the block have left"
            )
        meeting = found.meeting[number]
        if meeting < 0 or meeting == len(flow.blocks):
            self.emit(last.offset, _RETURN, guard=Guard(ALIVE, True))
        else:
            self.emit(last.offset, _BRANCH, Name(f"join!{meeting}!"), guard=Guard(ALIVE, True))

    def refuse(self, offset: int, reason: str) -> NoReturn:
        raise PtxUnsupported(
            self.body.source,
            offset,
            f"{reason}, which this target cannot keep together",
            function=self.body.function.name,
            hint="let all threads of the block run to the end, or leave before the first barrier in one plain test",
        )


def _reads_parameters(instruction: Instruction, body: Body) -> bool:
    """Whether an ld or st only touches parameters."""
    if instruction.opcode.name not in ("ld", "st"):
        return False
    return any(m.partition("::")[0] == "param" for m in instruction.opcode.modifiers) and all(
        not isinstance(o, Address)
        or (isinstance(o.base, Name) and body.register_type(o.base.name) is None)
        or (isinstance(o.base, Name) and o.base.name in body.parameters)
        for o in instruction.operands
    )
