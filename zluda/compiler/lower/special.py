"""Special registers (section 10). A flat kernel computes %tid from the linear id and the launch's block size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zluda.compiler.lower.affine import BLOCK_SIDE
from zluda.ptx.tree import Component, Opcode

if TYPE_CHECKING:
    from zluda.compiler.lower.function import FunctionLowering

NO_OPCODE = Opcode("", ())
_DIMENSIONS = {"x": 0, "y": 1, "z": 2}
_GRID = frozenset(["%tid", "%ntid", "%ctaid", "%nctaid"])


def prologue(c: FunctionLowering) -> None:
    """Computes in the entry block, once, the ids that the body mentions."""
    wanted: set[tuple[str, str]] = set()
    for instruction in c.body.instructions:
        for operand in instruction.operands:
            if isinstance(operand, Component) and operand.name in _GRID and operand.component in _DIMENSIONS:
                wanted.add((operand.name, operand.component))
    if c.flat and any(name == "%tid" for name, _ in wanted):
        _flat_thread_ids(c, {component for name, component in wanted if name == "%tid"})
    for name, component in sorted(wanted):
        if (name, component) not in c.specials:
            c.specials[name, component] = ("i32", _grid(c, name, _DIMENSIONS[component]))
        if name in ("%tid", "%ntid"):
            c.ranges[c.specials[name, component][1]] = BLOCK_SIDE


def _grid(c: FunctionLowering, name: str, dimension: int) -> str:
    match name:
        case "%tid":
            return c.target.thread_id(c, dimension)
        case "%ntid":
            return f"%block.{'xyz'[dimension]}" if c.flat else c.target.block_size(c, dimension)
        case "%ctaid":
            return c.target.block_id(c, dimension)
        case _:
            return c.target.grid_size(c, dimension)


def _flat_thread_ids(c: FunctionLowering, wanted: set[str]) -> None:
    linear = c.target.linear_id(c)
    c.specials["%tid", "x"] = ("i32", c.op(f"urem i32 {linear}, %block.x") if "x" in wanted else "")
    rows = c.op(f"udiv i32 {linear}, %block.x") if wanted & {"y", "z"} else ""
    if "y" in wanted:
        c.specials["%tid", "y"] = ("i32", c.op(f"urem i32 {rows}, %block.y"))
    if "z" in wanted:
        c.specials["%tid", "z"] = ("i32", c.op(f"udiv i32 {rows}, %block.y"))


def register(c: FunctionLowering, name: str, component: str | None) -> tuple[str, str]:
    """(LLVM type, value) of a special register."""
    if name in _GRID:
        if component == "w":
            return "i32", "0" if name in ("%tid", "%ctaid") else "1"
        if component in _DIMENSIONS:
            return c.specials[name, component]
        c.unsupported(f"{name} is read as a whole", f"read {name}.x, {name}.y and {name}.z")
    if name == "%laneid":
        lane = c.target.lane_id(c)
        c.ranges[lane] = (0, 31)
        return "i32", lane
    found = c.target.special(c, name, component)
    if found is None:
        shown = name if component is None else f"{name}.{component}"
        c.unsupported(f"{shown} is not a register declared here, nor a special register this target has")
    return found
