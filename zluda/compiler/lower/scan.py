"""A first look at a body: whom it calls, which variables it names, and what it asks of the kernel around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from zluda.compiler.lower.body import Body, names
from zluda.ptx.tree import Group, Instruction, Name, Space

WARP_OPCODES = frozenset(
    [
        "shfl",
        "vote",
        "match",
        "activemask",
        "redux",
        "elect",
        "mma",
        "wmma",
        "ldmatrix",
        "stmatrix",
        "movmatrix",
        "wgmma",
    ]
)
"""Opcodes whose meaning depends on which threads make a warp."""

WARP_REGISTERS = ("%laneid", "%lanemask_", "%warpid", "%nwarpid")
BLOCK_REGISTERS = frozenset(["%tid", "%ntid"])


@dataclass(slots=True)
class Scan:
    """What one body mentions itself; callees are not included."""

    calls: list[tuple[str, int]] = field(default_factory=list)
    """Functions called by name, with the offset of a call."""
    variables: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    """Functions whose address is taken."""
    warp: bool = False
    barrier: bool = False
    shared: bool = False
    module: bool = False
    block: bool = False
    exit: int | None = None
    """Offset of an instruction that ends the thread, if there is one."""
    indirect: list[Instruction] = field(default_factory=list)
    """Calls through a register."""


def is_barrier(instruction: Instruction) -> bool:
    """Whether all threads of the block must arrive."""
    opcode = instruction.opcode
    return opcode.name in ("bar", "barrier") and "warp" not in opcode.modifiers and "cluster" not in opcode.modifiers


def is_warp(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    return opcode.name in WARP_OPCODES or (opcode.name == "bar" and "warp" in opcode.modifiers)


def callee(instruction: Instruction) -> str | None:
    """The name a call goes to: a function, or a register."""
    return next((o.name for o in instruction.operands if isinstance(o, Name)), None)


def scan(body: Body, space_of: Callable[[str], Space | None], is_function: Callable[[str], bool]) -> Scan:
    found = Scan()
    for instruction in body.instructions:
        opcode = instruction.opcode
        if is_warp(instruction):
            found.warp = True
        elif is_barrier(instruction):
            found.barrier = True
        elif opcode.name == "exit":
            found.exit = instruction.offset
        if any(m.partition("::")[0] == "shared" for m in opcode.modifiers):
            found.shared = True
        target = None
        if opcode.name == "call":
            target = callee(instruction)
            if target is not None:
                if is_function(target):
                    found.calls.append((target, instruction.offset))
                elif body.register_type(target) is not None:
                    found.indirect.append(instruction)
        for operand in instruction.operands:
            for name in names(operand):
                _mention(
                    found, name, body, space_of, is_function, called=name == target and not isinstance(operand, Group)
                )
    return found


def _mention(
    found: Scan,
    name: str,
    body: Body,
    space_of: Callable[[str], Space | None],
    is_function: Callable[[str], bool],
    called: bool,
) -> None:
    if name.startswith("%"):
        if name.startswith(WARP_REGISTERS) and body.register_type(name) is None:
            found.warp = True
        elif name in BLOCK_REGISTERS:
            found.block = True
        return
    if body.register_type(name) is not None or called:
        return
    space = space_of(name)
    if space is None:
        if is_function(name):
            found.functions.add(name)
        return
    found.variables.add(name)
    if space is Space.SHARED:
        found.shared = True
    elif space in (Space.GLOBAL, Space.CONST):
        found.module = True
