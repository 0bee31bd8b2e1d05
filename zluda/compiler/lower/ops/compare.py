"""Comparison and selection (section 9.7.6): setp, set, selp, slct."""

from __future__ import annotations

from collections.abc import Sequence

from zluda.compiler.lower.context import Context, llvm_type, lowers, width
from zluda.compiler.lower.ops import floating
from zluda.compiler.lower.ops._emit import (
    PACKED,
    constant_bits,
    flushed,
    is_float,
    join,
    real,
    select,
    signed,
    split,
)
from zluda.ptx.tree import Name, Pair

_INTEGER = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_FLOAT = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
    "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
    "num": "ord", "nan": "uno",
}  # fmt: skip
_BOOLEANS = ("and", "or", "xor")


def compare(c: Context, relation: str, type: str, a: str, b: str) -> str:
    """The i1 of a comparison of two scalars; .ftz flushes them first."""
    if is_float(type):
        if relation not in _FLOAT:
            c.unsupported(f"floating-point values have no comparison .{relation}")
        floating.need(c, type)
        a, b = flushed(c, type, a, b)
        llvm = "float" if type == "bf16" else llvm_type(type)
        if type == "bf16":
            a, b = floating.as_float(c, type, a), floating.as_float(c, type, b)
        return c.op(f"fcmp {_FLOAT[relation]} {llvm} {a}, {b}")
    if relation in _UNSIGNED:
        order = _UNSIGNED[relation]
    elif relation in _INTEGER:
        order = relation if relation in ("eq", "ne") else ("s" if signed(type) else "u") + relation
    else:
        c.unsupported(f"integers have no comparison .{relation}")
    return c.op(f"icmp {order} i{width(type)} {a}, {b}")


def _parts(c: Context) -> tuple[str, str | None]:
    """(comparison, boolean operation or None)."""
    relation = c.mods[0]
    boolean = next((m for m in c.mods[1:] if m in _BOOLEANS), None)
    return relation, boolean


def _combine(c: Context, boolean: str | None, result: str, third: str) -> str:
    return c.op(f"{boolean} i1 {result}, {third}") if boolean else result


def _invert(c: Context, value: str) -> str:
    return c.op(f"xor i1 {value}, true")


@lowers("setp")
def setp(c: Context) -> None:
    relation, boolean = _parts(c)
    type = c.type
    d, a, b, *rest = c.operands
    left, right = c.get(a, type), c.get(b, type)
    third = c.get(rest[0], "pred") if boolean else ""
    if type in PACKED:
        # p takes the comparison of the low halves, q that of the high ones.
        element = PACKED[type]
        lows, highs = zip(split(c, type, left), split(c, type, right), strict=True)
        low, high = (compare(c, relation, element, x, y) for x, y in (lows, highs))
        if not isinstance(d, Pair):
            c.unsupported(f"setp of {type} has two destinations")
        _store(c, d, _combine(c, boolean, low, third), _combine(c, boolean, high, third))
        return
    result = compare(c, relation, type, left, right)
    if isinstance(d, Pair):
        opposite = _combine(c, boolean, _invert(c, result), third)
        _store(c, d, _combine(c, boolean, result, third), opposite)
    else:
        c.set(d, "pred", _combine(c, boolean, result, third))


def _store(c: Context, pair: Pair, first: str, second: str) -> None:
    for operand, value in ((pair.first, first), (pair.second, second)):
        if not (isinstance(operand, Name) and operand.name == "_"):
            c.set(operand, "pred", value)


@lowers("set")
def set_(c: Context) -> None:
    relation, boolean = _parts(c)
    result_type, type = c.types
    d, a, b, *rest = c.operands
    third = c.get(rest[0], "pred") if boolean else ""

    def one(values: Sequence[str], element: str, result: str) -> str:
        value = _combine(c, boolean, compare(c, relation, element, *values), third)
        return _truth(c, result, value)

    left, right = c.get(a, type), c.get(b, type)
    if type in PACKED:
        halves = zip(split(c, type, left), split(c, type, right), strict=True)
        result = PACKED.get(result_type)
        if result is None:
            c.unsupported(f"set.{result_type}.{type} is not lowered")
        low, high = (one(pair, PACKED[type], result) for pair in halves)
        c.set(d, result_type, join(c, result_type, low, high))
    else:
        c.set(d, result_type, one((left, right), type, result_type))


def _truth(c: Context, type: str, value: str) -> str:
    """1.0 or all ones for true, zero for false."""
    if is_float(type):
        one = {"bf16": 0x3F80, "f16": 0x3C00, "f32": 0x3F800000}.get(type)
        if one is None:
            c.unsupported(f"set has no destination type .{type}")
        return select(c, value, llvm_type(type), constant_bits(type, one), constant_bits(type, 0))
    return c.op(f"sext i1 {value} to i{width(type)}")


@lowers("selp")
def selp(c: Context) -> None:
    type = c.type
    d, a, b, p = c.operands
    c.set(d, type, select(c, c.get(p, "pred"), llvm_type(type), c.get(a, type), c.get(b, type)))


@lowers("slct")
def slct(c: Context) -> None:
    type, test = c.types
    d, a, b, third = c.operands
    value = c.get(third, test)
    if test == "f32":
        (value,) = flushed(c, "f32", value)
        chosen = c.op(f"fcmp oge float {value}, {real('float', 0.0)}")
    else:
        chosen = c.op(f"icmp sge i32 {value}, 0")
    c.set(d, type, select(c, chosen, llvm_type(type), c.get(a, type), c.get(b, type)))
