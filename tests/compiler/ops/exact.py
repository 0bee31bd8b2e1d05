"""Floating-point results by exact arithmetic: numbers are fractions, rounded as IEEE 754 and the PTX ISA say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt


@dataclass(frozen=True)
class Format:
    """A binary format: bits in all, and of the fraction."""

    bits: int
    fraction: int

    @property
    def exponent(self) -> int:
        return self.bits - 1 - self.fraction

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def largest(self) -> int:
        return self.infinity - 1

    @property
    def one(self) -> int:
        return self.bias << self.fraction

    def is_nan(self, bits: int) -> bool:
        return bits & self.sign - 1 > self.infinity

    def is_infinite(self, bits: int) -> bool:
        return bits & self.sign - 1 == self.infinity

    def is_zero(self, bits: int) -> bool:
        return bits & self.sign - 1 == 0

    def is_subnormal(self, bits: int) -> bool:
        return 0 < bits & self.sign - 1 < 1 << self.fraction

    def negative(self, bits: int) -> bool:
        return bool(bits & self.sign)

    def value(self, bits: int) -> Fraction:
        """The number that finite bits stand for."""
        field = bits >> self.fraction & (1 << self.exponent) - 1
        significand = bits & (1 << self.fraction) - 1
        if field:
            significand |= 1 << self.fraction
        else:
            field = 1
        number = Fraction(significand) * Fraction(2) ** (field - self.bias - self.fraction)
        return -number if self.negative(bits) else number

    def round(self, number: Fraction, mode: str, negative_zero: bool = False) -> int:
        """Bits of a number rounded by rn, rz, rm or rp."""
        if number == 0:
            return self.sign if negative_zero else 0
        sign, size = (self.sign, -number) if number < 0 else (0, number)
        # The place of the last bit: 2^scale.
        scale = size.numerator.bit_length() - size.denominator.bit_length() - self.fraction - 1
        while size >= Fraction(2) ** (scale + self.fraction + 1):
            scale += 1
        scale = max(scale, 1 - self.bias - self.fraction)
        scaled = size / Fraction(2) ** scale
        whole = scaled.numerator // scaled.denominator
        rest = scaled - whole
        up = {
            "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1 == 1),
            "rz": False,
            "rm": bool(sign) and rest > 0,
            "rp": not sign and rest > 0,
        }[mode]
        whole += up
        # A significand with its leading bit counts one exponent too many: whole carries into the field by itself.
        field = scale + self.bias + self.fraction - 1
        bits = whole + (field << self.fraction)
        if bits >= self.infinity:
            away = mode == "rn" or (mode == "rm" and bool(sign)) or (mode == "rp" and not sign)
            bits = self.infinity if away else self.largest
        return sign | bits

    def flush(self, bits: int) -> int:
        return bits & self.sign if self.is_subnormal(bits) else bits


F16, BF16, F32, F64 = Format(16, 10), Format(16, 7), Format(32, 23), Format(64, 52)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}

NAN = -1
"""Stands for any NaN among results."""


def nan_or(format: Format, bits: int) -> int | Callable[[int], bool]:
    """An expectation: these bits, or any NaN."""
    return format.is_nan if bits == NAN else bits


def add(f: Format, a: int, b: int, mode: str = "rn") -> int:
    if f.is_nan(a) or f.is_nan(b):
        return NAN
    if f.is_infinite(a) or f.is_infinite(b):
        if f.is_infinite(a) and f.is_infinite(b) and a != b:
            return NAN
        return a if f.is_infinite(a) else b
    return _sum(f, f.value(a), f.negative(a), f.value(b), f.negative(b), mode)


def _sum(f: Format, a: Fraction, a_minus: bool, b: Fraction, b_minus: bool, mode: str) -> int:
    total = a + b
    if total == 0:
        both = a_minus and b_minus
        minus = both or (mode == "rm" and (a_minus or b_minus))
        return f.sign if minus else 0
    return f.round(total, mode)


def sub(f: Format, a: int, b: int, mode: str = "rn") -> int:
    return add(f, a, b if f.is_nan(b) else b ^ f.sign, mode)


def mul(f: Format, a: int, b: int, mode: str = "rn") -> int:
    if f.is_nan(a) or f.is_nan(b):
        return NAN
    sign = (a ^ b) & f.sign
    if f.is_infinite(a) or f.is_infinite(b):
        return NAN if f.is_zero(a) or f.is_zero(b) else sign | f.infinity
    return f.round(f.value(a) * f.value(b), mode, bool(sign))


def fma(f: Format, a: int, b: int, c: int, mode: str = "rn") -> int:
    if f.is_nan(a) or f.is_nan(b) or f.is_nan(c):
        return NAN
    sign = (a ^ b) & f.sign
    if f.is_infinite(a) or f.is_infinite(b):
        if f.is_zero(a) or f.is_zero(b) or (f.is_infinite(c) and c != sign | f.infinity):
            return NAN
        return sign | f.infinity
    if f.is_infinite(c):
        return c
    return _sum(f, f.value(a) * f.value(b), bool(sign), f.value(c), f.negative(c), mode)


def div(f: Format, a: int, b: int, mode: str = "rn") -> int:
    if f.is_nan(a) or f.is_nan(b):
        return NAN
    sign = (a ^ b) & f.sign
    if f.is_infinite(a):
        return NAN if f.is_infinite(b) else sign | f.infinity
    if f.is_zero(b):
        return NAN if f.is_zero(a) else sign | f.infinity
    if f.is_infinite(b):
        return sign
    return f.round(f.value(a) / f.value(b), mode, bool(sign))


def sqrt(f: Format, a: int, mode: str = "rn") -> int:
    if f.is_nan(a):
        return NAN
    if f.is_zero(a):
        return a
    if f.negative(a):
        return NAN
    if f.is_infinite(a):
        return a
    number = f.value(a)
    # Far more bits than the format has; a sticky bit below them tells that the root goes on.
    shift = 2 * (f.bits * 2 + f.bias)
    scaled = number * Fraction(2) ** shift
    whole = scaled.numerator // scaled.denominator
    root = isqrt(whole)
    inexact = root * root != scaled
    return f.round((Fraction(root) + (Fraction(1, 2) if inexact else 0)) / Fraction(2) ** (shift // 2), mode)


def saturate(f: Format, bits: int) -> int:
    """.sat: into [0, 1], NaN and -0 to +0."""
    if bits == NAN or f.is_nan(bits) or f.negative(bits):
        return 0
    return min(bits, f.one)


def interesting(f: Format) -> list[int]:
    """Bits of every kind: zeros, subnormals, smallest, ordinary, largest, infinities, NaNs."""
    small = 1 << f.fraction
    positive = [
        0, 1, 2, small - 1, small, small + 1, f.one - 1, f.one, f.one + 1, f.one + (small >> 1), f.one + small + 3,
        f.largest - 1, f.largest, f.infinity, f.infinity | small >> 1, f.one + small * 5 + 7, f.one - small * 3 + 5,
    ]  # fmt: skip
    return positive + [value | f.sign for value in positive]
