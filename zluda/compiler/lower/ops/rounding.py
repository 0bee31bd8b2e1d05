"""Rounding modes that the device does not have: results held exactly in double precision, then rounded as asked.

An f32 or narrower result is carried as a double that was *rounded to odd*: cut, with the last bit set when anything
was lost. Rounding such a value again, in any direction and to a type of 51 bits or fewer, gives what rounding the exact
result would have given (Boldo and Melquiond, "When double rounding is odd", 2005).
"""

from __future__ import annotations

from typing import Final

from zluda.compiler.lower.context import Context, llvm_type
from zluda.compiler.lower.ops._emit import constant_bits, need_fp64, real, select, target

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


def _adjust(c: Context, llvm: str, integer: str, rounded: str, below: str, above: str, rounding: str) -> str:
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
    return _adjust(c, llvm, "i32" if type == "f32" else "i16", rounded, below, above, rounding)


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
    return _adjust(c, "half", "i16", rounded, below, above, rounding)


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


# --- double precision -------------------------------------------------------------------------------


def _finite(c: Context, *values: str) -> str:
    """Whether all of these doubles are finite."""
    result = ""
    for value in values:
        magnitude = c.intrinsic("llvm.fabs.f64", "double", ("double", value))
        one = c.op(f"fcmp olt double {magnitude}, {constant_bits('f64', 0x7FF0000000000000)}")
        result = c.op(f"and i1 {result}, {one}") if result else one
    return result


def _correct(c: Context, rounded: str, finite: str, sign: tuple[str, str], rounding: str) -> str:
    """Moves a correctly rounded double; `sign` is (exact < rounded, exact > rounded) unless it overflowed."""
    infinity = constant_bits("f64", 0x7FF0000000000000)
    too_high = c.op(f"fcmp oeq double {rounded}, {infinity}")
    too_low = c.op(f"fcmp oeq double {rounded}, {constant_bits('f64', 0xFFF0000000000000)}")
    below = c.op(f"or i1 {sign[0]}, {too_high}")
    below = c.op(f"and i1 {below}, {finite}")
    above = c.op(f"or i1 {sign[1]}, {too_low}")
    above = c.op(f"and i1 {above}, {finite}")
    return _adjust(c, "double", "i64", rounded, below, above, rounding)


def add_f64(c: Context, a: str, b: str, rounding: str) -> str:
    """a + b in double precision, not to nearest."""
    need_fp64(c)
    total = c.op(f"fadd double {a}, {b}")
    a_size = c.intrinsic("llvm.fabs.f64", "double", ("double", a))
    b_size = c.intrinsic("llvm.fabs.f64", "double", ("double", b))
    swap = c.op(f"fcmp olt double {a_size}, {b_size}")
    large = select(c, swap, "double", b, a)
    small = select(c, swap, "double", a, b)
    seen = c.op(f"fsub double {total}, {large}")
    rest = c.op(f"fsub double {small}, {seen}")
    signs = c.op(f"fcmp olt double {rest}, 0.0"), c.op(f"fcmp ogt double {rest}, 0.0")
    # A sum that overflowed leaves a meaningless rest.
    bounded = _finite(c, total)
    signs = c.op(f"and i1 {signs[0]}, {bounded}"), c.op(f"and i1 {signs[1]}, {bounded}")
    result = _correct(c, total, _finite(c, a, b), signs, rounding)
    return zero_towards_minus(c, result, a, b) if rounding == "rm" else result


def _normalise(c: Context, value: str) -> tuple[str, str]:
    """A finite, nonzero double as (value in ±[1, 2), exponent as i32)."""
    size = c.intrinsic("llvm.fabs.f64", "double", ("double", value))
    tiny = c.op(f"fcmp olt double {size}, {constant_bits('f64', 0x0010000000000000)}")
    lifted = c.op(f"fmul double {value}, {real('double', 2.0**54)}")
    value = select(c, tiny, "double", lifted, value)
    bits = c.op(f"bitcast double {value} to i64")
    raised = c.op(f"lshr i64 {bits}, 52")
    field = c.op(f"and i64 {raised}, 2047")
    small = c.op(f"trunc i64 {field} to i32")
    bias = select(c, tiny, "i32", str(1023 + 54), "1023")
    exponent = c.op(f"sub i32 {small}, {bias}")
    rest = c.op(f"and i64 {bits}, {-(2**63) | (2**52 - 1)}")
    unit = c.op(f"or i64 {rest}, {1023 << 52}")
    return c.op(f"bitcast i64 {unit} to double"), exponent


def _scale(c: Context, value: str, exponent: str) -> str:
    """value * 2^exponent, in two steps; exact where the result is not subnormal."""
    half = c.op(f"ashr i32 {exponent}, 1")
    other = c.op(f"sub i32 {exponent}, {half}")
    for step in (half, other):
        low = c.op(f"icmp slt i32 {step}, -1022")
        step = select(c, low, "i32", "-1022", step)
        high = c.op(f"icmp sgt i32 {step}, 1023")
        step = select(c, high, "i32", "1023", step)
        biased = c.op(f"add i32 {step}, 1023")
        wide = c.op(f"zext i32 {biased} to i64")
        field = c.op(f"shl i64 {wide}, 52")
        factor = c.op(f"bitcast i64 {field} to double")
        value = c.op(f"fmul double {value}, {factor}")
    return value


def _compare(c: Context, head: str, tail: str, seen: str) -> tuple[str, str]:
    """(head + tail < seen, head + tail > seen), tail being less than a last place of head."""
    same = c.op(f"fcmp oeq double {head}, {seen}")
    result = []
    for relation in ("olt", "ogt"):
        by_head = c.op(f"fcmp {relation} double {head}, {seen}")
        by_tail = c.op(f"fcmp {relation} double {tail}, 0.0")
        result.append(select(c, same, "i1", by_tail, by_head))
    return result[0], result[1]


def _fma(c: Context, a: str, b: str, addend: str) -> str:
    return c.intrinsic("llvm.fma.f64", "double", ("double", a), ("double", b), ("double", addend))


def _usual(c: Context, *values: str) -> str:
    """Whether all of these doubles are finite and none is zero."""
    result = _finite(c, *values)
    for value in values:
        nonzero = c.op(f"fcmp one double {value}, 0.0")
        result = c.op(f"and i1 {result}, {nonzero}")
    return result


def mul_f64(c: Context, a: str, b: str, rounding: str) -> str:
    """a * b in double precision, not to nearest."""
    need_fp64(c)
    product = c.op(f"fmul double {a}, {b}")
    a_unit, a_exponent = _normalise(c, a)
    b_unit, b_exponent = _normalise(c, b)
    head = c.op(f"fmul double {a_unit}, {b_unit}")
    tail = _fma(c, a_unit, b_unit, c.op(f"fneg double {head}"))
    exponent = c.op(f"add i32 {a_exponent}, {b_exponent}")
    seen = _scale(c, product, c.op(f"sub i32 0, {exponent}"))
    return _correct(c, product, _usual(c, a, b), _compare(c, head, tail, seen), rounding)


def div_f64(c: Context, a: str, b: str, rounding: str) -> str:
    """a / b in double precision, not to nearest."""
    need_fp64(c)
    quotient = target(c).divide(c, "double", a, b)
    a_unit, a_exponent = _normalise(c, a)
    b_unit, b_exponent = _normalise(c, b)
    head = target(c).divide(c, "double", a_unit, b_unit)
    rest = _fma(c, c.op(f"fneg double {head}"), b_unit, a_unit)
    tail = c.op(f"fmul double {rest}, {b_unit}")
    exponent = c.op(f"sub i32 {b_exponent}, {a_exponent}")
    seen = _scale(c, quotient, exponent)
    return _correct(c, quotient, _usual(c, a, b), _compare(c, head, tail, seen), rounding)


def sqrt_f64(c: Context, a: str, rounding: str) -> str:
    """The square root in double precision, not to nearest."""
    need_fp64(c)
    size = c.intrinsic("llvm.fabs.f64", "double", ("double", a))
    tiny = c.op(f"fcmp olt double {size}, {real('double', 2.0**-900)}")
    lifted = select(c, tiny, "double", c.op(f"fmul double {a}, {real('double', 2.0**200)}"), a)
    lifted_root = target(c).math(c, "sqrt", "double", lifted)
    rest = _fma(c, c.op(f"fneg double {lifted_root}"), lifted_root, lifted)
    root = target(c).math(c, "sqrt", "double", a)
    signs = c.op(f"fcmp olt double {rest}, 0.0"), c.op(f"fcmp ogt double {rest}, 0.0")
    return _correct(c, root, _usual(c, a), signs, rounding)
