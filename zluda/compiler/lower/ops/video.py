"""SIMD video instructions on two halfwords or four bytes (section 9.7.17), all lanes in their own order.

Without .add the lanes of the result take the place of all of c's; with it the result is c and the sum of the lanes.
"""

from __future__ import annotations

from zluda.compiler.lower.context import Context, lowers
from zluda.compiler.lower.ops._emit import select, signed
from zluda.ptx.tree import Component

_NAMES = tuple(f"{name}{lanes}" for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset") for lanes in (2, 4))
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@lowers(*_NAMES)
def simd(c: Context) -> None:
    lanes = int(c.name[-1])
    operation = c.name[1:-1]
    if any(isinstance(operand, Component) for operand in c.operands):
        c.unsupported(f"{c.name} with a mask or a selection of lanes is not lowered")
    result_type, a_type, b_type = ("u32", *c.types) if operation == "set" else c.types
    d, a, b, *rest = c.operands
    left, right = c.get(a, "b32"), c.get(b, "b32")
    bits = 32 // lanes
    total = c.get(rest[0], "b32") if c.has("add") else "0"
    for lane in range(lanes):
        x = _lane(c, left, lane, bits, signed(a_type))
        y = _lane(c, right, lane, bits, signed(b_type))
        value = _apply(c, operation, x, y)
        if c.has("sat"):
            value = _clamp(c, value, bits, signed(result_type))
        if not c.has("add"):
            value = c.op(f"and i32 {value}, {(1 << bits) - 1}")
            value = c.op(f"shl i32 {value}, {lane * bits}") if lane else value
        total = c.op(f"add i32 {total}, {value}")
    c.set(d, "b32", total)


def _lane(c: Context, word: str, lane: int, bits: int, sign: bool) -> str:
    """A lane, extended to an i32."""
    gap = 32 - bits * (lane + 1)
    raised = c.op(f"shl i32 {word}, {gap}") if gap else word
    return c.op(f"{'ashr' if sign else 'lshr'} i32 {raised}, {32 - bits}")


def _apply(c: Context, operation: str, x: str, y: str) -> str:
    """The result of one lane, in 32 bits; the operands are exact there whatever their signs."""
    if operation in ("add", "sub"):
        return c.op(f"{operation} i32 {x}, {y}")
    if operation == "set":
        relation = next(m for m in c.mods if m in _COMPARISONS)
        order = relation if relation in ("eq", "ne") else f"s{relation}"
        return c.op(f"zext i1 {c.op(f'icmp {order} i32 {x}, {y}')} to i32")
    less = c.op(f"icmp slt i32 {x}, {y}")
    if operation == "absdiff":
        return select(c, less, "i32", c.op(f"sub i32 {y}, {x}"), c.op(f"sub i32 {x}, {y}"))
    return select(c, less, "i32", x, y) if operation == "min" else select(c, less, "i32", y, x)


def _clamp(c: Context, value: str, bits: int, sign: bool) -> str:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)
    value = select(c, c.op(f"icmp slt i32 {value}, {low}"), "i32", str(low), value)
    return select(c, c.op(f"icmp sgt i32 {value}, {high}"), "i32", str(high), value)
