"""What the lanes of a warp do together: shfl, vote, match, redux, elect, activemask (sections 9.7.9 and 9.7.13).

Results count the active lanes that the member mask names; lanes that have left, and those of a warp that the block does
not fill, are not active. Groups of lanes may run one instruction with different masks.
"""

from __future__ import annotations

from zluda.compiler.lower.context import Context, lowers, width
from zluda.compiler.lower.ops._emit import select, target
from zluda.ptx.tree import Name, Operand, Pair

_LANES = 32


def _both(operand: Operand) -> tuple[Operand, Operand | None]:
    """The destination and, for `d|p`, the predicate."""
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand, None


def _sink(operand: Operand) -> bool:
    return isinstance(operand, Name) and operand.name == "_"


def _set(c: Context, operand: Operand | None, type: str, value: str) -> None:
    if operand is not None and not _sink(operand):
        c.set(operand, type, value)


def _active(c: Context, mask: str) -> str:
    """The active lanes among the members."""
    return c.op(f"and i32 {target(c).ballot(c, 'true')}, {mask}")


@lowers("activemask")
def activemask(c: Context) -> None:
    c.set(c.operands[0], "b32", target(c).ballot(c, "true"))


@lowers("shfl")
def shfl(c: Context) -> None:
    mode = next(m for m in c.mods if m in ("up", "down", "bfly", "idx"))
    value, offset, control = (c.get(operand, "b32") for operand in c.operands[1:4])
    offset = c.op(f"and i32 {offset}, 31")
    clamp = c.op(f"and i32 {control}, 31")
    segment = c.op(f"and i32 {c.op(f'lshr i32 {control}, 8')}, 31")
    outside = c.op(f"xor i32 {segment}, 31")
    lane = target(c).lane_id(c)
    first = c.op(f"and i32 {lane}, {segment}")
    bound = c.op(f"or i32 {first}, {c.op(f'and i32 {clamp}, {outside}')}")
    match mode:
        case "up":
            source = c.op(f"sub i32 {lane}, {offset}")
            valid = c.op(f"icmp sge i32 {source}, {bound}")
        case "down":
            source = c.op(f"add i32 {lane}, {offset}")
            valid = c.op(f"icmp sle i32 {source}, {bound}")
        case "bfly":
            source = c.op(f"xor i32 {lane}, {offset}")
            valid = c.op(f"icmp sle i32 {source}, {bound}")
        case _:
            source = c.op(f"or i32 {first}, {c.op(f'and i32 {offset}, {outside}')}")
            valid = c.op(f"icmp sle i32 {source}, {bound}")
    result = target(c).shuffle(c, value, select(c, valid, "i32", source, lane))
    d, predicate = _both(c.operands[0])
    _set(c, d, "b32", result)
    _set(c, predicate, "pred", valid)


@lowers("vote")
def vote(c: Context) -> None:
    mode = next(m for m in c.mods if m in ("all", "any", "uni", "ballot"))
    predicate = c.get(c.operands[1], "pred")
    mask = c.get(c.operands[2], "b32") if c.has("sync") else "-1"
    votes = target(c).ballot(c, predicate)
    if mask != "-1":
        votes = c.op(f"and i32 {votes}, {mask}")
    if mode == "ballot":
        c.set(c.operands[0], "b32", votes)
        return
    if mode == "any":
        result = c.op(f"icmp ne i32 {votes}, 0")
    else:
        result = c.op(f"icmp eq i32 {votes}, {_active(c, mask)}")
        if mode == "uni":
            result = c.op(f"or i1 {result}, {c.op(f'icmp eq i32 {votes}, 0')}")
    c.set(c.operands[0], "pred", result)


@lowers("match")
def match(c: Context) -> None:
    type = c.type
    bits = width(type)
    value, mask = c.get(c.operands[1], type), c.get(c.operands[2], "b32")
    members = _active(c, mask)
    same = members
    for bit in range(bits):
        one = c.op(f"trunc i{bits} {c.op(f'lshr i{bits} {value}, {bit}') if bit else value} to i1")
        with_one = target(c).ballot(c, one)
        agreeing = select(c, one, "i32", with_one, c.op(f"xor i32 {with_one}, -1"))
        same = c.op(f"and i32 {same}, {agreeing}")
    d, predicate = _both(c.operands[0])
    if c.has("any"):
        c.set(d, "b32", same)
        return
    all_same = c.op(f"icmp eq i32 {same}, {members}")
    _set(c, d, "b32", select(c, all_same, "i32", members, "0"))
    _set(c, predicate, "pred", all_same)


@lowers("redux")
def redux(c: Context) -> None:
    type = c.type
    operation = next(m for m in c.mods if m in ("add", "min", "max", "and", "or", "xor"))
    value, mask = c.get(c.operands[1], "b32"), c.get(c.operands[2], "b32")
    members = _active(c, mask)
    if type == "f32":
        _redux_float(c, operation, value, members)
        return
    total = _identity(operation, type)
    for lane in range(_LANES):
        member = c.op(f"trunc i32 {c.op(f'lshr i32 {members}, {lane}') if lane else members} to i1")
        other = target(c).shuffle(c, value, str(lane))
        if operation in ("min", "max"):
            order = ("s" if type == "s32" else "u") + ("lt" if operation == "min" else "gt")
            better = c.op(f"icmp {order} i32 {other}, {total}")
            total = select(c, c.op(f"and i1 {member}, {better}"), "i32", other, total)
        else:
            joined = c.op(f"{operation} i32 {total}, {other}")
            total = select(c, member, "i32", joined, total)
    c.set(c.operands[0], type, total)


def _identity(operation: str, type: str) -> str:
    match operation, type:
        case "and", _:
            return "-1"
        case "min", "s32":
            return str(2**31 - 1)
        case "max", "s32":
            return str(-(2**31))
        case "min", _:
            return "-1"
        case _:
            return "0"


def _redux_float(c: Context, operation: str, value: str, members: str) -> None:
    """min and max of f32: the order of the values is that of integers made from their bits."""
    if c.has("abs"):
        value = c.op(f"and i32 {value}, 2147483647")
    magnitude = c.op(f"and i32 {value}, 2147483647")
    nan = c.op(f"icmp ugt i32 {magnitude}, {0x7F800000}")
    flip = c.op(f"lshr i32 {c.op(f'ashr i32 {value}, 31')}, 1")
    key = c.op(f"xor i32 {value}, {flip}")
    nans = c.op(f"and i32 {target(c).ballot(c, nan)}, {members}")
    numbers = c.op(f"and i32 {members}, {c.op(f'xor i32 {nans}, -1')}")
    total = _identity(operation, "s32")
    order = "slt" if operation == "min" else "sgt"
    for lane in range(_LANES):
        member = c.op(f"trunc i32 {c.op(f'lshr i32 {numbers}, {lane}') if lane else numbers} to i1")
        other = target(c).shuffle(c, key, str(lane))
        better = c.op(f"icmp {order} i32 {other}, {total}")
        total = select(c, c.op(f"and i1 {member}, {better}"), "i32", other, total)
    unflip = c.op(f"lshr i32 {c.op(f'ashr i32 {total}, 31')}, 1")
    result = c.op(f"xor i32 {total}, {unflip}")
    without = "0"
    invalid = c.op(f"icmp ne i32 {nans}, {without}") if c.has("NaN") else c.op(f"icmp eq i32 {numbers}, {without}")
    c.set(c.operands[0], "b32", select(c, invalid, "i32", str(0x7FFFFFFF), result))


@lowers("elect")
def elect(c: Context) -> None:
    members = _active(c, c.get(c.operands[1], "b32"))
    leader = c.intrinsic("llvm.cttz.i32", "i32", ("i32", members), ("i1", "false"))
    d, predicate = _both(c.operands[0])
    _set(c, d, "b32", leader)
    _set(c, predicate, "pred", c.op(f"icmp eq i32 {leader}, {target(c).lane_id(c)}"))
