"""The .approx instructions: special values by the ISA's tables, the rest within its bounds, by mpmath."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import exact
import mpmath
from exact import BF16, F16, F32, F64, Format, nan_or
from mpmath import mpf
from ops_rig import Form, check

mpmath.mp.prec = 160

Bound = Callable[[mpf, mpf, mpf], bool]
"""Whether (argument, true result, result found) is good enough."""


def number(f: Format, bits: int) -> mpf:
    value = f.value(bits)
    return mpf(value.numerator) / mpf(value.denominator)


def relative(exponent: float) -> Bound:
    return lambda x, true, found: abs(found - true) <= mpf(2) ** exponent * abs(true)


def absolute(exponent: float) -> Bound:
    return lambda x, true, found: abs(found - true) <= mpf(2) ** exponent


def ulps(f: Format, count: int) -> Bound:
    """Within `count` last places of the true result; subnormal results have the places of the smallest normal ones."""

    def good(x: mpf, true: mpf, found: mpf) -> bool:
        if true == 0:
            return found == 0
        exponent = max(int(mpmath.floor(mpmath.log(abs(true), 2))), 1 - f.bias)
        return abs(found - true) <= (count + mpf(2) ** -40) * mpf(2) ** (exponent - f.fraction)

    return good


def expectation(
    f: Format,
    special: dict[int, int],
    compute: Callable[[mpf], mpf | None],
    bound: Bound,
    *,
    ftz: bool = False,
    overflow: mpf | None = None,
) -> Callable[[int], object]:
    """`special` maps bits to bits (exact.NAN for any NaN); `compute` gives None for a NaN."""

    def expect(a: int) -> object:
        if ftz:
            a = f.flush(a)
        if f.is_nan(a):
            return f.is_nan
        if a in special:
            return nan_or(f, special[a])
        true = compute(number(f, a))
        if true is None:
            return f.is_nan

        def good(bits: int) -> bool:
            if f.is_nan(bits) or (ftz and f.is_subnormal(bits)):
                return False
            if f.is_infinite(bits):
                # Only where the true result, given the bound, may round there.
                return abs(true) * (1 + mpf(2) ** (1 - f.fraction)) >= number(f, f.largest) and (
                    f.negative(bits) == (true < 0)
                )
            if ftz and abs(true) < number(f, 1 << f.fraction) * (1 + mpf(2) ** -20) and f.is_zero(bits):
                return True
            return bound(number(f, a), true, number(f, bits))

        return good

    return expect


def scattered(f: Format, count: int, low: float, high: float, seed: int) -> list[tuple[int, ...]]:
    """Values of both signs with exponents spread evenly over powers of two from low to high."""
    source = random.Random(seed)
    rows = []
    for _ in range(count):
        size = Fraction(2.0 ** source.uniform(low, high))
        rows.append((f.round(-size if source.random() < 0.5 else size, "rn"),))
    return rows


def rows(f: Format, low: float, high: float, seed: int, count: int = 400) -> list[tuple[int, ...]]:
    return [(bits,) for bits in exact.interesting(f)] + scattered(f, count, low, high, seed)


INF, NEG_INF, MINUS = F32.infinity, F32.infinity | F32.sign, F32.sign
ONE = F32.one


def form(text: str, expect: Callable[[int], object], values: list[tuple[int, ...]], type: str = "f32") -> Form:
    return Form(f"{text} %x, %a;", (type,), (type,), expect, values)


def both(
    name: str,
    special: dict[int, int],
    compute: Callable[[mpf], mpf | None],
    bound: Bound,
    values: list[tuple[int, ...]],
) -> list[Form]:
    """With and without .ftz."""
    return [
        form(f"{name}.approx.f32", expectation(F32, special, compute, bound), values),
        form(f"{name}.approx.ftz.f32", expectation(F32, special, compute, bound, ftz=True), values),
    ]


def test_reciprocals_and_roots() -> None:
    forms = both(
        "rcp",
        {NEG_INF: MINUS, MINUS: NEG_INF, 0: INF, INF: 0},
        lambda x: 1 / x,
        ulps(F32, 1),
        rows(F32, -149, 127, 1),
    )
    forms += both(
        "sqrt",
        {NEG_INF: exact.NAN, MINUS: MINUS, 0: 0, INF: INF},
        lambda x: None if x < 0 else mpmath.sqrt(x),
        relative(-23),
        rows(F32, -149, 127, 2),
    )
    forms += both(
        "rsqrt",
        {NEG_INF: exact.NAN, MINUS: NEG_INF, 0: INF, INF: 0},
        lambda x: None if x < 0 else 1 / mpmath.sqrt(x),
        relative(-22.9),
        rows(F32, -149, 127, 3),
    )
    check(forms)


def test_rsqrt_f64() -> None:
    special = {F64.infinity | F64.sign: exact.NAN, F64.sign: F64.infinity | F64.sign, 0: F64.infinity, F64.infinity: 0}
    expect = expectation(F64, special, lambda x: None if x < 0 else 1 / mpmath.sqrt(x), ulps(F64, 2))
    check([form("rsqrt.approx.f64", expect, rows(F64, -1022, 1023, 4), "f64")])


def test_upper_words() -> None:
    """rcp and rsqrt .approx.ftz.f64 take and give upper words; subnormals are zeros, NaN is 0x7fffffff00000000."""
    nan = 0x7FFFFFFF00000000

    def expect(a: int, root: bool) -> object:
        if F64.is_nan(a):
            return nan
        a = F64.flush(a & 0xFFFFFFFF00000000)
        if root and F64.negative(a) and not F64.is_zero(a):
            return nan
        if F64.is_zero(a):
            return a | F64.infinity
        if F64.is_infinite(a):
            return a & F64.sign
        true = 1 / (mpmath.sqrt(number(F64, a)) if root else number(F64, a))

        def good(bits: int) -> bool:
            if bits & 0xFFFFFFFF or F64.is_subnormal(bits):
                return False
            if F64.is_zero(bits):
                return abs(true) < mpf(2) ** -1022
            return abs(number(F64, bits) - true) <= mpf(2) ** -20 * abs(true)

        return good

    values = [*rows(F64, -1022, 1023, 5), (0x7FF0000000000001,), (0x0000000100000000,), (0x8000000000000001,)]
    check(
        [
            form("rcp.approx.ftz.f64", lambda a: expect(a, False), values, "f64"),
            form("rsqrt.approx.ftz.f64", lambda a: expect(a, True), values, "f64"),
        ]
    )


def test_division() -> None:
    source = random.Random(6)
    edge = exact.interesting(F32)[::2]
    pairs = [(a, b) for a in edge for b in [*edge, 0x7E800000, 0x7E800001, 0xFE900000, 0x7F000000]]
    pairs += [(source.getrandbits(32), source.getrandbits(32)) for _ in range(300)]

    def expect(a: int, b: int, approximate: bool, ftz: bool) -> object:
        if ftz:
            a, b = F32.flush(a), F32.flush(b)
        sign = (a ^ b) & F32.sign
        if approximate and not F32.is_nan(a) and 0x7E800000 < b & 0x7FFFFFFF < F32.infinity:
            return F32.is_nan if F32.is_infinite(a) else sign
        right = exact.div(F32, a, b)
        if right in (exact.NAN, sign | F32.infinity, sign) and (
            F32.is_nan(a)
            or F32.is_nan(b)
            or F32.is_zero(a)
            or F32.is_zero(b)
            or F32.is_infinite(a)
            or F32.is_infinite(b)
        ):
            return nan_or(F32, right)
        true = number(F32, a) / number(F32, b)
        within = ulps(F32, 2)

        def good(bits: int) -> bool:
            if F32.is_nan(bits):
                return False
            if F32.is_infinite(bits):
                return abs(true) > number(F32, F32.largest - 2)
            if ftz and abs(true) < mpf(2) ** -125:
                return bits == sign or (not F32.is_subnormal(bits) and within(true, true, number(F32, bits)))
            return within(true, true, number(F32, bits))

        return good

    forms = [
        Form(
            f"div.{kind}{'.ftz' if ftz else ''}.f32 %x, %a, %b;",
            ("f32", "f32"),
            ("f32",),
            lambda a, b, k=kind, z=ftz: expect(a, b, k == "approx", z),
            pairs,
        )
        for kind in ("approx", "full")
        for ftz in (False, True)
    ]
    check(forms)


def test_sine_and_cosine() -> None:
    two_pi, hundred_pi = 2 * mpmath.pi, 100 * mpmath.pi

    def bound(x: mpf, true: mpf, found: mpf) -> bool:
        if abs(x) <= two_pi:
            return absolute(-20.5)(x, true, found)
        return absolute(-14.7)(x, true, found) if abs(x) <= hundred_pi else abs(found) <= 1

    values = rows(F32, -30, 10, 7, 600)
    nans = {NEG_INF: exact.NAN, INF: exact.NAN}
    check(
        [
            *both("sin", {**nans, MINUS: MINUS, 0: 0}, mpmath.sin, bound, values),
            *both("cos", {**nans, MINUS: ONE, 0: ONE}, mpmath.cos, bound, values),
        ]
    )


def test_logarithm_and_exponential() -> None:
    def log_bound(x: mpf, true: mpf, found: mpf) -> bool:
        near = mpf(0.5) < x < 2
        return (absolute if near else relative)(-22)(x, true, found)

    values = [*rows(F32, -149, 127, 8, 500), *scattered(F32, 300, -1, 1, 9)]
    forms = both(
        "lg2",
        {NEG_INF: exact.NAN, MINUS: NEG_INF, 0: NEG_INF, INF: INF},
        lambda x: None if x < 0 else mpmath.log(x, 2),
        log_bound,
        values,
    )
    values = [*rows(F32, -30, 7.3, 10, 600), *((F32.round(Fraction(n), "rn"),) for n in range(-152, 130))]
    forms += both(
        "ex2",
        {NEG_INF: 0, MINUS: ONE, 0: ONE, INF: INF},
        lambda x: mpf(2) ** x if abs(x) < 2000 else mpf(2) ** (2000 if x > 0 else -2000),
        lambda x, true, found: ulps(F32, 2)(x, true, found) if true > mpf(2) ** -1000 else found == 0,
        values,
    )
    check(forms)


def test_hyperbolic_tangent() -> None:
    special = {NEG_INF: ONE | MINUS, MINUS: MINUS, 0: 0, INF: ONE}
    expect = expectation(F32, special, mpmath.tanh, relative(-11))
    check([form("tanh.approx.f32", expect, rows(F32, -149, 6, 11))])


def test_half_precision() -> None:
    """f16 and bf16 forms: 2^-9.9 (ex2.f16) and coarser bounds; these are within one last place."""
    forms = []
    for f, type, ftz in ((F16, "f16", ""), (BF16, "bf16", ".ftz")):
        one, sign, infinity = f.one, f.sign, f.infinity
        values = rows(f, -14, 4, 12)
        forms.append(
            form(
                f"ex2.approx{ftz}.{type}",
                expectation(
                    f,
                    {infinity | sign: 0, sign: one, 0: one, infinity: infinity},
                    lambda x: mpf(2) ** x if abs(x) < 2000 else mpf(2) ** (2000 if x > 0 else -2000),
                    ulps(f, 1),
                    ftz=bool(ftz),
                ),
                values,
                type,
            )
        )
        forms.append(
            form(
                f"tanh.approx.{type}",
                expectation(f, {infinity | sign: one | sign, sign: sign, 0: 0, infinity: one}, mpmath.tanh, ulps(f, 1)),
                values,
                type,
            )
        )
    check(forms)
