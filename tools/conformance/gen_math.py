"""Approximations (PTX ISA 9.7.3): exact values from 200-bit arithmetic, with the errors that the manual allows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
from _build import Arg, CaseFile, elementwise_case, target
from _ieee import F32, F64, Format

mpmath.mp.prec = 200


def rounded(f: Format, x: mpmath.mpf) -> int:
    if mpmath.isnan(x):
        return f.nan
    if mpmath.isinf(x):
        return f.inf | (f.sign if x < 0 else 0)
    sign, mantissa, exponent, _ = x._mpf_
    value = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return f.round(-value if sign else value)


def number(f: Format, bits: int) -> mpmath.mpf:
    value = f.value(bits)
    return mpmath.mpf(value.numerator) / mpmath.mpf(value.denominator)


Function = Callable[[mpmath.mpf], mpmath.mpf]
INF, MINUS_INF, NAN = F32.inf, F32.inf | F32.sign, F32.nan
ONE, ZERO, MINUS_ZERO = F32.of(1), 0, F32.sign


def generate() -> list[CaseFile]:
    file = CaseFile("math")
    roots(file)
    divisions(file)
    exponentials(file)
    circular(file)
    hyperbolic(file)
    return [file]


def spread(seed: str, low: int, high: int, count: int = 90) -> list[int]:
    """Positive f32 numbers with exponents of all sizes between 2**low and 2**high."""
    rng = random.Random(seed)
    return [F32.of(rng.uniform(1, 2) * 2.0 ** rng.randint(low, high - 1)) for _ in range(count)]


def unary(
    file: CaseFile,
    op: str,
    section: str,
    values: Sequence[int],
    function: Function,
    special: dict[int, int | None],
    tier: str = "smoke",
    **error: float,
) -> None:
    """One case for `op`.f32: `special` tells the results that the manual's table lists."""
    module = file.module("math_f32")
    name = f"{op.replace('.', '_')}_f32"
    kernel = module.elementwise(name, [("f32", "f32")], [("f32", "f32")], f"{op}.f32 %d, %a;")
    ftz = ".ftz" in op
    all_values = [*values, *special]
    expected: list[int | None] = []
    for x in all_values:
        if x in special:
            expected.append(special[x])
            continue
        result = rounded(F32, function(number(F32, F32.flush(x) if ftz else x)))
        expected.append(F32.flush(result) if ftz else result)
    out = Arg("out", "f32", "d", expected=expected, **error)  # type: ignore[arg-type]
    elementwise_case(file, name, module, kernel, [("f32", all_values)], [out], section=section, tier=tier)


def roots(file: CaseFile) -> None:
    wide = spread("roots", -120, 120)
    signed = [x | (F32.sign if i % 3 == 0 else 0) for i, x in enumerate(wide)]
    zeros: dict[int, int | None] = {ZERO: INF, MINUS_ZERO: MINUS_INF, INF: ZERO, MINUS_INF: MINUS_ZERO, NAN: NAN}
    unary(file, "rcp.approx", "9.7.3.13", signed, lambda x: 1 / x, zeros, ulp=1)
    small = {**zeros, 1: INF, 1 | F32.sign: MINUS_INF, F32.of(2.0**127): ZERO, 0x7FFFFF: INF}
    unary(file, "rcp.approx.ftz", "9.7.3.13", signed, lambda x: 1 / x, small, ulp=1)
    special: dict[int, int | None] = {ZERO: ZERO, MINUS_ZERO: MINUS_ZERO, INF: INF, MINUS_INF: NAN, NAN: NAN}
    special[F32.of(-1)] = NAN
    relative = 2.0**-23 + 2.0**-24  # the bound, and the rounding of the exact value here
    unary(file, "sqrt.approx", "9.7.3.15", wide, mpmath.sqrt, special, relative=relative)
    flushed: dict[int, int | None] = {**special, 1: ZERO, 1 | F32.sign: MINUS_ZERO, 0x7FFFFF: ZERO}
    unary(file, "sqrt.approx.ftz", "9.7.3.15", wide, mpmath.sqrt, flushed, relative=relative)
    inverse: dict[int, int | None] = {ZERO: INF, MINUS_ZERO: MINUS_INF, INF: ZERO, MINUS_INF: NAN, NAN: NAN}
    inverse[F32.of(-4)] = NAN
    relative = 2.0**-22.9 + 2.0**-24
    unary(file, "rsqrt.approx", "9.7.3.16", wide, lambda x: 1 / mpmath.sqrt(x), inverse, relative=relative)
    flushed = {**inverse, 1: INF, 1 | F32.sign: MINUS_INF}
    unary(file, "rsqrt.approx.ftz", "9.7.3.16", wide, lambda x: 1 / mpmath.sqrt(x), flushed, relative=relative)
    rsqrt_f64(file)


def rsqrt_f64(file: CaseFile) -> None:
    module = file.module("math_f64")
    form = ("f64", "f64")
    rng = random.Random("rsqrt64")
    a = [F64.of(rng.uniform(1, 2) * 2.0 ** rng.randint(-1000, 1000)) for _ in range(60)]
    kernel = module.elementwise("rsqrt_approx_f64", [form], [form], "rsqrt.approx.f64 %d, %a;")
    expected = [rounded(F64, 1 / mpmath.sqrt(number(F64, x))) for x in a]
    elementwise_case(file, "rsqrt_approx_f64", module, kernel, [("f64", a)],
                     [target("f64", expected, relative=2.0**-50)], section="9.7.3.16", needs=["fp64"],
                     note="The manual gives no bound for .f64; its emulation is known to keep this one.")  # fmt: skip


def divisions(file: CaseFile) -> None:
    module = file.module("math_f32")
    rng = random.Random("divisions")
    a = [x | F32.sign * rng.getrandbits(1) for x in spread("dividend", -60, 60)]
    b = [x | F32.sign * rng.getrandbits(1) for x in spread("divisor", -60, 60)]
    exact = [F32.round(F32.value(x) / F32.value(y)) for x, y in zip(a, b, strict=True)]
    special = [
        (ONE, ZERO, INF), (ONE, MINUS_ZERO, MINUS_INF), (ZERO, ONE, ZERO), (ZERO, ZERO, NAN), (INF, INF, NAN),
        (INF, ONE, INF), (ONE, INF, ZERO), (NAN, ONE, NAN), (ONE, NAN, NAN),
    ]  # fmt: skip
    for op in ("div.approx", "div.approx.ftz", "div.full", "div.full.ftz"):
        name = f"{op.replace('.', '_')}_f32"
        kernel = module.elementwise(name, [("f32", "f32")] * 2, [("f32", "f32")], f"{op}.f32 %d, %a, %b;")
        rows = list(zip(a, b, exact, strict=True)) + special
        if "full" in op:
            for x, y in ((F32.of(2.0**100), F32.of(2.0**127)), (F32.of(1.5 * 2.0**127), F32.of(1.25 * 2.0**127))):
                rows.append((x, y, F32.round(F32.value(x) / F32.value(y))))
        else:
            huge = F32.of(1.5 * 2.0**127)
            rows += [(ONE, huge, ZERO), (F32.of(2.0**100), huge, ZERO), (INF, huge, NAN)]
        elementwise_case(file, name, module, kernel, [("f32", [r[0] for r in rows]), ("f32", [r[1] for r in rows])],
                         [target("f32", [r[2] for r in rows], ulp=2)], section="9.7.3.8",
                         note="A divisor beyond 2**126 gives zero, or NaN for an infinite dividend."
                         if "approx" in op else "")  # fmt: skip


def exponentials(file: CaseFile) -> None:
    rng = random.Random("exponentials")
    two = mpmath.mpf(2)
    a = [F32.of(rng.uniform(-126, 127.9)) for _ in range(80)] + [F32.of(x) for x in (1, -1, 0.5, -125, 127, 10)]
    special: dict[int, int | None] = {
        MINUS_INF: ZERO, ZERO: ONE, MINUS_ZERO: ONE, INF: INF, NAN: NAN, F32.of(128): INF, F32.of(-200): ZERO,
    }  # fmt: skip
    low = [F32.of(rng.uniform(-148, -127)) for _ in range(16)]
    unary(file, "ex2.approx", "9.7.3.21", [*a, *low], lambda x: two**x, special, ulp=2)
    flushed: dict[int, int | None] = {**special, **{x: ZERO for x in low}}
    unary(file, "ex2.approx.ftz", "9.7.3.21", a, lambda x: two**x, flushed, ulp=2)
    logs: dict[int, int | None] = {MINUS_INF: NAN, ZERO: MINUS_INF, MINUS_ZERO: MINUS_INF, INF: INF, NAN: NAN}
    logs[F32.of(-1)] = NAN
    near = [F32.of(rng.uniform(0.5, 2)) for _ in range(60)] + [ONE, ONE + 1, ONE - 1, F32.of(0.5) + 1]
    far = [x for x in spread("lg2", -126, 127) if not 0.5 < float(F32.value(x)) < 2]

    def binary_log(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log(x, 2)

    log_case(file, "near", near, {**logs, ONE: ZERO}, binary_log, absolute=2.0**-22 + 2.0**-25)
    log_case(file, "far", far, {1: F32.of(-149), 0x7FFFFF: None}, binary_log, relative=2.0**-22 + 2.0**-24)
    module = file.module("math_lg2")
    kernel = module.elementwise("lg2_ftz_f32", [("f32", "f32")], [("f32", "f32")], "lg2.approx.ftz.f32 %d, %a;")
    values = [*far, 1, 0x7FFFFF, 1 | F32.sign, ZERO, INF, NAN]
    expected: list[int] = [rounded(F32, binary_log(number(F32, x))) for x in far]
    elementwise_case(file, "lg2_approx_ftz_f32", module, kernel, [("f32", values)],
                     [target("f32", [*expected, MINUS_INF, MINUS_INF, MINUS_INF, MINUS_INF, INF, NAN],
                             relative=2.0**-22 + 2.0**-24)], section="9.7.3.20")  # fmt: skip


def log_case(
    file: CaseFile, name: str, values: Sequence[int], special: dict[int, int | None], function: Function, **error: float
) -> None:
    module = file.module("math_lg2")
    kernel = module.elementwise(f"lg2_{name}_f32", [("f32", "f32")], [("f32", "f32")], "lg2.approx.f32 %d, %a;")
    inputs = [*(x for x in values if x not in special), *special]
    expected = [special[x] if x in special else rounded(F32, function(number(F32, x))) for x in inputs]
    out = Arg("out", "f32", "d", expected=expected, **error)  # type: ignore[arg-type]
    elementwise_case(file, f"lg2_approx_{name}_f32", module, kernel, [("f32", inputs)], [out], section="9.7.3.20")


def circular(file: CaseFile) -> None:
    rng = random.Random("circular")
    module = file.module("math_circular")
    for op, function in (("sin", mpmath.sin), ("cos", mpmath.cos)):
        section = "9.7.3.18" if op == "sin" else "9.7.3.19"
        for reach, bound in ((2, 2.0**-20.5), (100, 2.0**-14.7)):
            a = [F32.of(rng.uniform(-reach, reach) * math.pi) for _ in range(100)]
            special: dict[int, int | None] = {INF: NAN, MINUS_INF: NAN, NAN: NAN}
            special |= {ZERO: ZERO, MINUS_ZERO: MINUS_ZERO} if op == "sin" else {ZERO: ONE, MINUS_ZERO: ONE}
            name = f"{op}_approx_{reach}pi_f32"
            kernel = module.elementwise(name, [("f32", "f32")], [("f32", "f32")], f"{op}.approx.f32 %d, %a;")
            inputs = [*a, *special]
            expected = [special[x] if x in special else rounded(F32, function(number(F32, x))) for x in inputs]
            elementwise_case(file, name, module, kernel, [("f32", inputs)],
                             [target("f32", expected, absolute=bound + 2.0**-25)], section=section)  # fmt: skip


def hyperbolic(file: CaseFile) -> None:
    rng = random.Random("tanh")
    a = [F32.of(rng.uniform(-6, 6)) for _ in range(60)] + [F32.of(rng.uniform(-1, 1) * 2.0**-e) for e in range(1, 40)]
    special: dict[int, int | None] = {
        MINUS_INF: F32.of(-1), INF: ONE, ZERO: ZERO, MINUS_ZERO: MINUS_ZERO, NAN: NAN,
    }  # fmt: skip
    unary(file, "tanh.approx", "9.7.3.22", a, mpmath.tanh, special, relative=2.0**-11 + 2.0**-24)
