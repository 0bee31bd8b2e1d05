"""Addresses as sums: what is known of an integer that is made of other values by adding and scaling.

A device's compiler that runs threads as vector lanes sees that neighbours touch neighbouring elements only when one
getelementptr goes from a base that all share, with an index counted in elements. PTX counts in bytes, so an address is
taken apart into its terms here and put together again in elements, wherever that gives exactly the same address.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST_TERMS = 4
WIDEST = 16
"""Bytes of the largest element an index is counted in."""

BLOCK_SIDE = (0, 0xFFFF)
"""Range of %tid and %ntid on any device."""


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + sum of scale * value, modulo 2^bits; values are LLVM integers of that many bits."""

    bits: int
    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    def plus(self, other: Affine, sign: int = 1) -> Affine | None:
        """The sum (or difference), None when it gets too long to be worth anything."""
        scales = dict(self.terms)
        for value, scale in other.terms:
            scales[value] = scales.get(value, 0) + sign * scale
        terms = self._wrapped(scales.items())
        if len(terms) > MOST_TERMS:
            return None
        return Affine(self.bits, wrapped(self.constant + sign * other.constant, self.bits), terms)

    def times(self, factor: int) -> Affine:
        terms = self._wrapped((value, scale * factor) for value, scale in self.terms)
        return Affine(self.bits, wrapped(self.constant * factor, self.bits), terms)

    def _wrapped(self, terms: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        scaled = ((value, wrapped(scale, self.bits)) for value, scale in terms)
        return tuple((value, scale) for value, scale in scaled if scale)

    @property
    def granule(self) -> int:
        """The largest power of two up to WIDEST that divides all scales; 1 without terms."""
        if not self.terms:
            return 1
        common = WIDEST
        for _, scale in self.terms:
            common = min(common, scale & -scale)
        return common

    def interval(self, ranges: dict[str, tuple[int, int]]) -> tuple[int, int] | None:
        """The least and greatest value without wrapping; None when a value's range is not known."""
        low = high = self.constant
        for value, scale in self.terms:
            known = ranges.get(value)
            if known is None:
                return None
            ends = (known[0] * scale, known[1] * scale)
            low += min(ends)
            high += max(ends)
        return low, high


def wrapped(value: int, bits: int) -> int:
    """The signed number of so many bits that is equal modulo 2^bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def fits(interval: tuple[int, int] | None, bits: int = 32) -> bool:
    """Whether all values of an interval are signed numbers of so many bits."""
    return interval is not None and -(1 << (bits - 1)) <= interval[0] and interval[1] < 1 << (bits - 1)


def divisor(value: int) -> int:
    """The largest power of two up to WIDEST that divides a constant."""
    return min(value & -value, WIDEST) if value else WIDEST
