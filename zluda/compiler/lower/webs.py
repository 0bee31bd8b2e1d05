"""Registers that are used again for something else, taken apart into one register for each use.

What is written here and never read together with what is written there need not share a name. Apart, each is mostly
written once, which makes it a plain value, and is either an address or a number, not now this and now that.
"""

from __future__ import annotations

from dataclasses import replace

from zluda.compiler.lower.body import Body, has_result, reads, renamed_operand, writes
from zluda.compiler.lower.flow import Flow, build
from zluda.ptx.tree import Group, Guard, Instruction, Operand

MOST = 20_000
"""Writes of registers that are written more than once, beyond which a body is left as it is."""


def split(body: Body) -> Body:
    """The same body with a register for each web: writes that reach a read together, and the reads they reach."""
    return _Webs(body, build(body)).run()


class _Webs:
    def __init__(self, body: Body, flow: Flow) -> None:
        self.body, self.flow = body, flow
        self.instructions = body.instructions
        self.written: list[list[str]] = [writes(i, body) for i in body.instructions]
        self.parent: list[int] = []
        """Union-find over writes, by number."""

    def run(self) -> Body:
        writers: dict[str, list[int]] = {}
        for index, found in enumerate(self.written):
            for name in found:
                writers.setdefault(name, []).append(index)
        fixed = self.body.parameters | {v.name for v in (*self.body.function.parameters, *self.body.function.returns)}
        several = {name: places for name, places in writers.items() if len(places) > 1 and name not in fixed}
        if not several or sum(map(len, several.values())) > MOST:
            return self.body
        self.number: dict[tuple[int, str], int] = {}
        self.of_name: dict[str, int] = {}
        for name, places in several.items():
            mask = 0
            for index in dict.fromkeys(places):
                self.number[index, name] = len(self.parent)
                mask |= 1 << len(self.parent)
                self.parent.append(len(self.parent))
            # The last bit of a name stands for what it holds before any write.
            self.number[-1, name] = len(self.parent)
            mask |= 1 << len(self.parent)
            self.parent.append(len(self.parent))
            self.of_name[name] = mask
        used = self._join()
        return self._renamed(several, used)

    def find(self, number: int) -> int:
        parent = self.parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def _partial(self, index: int) -> bool:
        return self.instructions[index].guard is not None

    def _step(self, live: int, index: int) -> int:
        """Writes that reach behind an instruction."""
        for name in self.written[index]:
            mask = self.of_name.get(name)
            if mask is not None:
                if not self._partial(index):
                    live &= ~mask
                live |= 1 << self.number[index, name]
        return live

    def _join(self) -> dict[tuple[int, str], int]:
        """Solve reaching writes and join those that meet in a read; the web of each read."""
        flow = self.flow
        start = 0
        for name in self.of_name:
            start |= 1 << self.number[-1, name]
        into = [0] * len(flow.blocks)
        into[0] = start
        out: list[int | None] = [None] * len(flow.blocks)
        changed = True
        while changed:
            changed = False
            for block_number in flow.order:
                block = flow.blocks[block_number]
                live = start if block_number == 0 else 0
                for predecessor in block.predecessors:
                    live |= out[predecessor] or 0
                into[block_number] = live
                for index in range(block.first, block.last):
                    live = self._step(live, index)
                if live != out[block_number]:
                    out[block_number] = live
                    changed = True
        used: dict[tuple[int, str], int] = {}
        for block_number in flow.order:
            block, live = flow.blocks[block_number], into[block_number]
            for index in range(block.first, block.last):
                wanted = [n for n in reads(self.instructions[index], self.body) if n in self.of_name]
                if self._partial(index):
                    wanted.extend(n for n in self.written[index] if n in self.of_name)
                for name in wanted:
                    used[index, name] = self._united(live & self.of_name[name])
                live = self._step(live, index)
                if self._partial(index):
                    for name in self.written[index]:
                        if name in self.of_name:
                            self._united(live & self.of_name[name])
        return used

    def _united(self, writes_mask: int) -> int:
        first = -1
        while writes_mask:
            low = writes_mask & -writes_mask
            number = low.bit_length() - 1
            writes_mask ^= low
            if first < 0:
                first = number
            else:
                self.parent[self.find(number)] = self.find(first)
        return first

    def _renamed(self, several: dict[str, list[int]], used: dict[tuple[int, str], int]) -> Body:
        body = self.body
        webs: dict[tuple[str, int], str] = {}
        for name, places in several.items():
            roots = dict.fromkeys(self.find(self.number[index, name]) for index in places)
            for count, root in enumerate(roots):
                webs[name, root] = name if count == 0 else f"{name}!{count}w!"
        for (name, _), new in webs.items():
            if new != name:
                kind = body.register_type(name)
                assert kind is not None
                body.registers[new] = kind
        new_instructions = []
        for index, instruction in enumerate(self.instructions):
            targets = {
                name: webs[name, self.find(self.number[index, name])] for name in self.written[index] if name in several
            }
            sources = {
                name: webs.get((name, self.find(used[index, name])), name)
                for name in reads(instruction, body)
                if (index, name) in used and used[index, name] >= 0
            }
            if any(old != new for old, new in (*targets.items(), *sources.items())):
                instruction = _rename(instruction, targets, sources)
            new_instructions.append(instruction)
        return replace(body, instructions=new_instructions)


def _rename(instruction: Instruction, targets: dict[str, str], sources: dict[str, str]) -> Instruction:
    def read(name: str) -> str:
        return sources.get(name, name)

    def write(name: str) -> str:
        return targets.get(name, name)

    operands: list[Operand] = []
    for place, operand in enumerate(instruction.operands):
        first = place == 0 and (
            has_result(instruction)
            or (instruction.opcode.name == "call" and isinstance(operand, Group) and len(instruction.operands) > 1)
        )
        operands.append(renamed_operand(operand, write if first else read))
    guard = instruction.guard
    if guard is not None:
        guard = Guard(read(guard.name), guard.negated)
    return Instruction(instruction.offset, instruction.opcode, tuple(operands), guard)
