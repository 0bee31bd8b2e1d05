"""Exact IEEE-754 arithmetic on bits: values are fractions, rounding happens once and as asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

MODES = ("rn", "rz", "rm", "rp")
"""Rounding: nearest even, toward zero, toward minus infinity, toward plus infinity. `rna`: nearest, ties away."""


@dataclass(frozen=True)
class Format:
    """A binary interchange format."""

    name: str
    exponent: int
    fraction: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def lowest(self) -> int:
        """Exponent of the smallest subnormal's unit: values are multiples of 2**lowest."""
        return 1 - self.bias - self.fraction

    @property
    def inf(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def nan(self) -> int:
        return self.inf | (1 << (self.fraction - 1))

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.fraction)

    @property
    def largest(self) -> int:
        return self.inf - 1

    def is_nan(self, a: int) -> bool:
        return (a & (self.sign - 1)) > self.inf

    def is_inf(self, a: int) -> bool:
        return (a & (self.sign - 1)) == self.inf

    def is_zero(self, a: int) -> bool:
        return (a & (self.sign - 1)) == 0

    def is_subnormal(self, a: int) -> bool:
        return 0 < (a & (self.sign - 1)) < (1 << self.fraction)

    def negative(self, a: int) -> bool:
        return bool(a & self.sign)

    def flush(self, a: int) -> int:
        """Subnormals to zero of the same sign (.ftz)."""
        return a & self.sign if self.is_subnormal(a) else a

    def value(self, a: int) -> Fraction:
        """Of a finite number."""
        assert not self.is_nan(a) and not self.is_inf(a)
        field = a >> self.fraction & ((1 << self.exponent) - 1)
        significand = a & ((1 << self.fraction) - 1)
        if field:
            significand |= 1 << self.fraction
        result = Fraction(significand) * Fraction(2) ** (max(field, 1) - 1 + self.lowest)
        return -result if self.negative(a) else result

    def round(self, x: Fraction, mode: str = "rn", zero_sign: bool = False) -> int:
        """The bits nearest to `x` under `mode`; an exact zero gets the sign `zero_sign`."""
        if x == 0:
            return self.sign if zero_sign else 0
        negative = x < 0
        magnitude = -x if negative else x
        exponent = _floor_log2(magnitude)
        unit = max(exponent - self.fraction, self.lowest)
        scaled = magnitude / Fraction(2) ** unit
        whole = scaled.numerator // scaled.denominator
        rest = scaled - whole
        whole += _up(whole, rest, mode, negative)
        bits = self._assemble(whole, unit, mode, negative)
        return bits | (self.sign if negative else 0)

    def _assemble(self, significand: int, unit: int, mode: str, negative: bool) -> int:
        if significand >= 2 << self.fraction:
            assert significand == 2 << self.fraction
            significand, unit = significand >> 1, unit + 1
        if significand < 1 << self.fraction:
            return significand
        field = unit - self.lowest + 1
        if field < (1 << self.exponent) - 1:
            return (field << self.fraction) | (significand & ((1 << self.fraction) - 1))
        away = mode in ("rn", "rna") or (mode == "rp" and not negative) or (mode == "rm" and negative)
        return self.inf if away else self.largest

    def of(self, x: float | int | Fraction) -> int:
        """Bits of a Python number, rounded to nearest even."""
        if isinstance(x, float):
            if math.isnan(x):
                return self.nan
            if math.isinf(x):
                return self.inf | (self.sign if x < 0 else 0)
            return self.round(Fraction(x), zero_sign=math.copysign(1.0, x) < 0)
        return self.round(Fraction(x))


def _floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def _up(whole: int, rest: Fraction, mode: str, negative: bool) -> int:
    if rest == 0 or mode == "rz":
        return 0
    if mode == "rn":
        return int(rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1 == 1))
    if mode == "rna":
        return int(rest >= Fraction(1, 2))
    return int(negative == (mode == "rm"))


F16 = Format("f16", 5, 10)
BF16 = Format("bf16", 8, 7)
F32 = Format("f32", 8, 23)
F64 = Format("f64", 11, 52)
FORMATS = {f.name: f for f in (F16, BF16, F32, F64)}


def add(f: Format, a: int, b: int, mode: str = "rn") -> int:
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    if f.is_inf(a) or f.is_inf(b):
        if f.is_inf(a) and f.is_inf(b):
            return a if a == b else f.nan
        return a if f.is_inf(a) else b
    return f.round(f.value(a) + f.value(b), mode, _sum_sign(f.negative(a), f.negative(b), mode))


def _sum_sign(a: bool, b: bool, mode: str) -> bool:
    """Sign of an exact zero sum of terms with those signs (IEEE-754 6.3)."""
    return a if a == b else mode == "rm"


def sub(f: Format, a: int, b: int, mode: str = "rn") -> int:
    return f.nan if f.is_nan(b) else add(f, a, b ^ f.sign, mode)


def mul(f: Format, a: int, b: int, mode: str = "rn") -> int:
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    negative = f.negative(a) != f.negative(b)
    if f.is_inf(a) or f.is_inf(b):
        return f.nan if f.is_zero(a) or f.is_zero(b) else f.inf | (f.sign if negative else 0)
    return f.round(f.value(a) * f.value(b), mode, negative)


def fma(f: Format, a: int, b: int, c: int, mode: str = "rn") -> int:
    if f.is_nan(a) or f.is_nan(b) or f.is_nan(c):
        return f.nan
    negative = f.negative(a) != f.negative(b)
    if f.is_inf(a) or f.is_inf(b):
        if f.is_zero(a) or f.is_zero(b):
            return f.nan
        product = f.inf | (f.sign if negative else 0)
        return f.nan if f.is_inf(c) and c != product else product
    if f.is_inf(c):
        return c
    product_value = f.value(a) * f.value(b)
    sign = _sum_sign(negative, f.negative(c), mode)
    return f.round(product_value + f.value(c), mode, sign)


def div(f: Format, a: int, b: int, mode: str = "rn") -> int:
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    negative = f.negative(a) != f.negative(b)
    sign = f.sign if negative else 0
    if f.is_inf(a):
        return f.nan if f.is_inf(b) else f.inf | sign
    if f.is_inf(b):
        return sign
    if f.is_zero(b):
        return f.nan if f.is_zero(a) else f.inf | sign
    return f.round(f.value(a) / f.value(b), mode, negative)


def sqrt(f: Format, a: int, mode: str = "rn") -> int:
    if f.is_nan(a):
        return f.nan
    if f.is_zero(a):
        return a
    if f.negative(a):
        return f.nan
    if f.is_inf(a):
        return a
    x = f.value(a)
    # Enough bits that the truncated root, with a sticky bit below, rounds as the exact root does.
    shift = 2 * (f.fraction + 8) + 2 * f.bias
    scaled = x * Fraction(4) ** shift
    assert scaled.denominator == 1
    root = math.isqrt(scaled.numerator)
    sticky = Fraction(1, 2) if root * root != scaled.numerator else Fraction(0)
    return f.round((root + sticky) / Fraction(2) ** shift, mode)


def convert(source: Format, target: Format, a: int, mode: str = "rn") -> int:
    if source.is_nan(a):
        return target.nan
    negative = target.sign if source.negative(a) else 0
    if source.is_inf(a):
        return target.inf | negative
    return target.round(source.value(a), mode, source.negative(a))


def to_integer(x: Fraction, mode: str) -> int:
    """`rni`, `rzi`, `rmi`, `rpi`."""
    below = math.floor(x)
    rest = x - below
    if mode == "rmi" or rest == 0:
        return below
    if mode == "rpi":
        return below + 1
    if mode == "rzi":
        return below if x >= 0 else below + 1
    return below + int(rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below & 1 == 1))


def saturate(f: Format, a: int) -> int:
    """.sat: into [+0.0, 1.0], NaN to +0.0."""
    if f.is_nan(a) or f.negative(a):
        return 0
    one = f.of(1)
    return min(a, one)


def ordered(f: Format, a: int, b: int) -> bool:
    return not f.is_nan(a) and not f.is_nan(b)


def _key(f: Format, a: int) -> int:
    magnitude = a & (f.sign - 1)
    return -magnitude if f.negative(a) else magnitude


def key(f: Format, a: int) -> int:
    """Orders numbers (not NaNs); both zeros are 0."""
    return _key(f, a)


def minimum(f: Format, a: int, b: int, nan: bool = False) -> int:
    """min: a NaN operand gives the other (canonical NaN under .NaN); -0.0 < +0.0."""
    if f.is_nan(a) or f.is_nan(b):
        if nan or (f.is_nan(a) and f.is_nan(b)):
            return f.nan
        return b if f.is_nan(a) else a
    if f.is_zero(a) and f.is_zero(b):
        return a | b
    return a if _key(f, a) < _key(f, b) else b


def maximum(f: Format, a: int, b: int, nan: bool = False) -> int:
    if f.is_nan(a) or f.is_nan(b):
        return minimum(f, a, b, nan)
    if f.is_zero(a) and f.is_zero(b):
        return a & b
    return a if _key(f, a) > _key(f, b) else b
