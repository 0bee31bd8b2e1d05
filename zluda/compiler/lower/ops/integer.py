"""Integer arithmetic (section 9.7.1) but for bit fields and carry chains."""

from __future__ import annotations

from collections.abc import Sequence

from zluda.compiler.lower.context import Context, lowers, width
from zluda.compiler.lower.ops._emit import elementwise, resize, select, signed, sources, target
from zluda.ptx.tree import Integer, Operand


def binary(c: Context, instruction: str) -> None:
    """`add`, `sub` and `mul.lo` of integers, packed ones and .sat included."""
    type = c.type
    saturating = c.has("sat")

    def apply(element: str, values: Sequence[str]) -> str:
        llvm = f"i{width(element)}"
        if saturating:
            name = f"llvm.{'s' if signed(element) else 'u'}{instruction}.sat.{llvm}"
            return c.intrinsic(name, llvm, *((llvm, value) for value in values))
        return c.op(f"{instruction} {llvm} {values[0]}, {values[1]}")

    c.set(c.operands[0], type, elementwise(c, type, sources(c, type), apply))


def product(c: Context, type: str, a: str, b: str) -> tuple[str, str]:
    """(type of the result, a*b) by the instruction's .lo, .hi or .wide."""
    bits, sign = width(type), signed(type)
    if c.has("hi"):
        return type, multiply_high(c, type, a, b)
    if c.has("wide"):
        wide = f"{type[0]}{2 * bits}"
        left, right = resize(c, a, bits, 2 * bits, sign), resize(c, b, bits, 2 * bits, sign)
        return wide, c.op(f"mul i{2 * bits} {left}, {right}")
    if c.has("lo"):
        return type, c.op(f"mul i{bits} {a}, {b}")
    c.unsupported("an integer multiplication needs .lo, .hi or .wide")


def multiply_high(c: Context, type: str, a: str, b: str) -> str:
    """The upper half of a product."""
    bits, sign = width(type), signed(type)
    if bits == 64:
        return target(c).multiply_high(c, sign, a, b)
    full = c.op(f"mul i{2 * bits} {resize(c, a, bits, 2 * bits, sign)}, {resize(c, b, bits, 2 * bits, sign)}")
    upper = c.op(f"lshr i{2 * bits} {full}, {bits}")
    return c.op(f"trunc i{2 * bits} {upper} to i{bits}")


def mul(c: Context) -> None:
    type = c.type
    a, b = sources(c, type)
    c.set(c.operands[0], *product(c, type, a, b))


def mad(c: Context) -> None:
    type = c.type
    d, *operands, addend = c.operands
    a, b = (c.get(operand, type) for operand in operands)
    result_type, value = product(c, type, a, b)
    c.set(d, result_type, _add(c, result_type, value, c.get(addend, result_type)))


def _add(c: Context, type: str, a: str, b: str) -> str:
    llvm = f"i{width(type)}"
    if c.has("sat"):
        return c.intrinsic(f"llvm.sadd.sat.{llvm}", llvm, (llvm, a), (llvm, b))
    return c.op(f"add {llvm} {a}, {b}")


@lowers("mul24", "mad24")
def mul24(c: Context) -> None:
    type = c.type
    sign = signed(type)

    def cut(operand: Operand) -> str:
        top = c.op(f"shl i32 {c.get(operand, type)}, 8")
        return resize(c, c.op(f"{'ashr' if sign else 'lshr'} i32 {top}, 8"), 32, 64, sign)

    full = c.op(f"mul i64 {cut(c.operands[1])}, {cut(c.operands[2])}")
    if c.has("hi"):
        full = c.op(f"lshr i64 {full}, 16")
    value = c.op(f"trunc i64 {full} to i32")
    if c.name == "mad24":
        value = _add(c, type, value, c.get(c.operands[3], type))
    c.set(c.operands[0], type, value)


@lowers("sad")
def sad(c: Context) -> None:
    type = c.type
    llvm = f"i{width(type)}"
    a, b, addend = sources(c, type)
    less = c.op(f"icmp {'slt' if signed(type) else 'ult'} {llvm} {a}, {b}")
    forward, backward = c.op(f"sub {llvm} {b}, {a}"), c.op(f"sub {llvm} {a}, {b}")
    c.set(c.operands[0], type, c.op(f"add {llvm} {addend}, {select(c, less, llvm, forward, backward)}"))


def divide(c: Context) -> None:
    """div and rem: a zero divisor, and the smallest number by -1, trap on a CPU; PTX leaves the first unspecified."""
    type = c.type
    llvm, sign = f"i{width(type)}", signed(type)
    a, b = sources(c, type)
    divisor = c.operands[2]
    kind = "s" if sign else "u"
    ones = (1 << width(type)) - 1
    if isinstance(divisor, Integer) and divisor.value & ones not in (0, ones if sign else 0):
        c.set(c.operands[0], type, c.op(f"{kind}{c.name} {llvm} {a}, {b}"))
        return
    zero = c.op(f"icmp eq {llvm} {b}, 0")
    unsafe = zero
    if sign:
        minus = c.op(f"icmp eq {llvm} {b}, -1")
        unsafe = c.op(f"or i1 {zero}, {minus}")
    safe = select(c, unsafe, llvm, "1", b)
    value = c.op(f"{kind}{c.name} {llvm} {a}, {safe}")
    if c.name == "div":
        if sign:
            value = select(c, minus, llvm, c.op(f"sub {llvm} 0, {a}"), value)
        value = select(c, zero, llvm, "-1", value)
    else:
        value = select(c, zero, llvm, a, value)
    c.set(c.operands[0], type, value)


@lowers("rem")
def rem(c: Context) -> None:
    divide(c)


def absolute(c: Context) -> None:
    type = c.type
    llvm = f"i{width(type)}"
    (a,) = sources(c, type)
    negative = c.op(f"icmp slt {llvm} {a}, 0")
    c.set(c.operands[0], type, select(c, negative, llvm, c.op(f"sub {llvm} 0, {a}"), a))


def negate(c: Context) -> None:
    type = c.type
    (a,) = sources(c, type)
    c.set(c.operands[0], type, c.op(f"sub i{width(type)} 0, {a}"))


def extreme(c: Context) -> None:
    """min and max."""
    type = c.type

    def apply(element: str, values: Sequence[str]) -> str:
        llvm = f"i{width(element)}"
        a, b = values
        order = ("s" if signed(element) else "u") + ("lt" if c.name == "min" else "gt")
        value = select(c, c.op(f"icmp {order} {llvm} {a}, {b}"), llvm, a, b)
        if c.has("relu"):
            value = select(c, c.op(f"icmp sgt {llvm} {value}, 0"), llvm, value, "0")
        return value

    c.set(c.operands[0], type, elementwise(c, type, sources(c, type), apply))


@lowers("dp4a", "dp2a")
def dot(c: Context) -> None:
    a_type, b_type = c.types
    result = "s32" if "s32" in (a_type, b_type) else "u32"
    d, a, b, addend = c.operands
    left, right, total = c.get(a, "b32"), c.get(b, "b32"), c.get(addend, result)
    if c.name == "dp4a":
        pairs = [(8 * i, 8, 8 * i) for i in range(4)]
    else:
        first = 16 if c.has("hi") else 0
        pairs = [(0, 16, first), (16, 16, first + 8)]
    for a_at, a_bits, b_at in pairs:
        x = _field(c, left, a_at, a_bits, signed(a_type))
        y = _field(c, right, b_at, 8, signed(b_type))
        total = c.op(f"add i32 {total}, {c.op(f'mul i32 {x}, {y}')}")
    c.set(d, result, total)


def _field(c: Context, value: str, at: int, bits: int, sign: bool) -> str:
    """Some bits of an i32, extended to an i32."""
    if at + bits < 32:
        value = c.op(f"shl i32 {value}, {32 - at - bits}")
    return c.op(f"{'ashr' if sign else 'lshr'} i32 {value}, {32 - bits}")
