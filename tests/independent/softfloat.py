"""IEEE 754 formats by exact fractions: what the PTX ISA's .f16, .bf16, .f32, .f64 operations must give, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

NAN = "nan"
"""An expected result that any NaN of the format satisfies: the ISA leaves payloads open."""

Result = int | str


@dataclass(frozen=True)
class Format:
    """A binary format: precision with the hidden bit, least and greatest exponent of a normal number."""

    bits: int
    precision: int
    emin: int
    emax: int

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        return (self.sign - 1) >> (self.precision - 1) << (self.precision - 1)

    @property
    def canonical_nan(self) -> int:
        return self.sign - 1

    @property
    def one(self) -> int:
        return self.emax << (self.precision - 1)

    def is_nan(self, bits: int) -> bool:
        return bits & (self.sign - 1) > self.infinity

    def is_inf(self, bits: int) -> bool:
        return bits & (self.sign - 1) == self.infinity

    def is_zero(self, bits: int) -> bool:
        return bits & (self.sign - 1) == 0

    def is_subnormal(self, bits: int) -> bool:
        return 0 < bits & (self.sign - 1) < 1 << (self.precision - 1)

    def negative(self, bits: int) -> bool:
        return bool(bits & self.sign)

    def flush(self, bits: int) -> int:
        """A subnormal number becomes a zero of its sign."""
        return bits & self.sign if self.is_subnormal(bits) else bits

    def value(self, bits: int) -> Fraction:
        """The number a finite pattern stands for."""
        magnitude = bits & (self.sign - 1)
        exponent, fraction = divmod(magnitude, 1 << (self.precision - 1))
        if exponent:
            fraction += 1 << (self.precision - 1)
        scale = max(exponent, 1) - 1 + self.emin - (self.precision - 1)
        number = Fraction(fraction) * (Fraction(2) ** scale)
        return -number if bits & self.sign else number

    def round(self, x: Fraction, mode: str, zero: int = 0) -> int:
        """The pattern nearest to x in the rounding mode; `zero` is the sign bit of an exact zero."""
        if x == 0:
            return self.sign if zero else 0
        negative, x = x < 0, abs(x)
        exponent = x.numerator.bit_length() - x.denominator.bit_length()
        if Fraction(2) ** exponent > x:
            exponent -= 1
        quantum = max(exponent, self.emin) - (self.precision - 1)
        scaled = x / Fraction(2) ** quantum
        n, rest = divmod(scaled.numerator, scaled.denominator)
        twice = 2 * rest
        up = {
            "rn": twice > scaled.denominator or (twice == scaled.denominator and n & 1 == 1),
            "rna": twice >= scaled.denominator,
            "rz": False,
            "rm": negative and rest > 0,
            "rp": not negative and rest > 0,
        }[mode]
        n += up
        bits = ((quantum - self.emin + self.precision - 1) << (self.precision - 1)) + n
        if bits >= self.infinity:
            away = mode in ("rn", "rna") or (mode == "rm" and negative) or (mode == "rp" and not negative)
            bits = self.infinity if away else self.infinity - 1
        return bits | (self.sign if negative else 0)


F16 = Format(16, 11, -14, 15)
BF16 = Format(16, 8, -126, 127)
F32 = Format(32, 24, -126, 127)
F64 = Format(64, 53, -1022, 1023)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def add(f: Format, a: int, b: int, mode: str) -> Result:
    if f.is_nan(a) or f.is_nan(b):
        return NAN
    if f.is_inf(a) or f.is_inf(b):
        if f.is_inf(a) and f.is_inf(b) and a != b:
            return NAN
        return a if f.is_inf(a) else b
    if f.is_zero(a) and f.is_zero(b) and a == b:
        return a
    return f.round(f.value(a) + f.value(b), mode, zero=mode == "rm")


def mul(f: Format, a: int, b: int, mode: str) -> Result:
    if f.is_nan(a) or f.is_nan(b):
        return NAN
    sign = (a ^ b) & f.sign
    if f.is_inf(a) or f.is_inf(b):
        return NAN if f.is_zero(a) or f.is_zero(b) else f.infinity | sign
    return f.round(f.value(a) * f.value(b), mode, zero=sign)


def fma(f: Format, a: int, b: int, c: int, mode: str) -> Result:
    if f.is_nan(a) or f.is_nan(b) or f.is_nan(c):
        return NAN
    sign = (a ^ b) & f.sign
    if f.is_inf(a) or f.is_inf(b):
        if f.is_zero(a) or f.is_zero(b) or (f.is_inf(c) and c & f.sign != sign):
            return NAN
        return f.infinity | sign
    if f.is_inf(c):
        return c
    product = f.value(a) * f.value(b)
    if product == 0 and f.is_zero(c) and sign == c & f.sign:
        return c
    return f.round(product + f.value(c), mode, zero=mode == "rm")


def div(f: Format, a: int, b: int, mode: str) -> Result:
    if f.is_nan(a) or f.is_nan(b):
        return NAN
    sign = (a ^ b) & f.sign
    if f.is_inf(a):
        return NAN if f.is_inf(b) else f.infinity | sign
    if f.is_inf(b):
        return sign
    if f.is_zero(b):
        return NAN if f.is_zero(a) else f.infinity | sign
    return f.round(f.value(a) / f.value(b), mode, zero=sign)


def sqrt(f: Format, a: int, mode: str) -> Result:
    if f.is_nan(a):
        return NAN
    if f.is_zero(a):
        return a
    if f.negative(a):
        return NAN
    if f.is_inf(a):
        return a
    # 700 bits below the point, and half of the last place more where it is not exact: it rounds as the root does.
    x = f.value(a) * Fraction(4) ** 700
    whole = isqrt(x.numerator // x.denominator)
    root = Fraction(whole) if whole * whole == x else Fraction(2 * whole + 1, 2)
    return f.round(root / Fraction(2) ** 700, mode)


def integral(f: Format, a: int, mode: str) -> int:
    """Rounded to a whole number in the same format; a zero keeps the sign of the input."""
    if f.is_inf(a) or f.is_zero(a):
        return a
    return f.round(Fraction(whole(f.value(a), mode)), "rn", zero=a & f.sign) if f.value(a) else a


def whole(x: Fraction, mode: str) -> int:
    """A fraction rounded to a whole number: rni (ties to even), rzi, rmi, rpi."""
    low = x.numerator // x.denominator
    if mode == "rmi" or x == low:
        return low
    if mode == "rpi":
        return low + 1
    if mode == "rzi":
        return low + (x < 0)
    twice = 2 * (x - low)
    return low + (twice > 1 or (twice == 1 and low & 1 == 1))


def saturate(f: Format, result: Result) -> Result:
    """.sat: within [0.0, 1.0], NaN becomes +0.0."""
    if result == NAN:
        return 0
    assert isinstance(result, int)
    if result & f.sign:
        return 0
    return min(result, f.one)
