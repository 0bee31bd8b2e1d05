"""Barriers and fences (section 9.7.13)."""

from __future__ import annotations

from zluda.compiler.lower.context import Context, lowers
from zluda.compiler.lower.ops._emit import target

_PARTIAL = "barriers of a part of the block are not lowered (barrier.partial)"


@lowers("bar", "barrier")
def barrier(c: Context) -> None:
    mods = [m for m in c.mods if m not in ("cta", "aligned")]
    match mods[0] if mods else "":
        case "warp":
            # bar.warp.sync membermask
            target(c).warp_barrier(c)
        case "sync":
            # A barrier without a thread count is one of the whole block, whatever its number.
            if len(c.operands) > 1:
                c.unsupported(f"{c.instruction.opcode} with a thread count: {_PARTIAL}")
            target(c).barrier(c)
        case "red":
            _reduce(c, mods[1])
        case "arrive":
            c.unsupported(f"{c.instruction.opcode}: {_PARTIAL}")
        case _:
            c.unsupported(f"{c.instruction.opcode} is not lowered")


def _reduce(c: Context, operation: str) -> None:
    if len(c.operands) > 3:
        c.unsupported(f"{c.instruction.opcode} with a thread count: {_PARTIAL}")
    predicate = c.get(c.operands[-1], "pred")
    target(c).barrier(c)
    result = target(c).block_reduce(c, operation, predicate)
    c.set(c.operands[0], "u32" if operation == "popc" else "pred", result)


_MEMBAR = {"cta": "cta", "gl": "gpu", "sys": "sys"}
_ORDERS = {"sc": "seq_cst", "acq_rel": "acq_rel", "acquire": "acquire", "release": "release"}
_SCOPES = ("cta", "cluster", "gpu", "sys")


@lowers("membar")
def membar(c: Context) -> None:
    level = next((m for m in c.mods if m in _MEMBAR), None)
    if level is None or len(c.mods) > 1:
        c.unsupported(f"{c.instruction.opcode} is not lowered")
    target(c).fence(c, _MEMBAR[level], "seq_cst")


@lowers("fence")
def fence(c: Context) -> None:
    scope = next((m for m in c.mods if m in _SCOPES), None)
    order = next((m for m in c.mods if m in _ORDERS), "acq_rel")
    if scope is None or any(m not in _SCOPES and m not in _ORDERS for m in c.mods):
        c.unsupported(f"{c.instruction.opcode} is not lowered")
    target(c).fence(c, scope, _ORDERS[order])


@lowers("griddepcontrol", "nanosleep")
def nothing(c: Context) -> None:
    """Grids of one stream run one after another, so there is nothing to wait for; a sleep may take no time."""
