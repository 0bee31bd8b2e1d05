"""Follows sums through integer instructions, and computes them again in other units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zluda.compiler.lower.affine import Affine, fits
from zluda.compiler.lower.values import Value, is_literal
from zluda.ptx.tree import Integer, Name, Operand

if TYPE_CHECKING:
    from zluda.compiler.lower.function import FunctionLowering

FOLLOWED = frozenset(["add", "sub", "shl", "mul", "mad", "or", "and", "shr", "rem", "cvt", "ld"])
"""Opcodes whose result `result` may know something of."""

_INTEGERS = {f"{kind}{bits}": bits for kind in "usb" for bits in (32, 64)}


def of_value(value: Value) -> Affine | None:
    """What is known of an integer value."""
    if value.is_pointer or value.type not in ("i32", "i64"):
        return None
    bits = int(value.type[1:])
    if value.affine is not None:
        return value.affine
    if is_literal(value.name):
        return Affine(bits, int(value.name))
    return Affine(bits, 0, ((value.name, 1),))


def of_operand(c: FunctionLowering, operand: Operand, bits: int) -> Affine | None:
    """What is known of a source operand of so many bits."""
    if isinstance(operand, Integer):
        value = operand.value & (1 << bits) - 1
        return Affine(bits, value - (1 << bits) if value >> (bits - 1) else value)
    if isinstance(operand, Name) and c.body.register_type(operand.name) is not None:
        found = of_value(c.read(operand.name))
        return found if found is not None and found.bits == bits else None
    return None


def result(c: FunctionLowering) -> Affine | None:
    """What the current instruction's integer result is the sum of; None when nothing is known."""
    modifiers, operands = c.mods, c.operands
    bits = _INTEGERS.get(modifiers[-1]) if modifiers else None
    if bits is None or c.has("cc") or c.has("sat") or c.has("hi"):
        return None
    sources = operands[1:]
    match c.name:
        case "add" | "sub":
            a, b = (of_operand(c, o, bits) for o in sources)
            return a.plus(b, 1 if c.name == "add" else -1) if a and b else None
        case "shl":
            return _scaled(of_operand(c, sources[0], bits), sources[1], shift=True)
        case "mul":
            return product(c, sources[0], sources[1], bits)
        case "mad":
            a = product(c, sources[0], sources[1], bits)
            b = of_operand(c, sources[2], 64 if c.has("wide") else bits)
            return a.plus(b) if a and b else None
        case "or":
            # Compilers write an addition that cannot carry as an or.
            a, b = (of_operand(c, o, bits) for o in sources)
            if a and b and not b.terms and not a.constant and 0 <= b.constant < a.granule:
                return a.plus(b)
    return None


def product(c: FunctionLowering, a: Operand, b: Operand, bits: int) -> Affine | None:
    """The product of two operands of mul or mad where one is a constant; `wide` extends them."""
    if isinstance(a, Integer):
        a, b = b, a
    if not isinstance(b, Integer):
        return None
    if not c.has("wide"):
        return _scaled(of_operand(c, a, bits), b, shift=False)
    if bits != 32 or isinstance(a, Integer):
        return None
    signed = c.type == "s32"
    factor = b.value & 0xFFFFFFFF
    factor -= 1 << 32 if signed and factor >> 31 else 0
    known = of_operand(c, a, 32)
    if known is not None and known.terms:
        interval = known.interval(c.ranges)
        if interval is not None and fits(interval) and (signed or interval[0] >= 0):
            # The sum does not wrap, so widening its values one by one gives the same.
            terms = tuple((extended(c, value, signed=True), scale) for value, scale in known.terms)
            return Affine(64, known.constant, terms).times(factor)
    leaf = extended(c, c.get(a, c.type), signed)
    return None if is_literal(leaf) else Affine(64, 0, ((leaf, factor),))


def extended(c: FunctionLowering, name: str, signed: bool) -> str:
    """An i32 as an i64, computed once a block."""
    if is_literal(name):
        return name if signed else str(int(name) & 0xFFFFFFFF)
    if name in c.ranges and c.ranges[name][0] >= 0:
        # Both extensions are the same; the value it was cut from is simpler still (ids are computed in 64 bits).
        return c.w.cut.get(name) or c.once(f"zext i32 {name} to i64")
    return c.once(f"{'sext' if signed else 'zext'} i32 {name} to i64")


def _scaled(a: Affine | None, factor: Operand, shift: bool) -> Affine | None:
    if a is None or not isinstance(factor, Integer):
        return None
    if shift:
        return a.times(1 << factor.value) if 0 <= factor.value < a.bits - 1 else None
    return a.times(factor.value) if abs(factor.value) < 1 << 31 else None


def range_of_result(c: FunctionLowering) -> tuple[int, int] | None:
    """The range of an i32 result that is no sum but small all the same."""
    modifiers, operands = c.mods, c.operands
    last = operands[-1] if operands else None
    match c.name:
        case "and" if isinstance(last, Integer) and 0 <= last.value < 1 << 31:
            return 0, last.value
        case "shr" if modifiers[-1] == "u32" and isinstance(last, Integer) and 0 < last.value < 32:
            return 0, (1 << (32 - last.value)) - 1
        case "rem" if modifiers[-1] == "u32" and isinstance(last, Integer) and 0 < last.value < 1 << 31:
            return 0, last.value - 1
        case "cvt" if modifiers[-1] in ("u8", "u16") and modifiers[-2] in ("u32", "s32"):
            return 0, 255 if modifiers[-1] == "u8" else 65535
        case "ld" if modifiers[-1] in ("u8", "b8", "u16", "b16") and len(operands) == 2:
            return 0, 255 if modifiers[-1].endswith("8") else 65535
    return None


def total(c: FunctionLowering, found: Affine, unit: int = 1) -> str:
    """Computes a sum without its constant, counted in units that divide every scale; the name of an LLVM integer."""
    kind = f"i{found.bits}"
    name = ""
    for value, scale in found.terms:
        part = value
        factor = scale // unit
        if factor != 1:
            shift = factor.bit_length() - 1
            part = c.once(f"shl {kind} {value}, {shift}" if factor == 1 << shift else f"mul {kind} {value}, {factor}")
        name = c.once(f"add {kind} {name}, {part}") if name else part
    return name or "0"
