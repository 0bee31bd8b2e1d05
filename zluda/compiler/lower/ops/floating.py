"""Floating-point arithmetic: f32, f64 (section 9.7.3), f16, bf16 and their packed forms (section 9.7.4), mixed (9.7.5).

Nothing is contracted: a fused operation is made for `fma` and `mad` alone. f32 NaN results are unspecified by the ISA;
f64 payloads pass through as the device passes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zluda.compiler.lower.context import Context, llvm_type, lowers, width
from zluda.compiler.lower.ops import double, rounding
from zluda.compiler.lower.ops._emit import (
    MASK64,
    NAN,
    PACKED,
    constant_bits,
    constant_of,
    elementwise,
    flush,
    from_bits,
    integer_of,
    is_float,
    need_fp64,
    real,
    remember_flushed,
    saturate,
    select,
    sources,
    target,
    to_bits,
)

_KEEP_FLUSHED = frozenset({"abs", "neg", "min", "max"})
"""Results are as subnormal as operands: flushed operands give a flushed result."""


def is_floating(type: str) -> bool:
    return is_float(PACKED.get(type, type))


def need(c: Context, type: str) -> None:
    """Records the capability that a type's arithmetic needs."""
    if type == "f64":
        need_fp64(c)
    elif type == "f16":
        c.kernel_needs("fp16")


def as_float(c: Context, type: str, value: str) -> str:
    """An f16, bf16 or f32 value as `float`, exactly."""
    if type == "bf16":
        return rounding.bf16_to_float(c, value)
    if type == "f16":
        return c.op(f"fpext half {value} to float")
    return value


def from_float(c: Context, type: str, value: str) -> str:
    """A `float` rounded to nearest f16, bf16 or f32."""
    if type == "bf16":
        return rounding.float_to_bf16(c, value, "rn")
    if type == "f16":
        return c.op(f"fptrunc float {value} to half")
    return value


def apply(c: Context, type: str, values: Sequence[str], compute: Callable[[str, Sequence[str]], str]) -> str:
    """Wraps an operation on scalars in what .ftz, .sat and .relu ask for, for each element of a packed type."""

    def one(element: str, arguments: Sequence[str]) -> str:
        need(c, element)
        if c.has("ftz"):
            arguments = [flush(c, element, argument) for argument in arguments]
        result = compute(element, arguments)
        if c.has("ftz"):
            if c.name in _KEEP_FLUSHED:
                remember_flushed(c, result)
            result = flush(c, element, result)
        if c.has("sat"):
            result = (
                from_float(c, element, saturate(c, "float", as_float(c, element, result)))
                if (element == "bf16")
                else saturate(c, llvm_type(element), result)
            )
        if c.has("relu"):
            result = relu(c, element, result)
        return result

    return elementwise(c, type, values, one)


def relu(c: Context, type: str, value: str) -> str:
    """Negative values become +0, NaN the canonical NaN (.relu)."""
    llvm, integer = llvm_type(type), integer_of(type)
    negative = c.op(f"icmp slt {integer} {to_bits(c, type, value)}, 0")
    zero = constant_bits(type, 0)
    return canonical(c, type, value, select(c, negative, llvm, zero, value))


def is_nan(c: Context, type: str, value: str) -> str:
    if type == "bf16":
        value, llvm = rounding.bf16_to_float(c, value), "float"
    else:
        llvm = llvm_type(type)
    return c.op(f"fcmp uno {llvm} {value}, {value}")


def canonical(c: Context, type: str, tested: str, value: str) -> str:
    """The value, or the canonical NaN where `tested` is a NaN."""
    return select(c, is_nan(c, type, tested), llvm_type(type), constant_bits(type, NAN[type]), value)


_OPERATIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul"}


def binary(c: Context) -> None:
    """`add`, `sub` and `mul`."""
    types = c.types
    if len(types) == 2:
        mixed(c)
        return
    type = c.type
    mode = rounding.mode(c)

    def compute(element: str, values: Sequence[str]) -> str:
        return arithmetic(c, c.name, element, values[0], values[1], mode)

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))


def arithmetic(c: Context, name: str, type: str, a: str, b: str, mode: str) -> str:
    """One rounded operation on scalars of a PTX type."""
    operation = _OPERATIONS[name]
    if mode == "rn":
        if type == "bf16":
            # 24 bits are more than twice 8 and two: rounding twice does no harm.
            left, right = as_float(c, type, a), as_float(c, type, b)
            return from_float(c, type, c.op(f"{operation} float {left}, {right}"))
        return c.op(f"{operation} {llvm_type(type)} {a}, {b}")
    if type == "f64":
        if name == "mul":
            return double.mul_f64(c, a, b, mode)
        if name == "sub":
            b = _negated_f64(c, b)
        return double.add_f64(c, a, b, mode)
    if type != "f32":
        c.unsupported(f"{c.name} of {type} has no rounding but .rn")
    left, right = rounding.widen(c, type, a), rounding.widen(c, type, b)
    if name == "mul":
        exact = c.op(f"fmul double {left}, {right}")
    else:
        if name == "sub":
            right = _negated_f64(c, right)
        exact = rounding.exact_sum(c, left, right)
        if mode == "rm":
            exact = rounding.zero_towards_minus(c, exact, left, right)
    return rounding.narrow(c, exact, type, mode)


def _negated_f64(c: Context, value: str) -> str:
    return c.op(f"fneg double {value}")


def mixed(c: Context) -> None:
    """`add.f32.f16 d, a, c` and its kin: a is narrower, c and d are f32 (section 9.7.5)."""
    result, narrow = c.types
    d, *operands, last = c.operands
    values = [as_float(c, narrow, c.get(operand, narrow)) for operand in operands]
    values.append(c.get(last, result))
    mode = rounding.mode(c)

    def compute(element: str, arguments: Sequence[str]) -> str:
        if c.name == "fma":
            return fused(c, element, arguments, mode)
        return arithmetic(c, c.name, element, arguments[0], arguments[1], mode)

    c.set(d, result, apply(c, result, values, compute))


@lowers("fma")
def fma(c: Context) -> None:
    if c.has("oob"):
        c.unsupported("fma.oob is not lowered")
    if len(c.types) == 2:
        mixed(c)
        return
    type, mode = c.type, rounding.mode(c)
    value = apply(c, type, sources(c, type), lambda element, values: fused(c, element, values, mode))
    c.set(c.operands[0], type, value)


def fused(c: Context, type: str, values: Sequence[str], mode: str) -> str:
    """a * b + c, rounded once."""
    a, b, addend = values
    if mode == "rn" and type in ("f32", "f64"):
        llvm = llvm_type(type)
        return c.intrinsic(f"llvm.fma.{type}", llvm, (llvm, a), (llvm, b), (llvm, addend))
    if type == "f64":
        return double.fma_f64(c, a, b, addend, mode)
    left, right, third = (rounding.widen(c, type, value) for value in values)
    product = c.op(f"fmul double {left}, {right}")
    exact = rounding.exact_sum(c, product, third)
    if mode == "rm":
        exact = rounding.zero_towards_minus(c, exact, product, third)
    return rounding.narrow(c, exact, type, mode)


def absolute(c: Context) -> None:
    type = c.type

    def compute(element: str, values: Sequence[str]) -> str:
        integer = integer_of(element)
        mask = (1 << width(element) - 1) - 1
        return from_bits(c, element, c.op(f"and {integer} {to_bits(c, element, values[0])}, {mask}"))

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))


def negate(c: Context) -> None:
    type = c.type

    def compute(element: str, values: Sequence[str]) -> str:
        if element == "bf16":
            return c.op(f"xor i16 {values[0]}, -32768")
        return c.op(f"fneg {llvm_type(element)} {values[0]}")

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))


def extreme(c: Context) -> None:
    """min and max: -0.0 < +0.0; a NaN loses against a number unless .NaN is given."""
    type = c.type

    def compute(element: str, values: Sequence[str]) -> str:
        sign = ""
        if c.has("xorsign"):
            bits = [to_bits(c, element, value) for value in values]
            sign = c.op(f"xor {integer_of(element)} {bits[0]}, {bits[1]}")
        if c.has("abs"):
            mask = (1 << width(element) - 1) - 1
            values = [
                from_bits(c, element, c.op(f"and {integer_of(element)} {to_bits(c, element, value)}, {mask}"))
                for value in values
            ]
        result = values[0]
        for value in values[1:]:
            result = _extreme_of_two(c, element, result, value)
        return _with_sign(c, element, result, sign) if sign else result

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))


def _extreme_of_two(c: Context, type: str, a: str, b: str) -> str:
    llvm, integer = llvm_type(type), integer_of(type)
    left, right, wide = a, b, llvm
    if type == "bf16":
        left, right, wide = as_float(c, type, a), as_float(c, type, b), "float"
    relation = "olt" if c.name == "min" else "ogt"
    if type in ("f32", "f64") and not c.has("NaN"):
        # Against a constant that is no NaN, nor the zero that would have to win over the other one.
        for constant, other in ((b, a), (a, b)):
            bits = constant_of(constant)
            if bits is not None and bits != (0 if c.name == "min" else 1 << 63) and (bits << 1 & MASK64) <= 0x7FF << 53:
                better = c.op(f"fcmp {relation} {llvm} {other}, {constant}")
                return select(c, better, llvm, other, constant)
    picked = select(c, c.op(f"fcmp {relation} {wide} {left}, {right}"), llvm, a, b)
    # Equal values differ in nothing but the sign of zero: or keeps the minus, and the plus.
    equal = c.op(f"fcmp oeq {wide} {left}, {right}")
    gate = "or" if c.name == "min" else "and"
    both = from_bits(c, type, c.op(f"{gate} {integer} {to_bits(c, type, a)}, {to_bits(c, type, b)}"))
    picked = select(c, equal, llvm, both, picked)
    nan = constant_bits(type, NAN[type])
    a_nan = c.op(f"fcmp uno {wide} {left}, {left}")
    b_nan = c.op(f"fcmp uno {wide} {right}, {right}")
    if c.has("NaN"):
        return select(c, c.op(f"or i1 {a_nan}, {b_nan}"), llvm, nan, picked)
    picked = select(c, b_nan, llvm, a, picked)
    return select(c, c.op(f"and i1 {a_nan}, {b_nan}"), llvm, nan, picked)


def _with_sign(c: Context, type: str, value: str, sign: str) -> str:
    """The value with the top bit of `sign`, unless it is a NaN."""
    integer, bits = integer_of(type), width(type)
    magnitude = c.op(f"and {integer} {to_bits(c, type, value)}, {(1 << bits - 1) - 1}")
    top = c.op(f"and {integer} {sign}, {-(1 << bits - 1)}")
    signed_value = from_bits(c, type, c.op(f"or {integer} {magnitude}, {top}"))
    return select(c, is_nan(c, type, value), llvm_type(type), value, signed_value)


@lowers("copysign")
def copysign(c: Context) -> None:
    type = c.type
    integer, bits = integer_of(type), width(type)
    a, b = (to_bits(c, type, value) for value in sources(c, type))
    sign = c.op(f"and {integer} {a}, {-(1 << bits - 1)}")
    magnitude = c.op(f"and {integer} {b}, {(1 << bits - 1) - 1}")
    c.set(c.operands[0], type, from_bits(c, type, c.op(f"or {integer} {sign}, {magnitude}")))


@lowers("testp")
def testp(c: Context) -> None:
    type = c.type
    llvm = llvm_type(type)
    (a,) = sources(c, type)
    need(c, type)
    magnitude = c.intrinsic(f"llvm.fabs.{type}", llvm, (llvm, a))
    infinity = constant_bits(type, 0x7F800000 if type == "f32" else 0x7FF0000000000000)
    smallest = constant_bits(type, 0x00800000 if type == "f32" else 0x0010000000000000)
    zero = real(llvm, 0.0)
    match c.mods[0]:
        case "finite":
            result = c.op(f"fcmp olt {llvm} {magnitude}, {infinity}")
        case "infinite":
            result = c.op(f"fcmp oeq {llvm} {magnitude}, {infinity}")
        case "number":
            result = c.op(f"fcmp ord {llvm} {a}, {a}")
        case "notanumber":
            result = c.op(f"fcmp uno {llvm} {a}, {a}")
        case "subnormal":
            nonzero = c.op(f"fcmp ogt {llvm} {magnitude}, {zero}")
            result = c.op(f"and i1 {nonzero}, {c.op(f'fcmp olt {llvm} {magnitude}, {smallest}')}")
        case "normal":
            # Zeros count as normal.
            bounded = c.op(f"fcmp olt {llvm} {magnitude}, {infinity}")
            large = c.op(f"fcmp oge {llvm} {magnitude}, {smallest}")
            large = c.op(f"or i1 {large}, {c.op(f'fcmp oeq {llvm} {magnitude}, {zero}')}")
            result = c.op(f"and i1 {bounded}, {large}")
        case other:
            c.unsupported(f"testp has no property .{other}")
    c.set(c.operands[0], "pred", result)


def divide_f32(c: Context, a: str, b: str, mode: str) -> str:
    """The f32 quotient in a rounding mode."""
    if mode == "rn":
        return target(c).divide(c, "float", a, b)
    left, right = rounding.widen(c, "f32", a), rounding.widen(c, "f32", b)
    quotient = target(c).divide(c, "double", left, right)
    # The remainder is exact; its sign by the divisor's tells on which side of the double the quotient lies.
    minus = c.op(f"fneg double {quotient}")
    rest = c.intrinsic("llvm.fma.f64", "double", ("double", minus), ("double", right), ("double", left))
    rest = c.op(f"fmul double {rest}, {right}")
    return rounding.narrow(c, _odd_if_finite(c, quotient, rest), "f32", mode)


def sqrt_f32(c: Context, a: str, mode: str) -> str:
    """The f32 square root in a rounding mode."""
    if mode == "rn":
        return target(c).math(c, "sqrt", "float", a)
    wide = rounding.widen(c, "f32", a)
    root = target(c).math(c, "sqrt", "double", wide)
    minus = c.op(f"fneg double {root}")
    rest = c.intrinsic("llvm.fma.f64", "double", ("double", minus), ("double", root), ("double", wide))
    return rounding.narrow(c, _odd_if_finite(c, root, rest), "f32", mode)


def _odd_if_finite(c: Context, value: str, rest: str) -> str:
    """Rounding to odd, but for an infinite or NaN value, whose rest means nothing."""
    size = c.intrinsic("llvm.fabs.f64", "double", ("double", value))
    finite = c.op(f"fcmp olt double {size}, {constant_bits('f64', 0x7FF0000000000000)}")
    rest = select(c, finite, "double", rest, "0.0")
    return rounding.to_odd(c, value, rest)
