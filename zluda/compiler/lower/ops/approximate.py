"""Division, roots and the elementary functions: rounded, and the .approx forms within their bounds (section 9.7.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zluda.compiler.lower.context import Context, llvm_type, lowers
from zluda.compiler.lower.ops import double, rounding
from zluda.compiler.lower.ops._emit import real, select, sources, target
from zluda.compiler.lower.ops.floating import apply, as_float, divide_f32, from_float, sqrt_f32


def divide(c: Context) -> None:
    type = c.type
    mode = rounding.mode(c)

    def compute(element: str, values: Sequence[str]) -> str:
        a, b = values
        if element not in ("f32", "f64"):
            c.unsupported(f"div of {element} does not exist")
        if element == "f64":
            if mode == "rn":
                return target(c).divide(c, "double", a, b)
            return double.div_f64(c, a, b, mode)
        if c.has("approx"):
            return _divide_approximately(c, a, b)
        return divide_f32(c, a, b, mode)

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))


def _divide_approximately(c: Context, a: str, b: str) -> str:
    """div.approx.f32 is a * (1/b) with a reciprocal that flushes: above 2^126 the quotient is zero, of infinity NaN."""
    quotient = target(c).divide(c, "float", a, b)
    bits = c.op(f"bitcast float {b} to i32")
    magnitude = c.op(f"and i32 {bits}, 2147483647")
    over = c.op(f"icmp ugt i32 {magnitude}, {0x7E800000}")
    finite = c.op(f"icmp ult i32 {magnitude}, {0x7F800000}")
    zero = c.op(f"bitcast i32 {c.op(f'and i32 {bits}, -2147483648')} to float")
    return select(c, c.op(f"and i1 {over}, {finite}"), "float", c.op(f"fmul float {a}, {zero}"), quotient)


@lowers("rcp")
def rcp(c: Context) -> None:
    type = c.type
    mode = rounding.mode(c)
    if type == "f64" and c.has("approx"):
        _upper_word(c, lambda a: target(c).divide(c, "double", real("double", 1.0), a))
        return

    def compute(element: str, values: Sequence[str]) -> str:
        one = real(llvm_type(element), 1.0)
        if element == "f32":
            return divide_f32(c, one, values[0], mode)
        if mode == "rn":
            return target(c).divide(c, "double", one, values[0])
        return double.div_f64(c, one, values[0], mode)

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))


@lowers("sqrt")
def sqrt(c: Context) -> None:
    type = c.type
    mode = rounding.mode(c)

    def compute(element: str, values: Sequence[str]) -> str:
        if element == "f32":
            return sqrt_f32(c, values[0], mode)
        if mode == "rn":
            return target(c).math(c, "sqrt", "double", values[0])
        return double.sqrt_f64(c, values[0], mode)

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))


def _reciprocal_root(c: Context, llvm: str, a: str) -> str:
    return target(c).divide(c, llvm, real(llvm, 1.0), target(c).math(c, "sqrt", llvm, a))


@lowers("rsqrt")
def rsqrt(c: Context) -> None:
    type = c.type
    if type == "f64" and c.has("ftz"):
        _upper_word(c, lambda a: _reciprocal_root(c, "double", a))
        return

    def compute(element: str, values: Sequence[str]) -> str:
        return _reciprocal_root(c, llvm_type(element), values[0])

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))


def _upper_word(c: Context, compute: Callable[[str], str]) -> None:
    """rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: the upper word alone goes in and comes out; subnormals are zeros."""
    c.kernel_needs("fp64")
    (a,) = sources(c, "f64")
    bits = c.op(f"bitcast double {a} to i64")
    not_a_number = c.op(f"fcmp uno double {a}, {a}")
    upper = _flushed_word(c, bits)
    result = compute(c.op(f"bitcast i64 {upper} to double"))
    word = _flushed_word(c, c.op(f"bitcast double {result} to i64"))
    invalid = c.op(f"fcmp uno double {result}, {result}")
    invalid = c.op(f"or i1 {invalid}, {not_a_number}")
    c.set(c.operands[0], "b64", select(c, invalid, "i64", str(0x7FFFFFFF00000000), word))


def _flushed_word(c: Context, bits: str) -> str:
    """The upper word of a double's bits, a zero of the same sign when it is subnormal."""
    exponent = c.op(f"and i64 {bits}, {0x7FF0000000000000}")
    small = c.op(f"icmp eq i64 {exponent}, 0")
    kept = select(c, small, "i64", str(-(2**63)), str(-(2**32)))
    return c.op(f"and i64 {bits}, {kept}")


_FUNCTIONS = {"sin": "sin", "cos": "cos", "lg2": "log2", "ex2": "exp2", "tanh": "tanh"}


@lowers(*_FUNCTIONS)
def function(c: Context) -> None:
    type = c.type

    def compute(element: str, values: Sequence[str]) -> str:
        if element == "f64":
            c.unsupported(f"{c.name} of f64 does not exist")
        a = as_float(c, element, values[0])
        return from_float(c, element, target(c).math(c, _FUNCTIONS[c.name], "float", a))

    c.set(c.operands[0], type, apply(c, type, sources(c, type), compute))
