"""Rounding modes that the device does not have: results held exactly in double precision, then rounded as asked.

An f32 or narrower result is carried as a double that was *rounded to odd*: cut, with the last bit set when anything
was lost. Rounding such a value again, in any direction and to a type of 51 bits or fewer, gives what rounding the exact
result would have given (Boldo and Melquiond, "When double rounding is odd", 2005).
"""

from __future__ import annotations

from typing import Final

from zluda.compiler.lower.context import Context, llvm_type
from zluda.compiler.lower.ops._emit import need_fp64, select

MODES: Final = ("rn", "rz", "rm", "rp")


def mode(c: Context) -> str:
    """The floating-point rounding modifier of the instruction; `rn` when it has none."""
    return next((m for m in c.mods if m in MODES), "rn")


def two_sum(c: Context, a: str, b: str) -> tuple[str, str]:
    """Sum of two doubles and what rounding took from it, exactly (Knuth); the sum must not come near overflow."""
    total = c.op(f"fadd double {a}, {b}")
    b_seen = c.op(f"fsub double {total}, {a}")
    a_seen = c.op(f"fsub double {total}, {b_seen}")
    b_lost = c.op(f"fsub double {b}, {b_seen}")
    a_lost = c.op(f"fsub double {a}, {a_seen}")
    return total, c.op(f"fadd double {a_lost}, {b_lost}")


def to_odd(c: Context, total: str, rest: str) -> str:
    """`total + rest`, exact and with |rest| at most half a last place of total, as a double rounded to odd."""
    bits = c.op(f"bitcast double {total} to i64")
    last = c.op(f"and i64 {bits}, 1")
    even = c.op(f"icmp eq i64 {last}, 0")
    inexact = c.op(f"fcmp one double {rest}, 0.0")
    move = c.op(f"and i1 {even}, {inexact}")
    total_up = c.op(f"fcmp ogt double {total}, 0.0")
    rest_up = c.op(f"fcmp ogt double {rest}, 0.0")
    differ = c.op(f"xor i1 {total_up}, {rest_up}")
    step = select(c, differ, "i64", "-1", "1")
    moved = c.op(f"add i64 {bits}, {step}")
    return c.op(f"bitcast i64 {select(c, move, 'i64', moved, bits)} to double")


def exact_sum(c: Context, a: str, b: str) -> str:
    """Sum of two doubles that come from f32 values or products of them, rounded to odd."""
    return to_odd(c, *two_sum(c, a, b))


def widen(c: Context, type: str, value: str) -> str:
    """An f16, bf16 or f32 value as a double."""
    if type == "f64":
        return value
    need_fp64(c)
    if type == "bf16":
        value = bf16_to_float(c, value)
    return c.op(f"fpext {'half' if type == 'f16' else 'float'} {value} to double")


def bf16_to_float(c: Context, value: str) -> str:
    wide = c.op(f"zext i16 {value} to i32")
    shifted = c.op(f"shl i32 {wide}, 16")
    return c.op(f"bitcast i32 {shifted} to float")


def adjust(c: Context, llvm: str, integer: str, rounded: str, below: str, above: str, rounding: str) -> str:
    """Moves a value by one place towards the side its rounding asks for; below, above: where the exact value lies."""
    bits = c.op(f"bitcast {llvm} {rounded} to {integer}")
    negative = c.op(f"icmp slt {integer} {bits}, 0")
    match rounding:
        case "rz":
            wrong = select(c, negative, "i1", above, below)
            step = "-1"
        case "rm":
            wrong = below
            step = select(c, negative, integer, "1", "-1")
        case _:
            wrong = above
            step = select(c, negative, integer, "-1", "1")
    moved = c.op(f"add {integer} {bits}, {step}")
    return c.op(f"bitcast {integer} {select(c, wrong, integer, moved, bits)} to {llvm}")


def narrow(c: Context, value: str, type: str, rounding: str) -> str:
    """A double, exact or rounded to odd, rounded to f32, f16 or bf16."""
    if type == "bf16":
        return float_to_bf16(c, _odd_float(c, value), rounding)
    if type == "f16" and rounding == "rn":
        return c.op(f"fptrunc float {_odd_float(c, value)} to half")
    llvm = llvm_type(type)
    rounded = c.op(f"fptrunc double {value} to {llvm}")
    if rounding == "rn":
        return rounded
    seen = c.op(f"fpext {llvm} {rounded} to double")
    below = c.op(f"fcmp olt double {value}, {seen}")
    above = c.op(f"fcmp ogt double {value}, {seen}")
    return adjust(c, llvm, "i32" if type == "f32" else "i16", rounded, below, above, rounding)


def _odd_float(c: Context, value: str) -> str:
    """A double rounded to an odd float."""
    rounded = c.op(f"fptrunc double {value} to float")
    seen = c.op(f"fpext float {rounded} to double")
    inexact = c.op(f"fcmp one double {value}, {seen}")
    bits = c.op(f"bitcast float {rounded} to i32")
    last = c.op(f"and i32 {bits}, 1")
    even = c.op(f"icmp eq i32 {last}, 0")
    move = c.op(f"and i1 {even}, {inexact}")
    negative = c.op(f"icmp slt i32 {bits}, 0")
    below = c.op(f"fcmp olt double {value}, {seen}")
    towards_zero = c.op(f"xor i1 {negative}, {below}")
    step = select(c, towards_zero, "i32", "-1", "1")
    moved = c.op(f"add i32 {bits}, {step}")
    return c.op(f"bitcast i32 {select(c, move, 'i32', moved, bits)} to float")


def float_to_half(c: Context, value: str, rounding: str) -> str:
    """A float rounded to f16."""
    rounded = c.op(f"fptrunc float {value} to half")
    if rounding == "rn":
        return rounded
    seen = c.op(f"fpext half {rounded} to float")
    below = c.op(f"fcmp olt float {value}, {seen}")
    above = c.op(f"fcmp ogt float {value}, {seen}")
    return adjust(c, "half", "i16", rounded, below, above, rounding)


def float_to_bf16(c: Context, value: str, rounding: str) -> str:
    """A float rounded to the i16 of a bf16; NaN becomes the canonical one."""
    bits = c.op(f"bitcast float {value} to i32")
    match rounding:
        case "rn":
            kept = c.op(f"lshr i32 {bits}, 16")
            tie = c.op(f"and i32 {kept}, 1")
            bias = c.op(f"add i32 {tie}, 32767")
        case "rz":
            bias = "0"
        case _:
            sign = c.op(f"icmp slt i32 {bits}, 0")
            away = ("65535", "0") if rounding == "rm" else ("0", "65535")
            bias = select(c, sign, "i32", *away)
    biased = c.op(f"add i32 {bits}, {bias}")
    top = c.op(f"lshr i32 {biased}, 16")
    result = c.op(f"trunc i32 {top} to i16")
    nan = c.op(f"fcmp uno float {value}, {value}")
    return select(c, nan, "i16", "32767", result)


def zero_towards_minus(c: Context, total: str, a: str, b: str) -> str:
    """The sum of two doubles under .rm: an exact zero is negative unless both addends are +0."""
    zero = c.op(f"fcmp oeq double {total}, 0.0")
    a_bits = c.op(f"bitcast double {a} to i64")
    b_bits = c.op(f"bitcast double {b} to i64")
    either = c.op(f"or i64 {a_bits}, {b_bits}")
    sign = c.op(f"and i64 {either}, {-(2**63)}")
    signed_zero = c.op(f"bitcast i64 {sign} to double")
    return select(c, zero, "double", signed_zero, total)
