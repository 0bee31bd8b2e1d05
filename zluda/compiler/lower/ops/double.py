"""Double-precision arithmetic that is not rounded to nearest.

The device's result, rounded to nearest, moves by one place where it lies on the wrong side of the exact one. Operands
are scaled first, so that what rounding took is never lost below the smallest double.
"""

from __future__ import annotations

from zluda.compiler.lower.context import Context
from zluda.compiler.lower.ops._emit import constant_bits, need_fp64, real, select, target
from zluda.compiler.lower.ops.rounding import adjust, two_sum, zero_towards_minus


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
    return adjust(c, "double", "i64", rounded, below, above, rounding)


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


_FAR = 200
"""Powers of two below the larger addend from where on a smaller one counts by its sign alone."""


def fma_f64(c: Context, a: str, b: str, addend: str, rounding: str) -> str:
    """a * b + c in double precision, not to nearest."""
    need_fp64(c)
    result = _fma(c, a, b, addend)
    product = _usual(c, a, b)
    a_unit, a_exponent = _normalise(c, a)
    b_unit, b_exponent = _normalise(c, b)
    head = c.op(f"fmul double {a_unit}, {b_unit}")
    tail = _fma(c, a_unit, b_unit, c.op(f"fneg double {head}"))
    exponent = c.op(f"add i32 {a_exponent}, {b_exponent}")
    third, third_exponent = _normalise(c, addend)
    nothing = c.op(f"fcmp oeq double {addend}, 0.0")
    third = select(c, nothing, "double", "0.0", third)
    third_exponent = select(c, nothing, "i32", "-5000", third_exponent)
    above = c.op(f"icmp sgt i32 {exponent}, {third_exponent}")
    top = select(c, above, "i32", exponent, third_exponent)
    head, tail = (_scale(c, value, _below(c, exponent, top)) for value in (head, tail))
    third = _scale(c, third, _below(c, third_exponent, top))
    seen = _scale(c, result, c.op(f"sub i32 0, {top}"))
    left = _sign_of_sum(c, tail, head, third, c.op(f"fneg double {seen}"))
    signs = c.op(f"fcmp olt double {left}, 0.0"), c.op(f"fcmp ogt double {left}, 0.0")
    finite = c.op(f"and i1 {product}, {_finite(c, addend)}")
    moved = _correct(c, result, finite, signs, rounding)
    if rounding != "rm":
        return moved
    # Only an exact zero takes the sign of .rm, not one that a small sum was rounded to.
    exact = c.op(f"fcmp oeq double {left}, 0.0")
    exact = select(c, product, "i1", exact, "true")
    signed = zero_towards_minus(c, moved, c.op(f"fmul double {a}, {b}"), addend)
    return select(c, exact, "double", signed, moved)


def _below(c: Context, exponent: str, top: str) -> str:
    """How far an exponent lies below the top, as zero or a negative number of bounded size."""
    distance = c.op(f"sub i32 {exponent}, {top}")
    far = c.op(f"icmp slt i32 {distance}, {-_FAR}")
    return select(c, far, "i32", str(-_FAR), distance)


def _sign_of_sum(c: Context, smallest: str, small: str, *others: str) -> str:
    """A double with the sign of an exact sum; the first two do not overlap (Shewchuk, growing an expansion)."""
    expansion = [smallest, small]
    for other in others:
        grown = []
        carried = other
        for part in expansion:
            carried, rest = two_sum(c, carried, part)
            grown.append(rest)
        expansion = [*grown, carried]
    result = expansion[0]
    for part in expansion[1:]:
        result = select(c, c.op(f"fcmp une double {part}, 0.0"), "double", part, result)
    return result
