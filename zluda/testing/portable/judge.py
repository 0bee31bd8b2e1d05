"""Right or wrong: comparing what came back with what a case expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .bits import Element, Pointer, unpack
from .case import Argument, Case
from .launch import GUARD, GUARD_BYTE

SHOWN = 5
"""Differences that a verdict's details spell out."""

_FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
"""Exponent and fraction bits."""


@dataclass(frozen=True)
class Difference:
    """One element that is not as expected."""

    argument: int
    name: str
    index: int
    expected: str
    got: str
    inputs: str


@dataclass(frozen=True)
class Verdict:
    """`right`, `wrong` or `unsupported`, and why."""

    case: str
    status: str
    details: str = ""
    differences: tuple[Difference, ...] = ()


def judge(case: Case, images: Sequence[bytes]) -> Verdict:
    """Compare the buffers' images after the launch (guards included, in the order of the buffer arguments)."""
    buffers = [(number, argument) for number, argument in enumerate(case.arguments) if argument.is_buffer]
    if len(images) != len(buffers):
        return Verdict(case.id, "wrong", f"{len(images)} buffers came back, the case has {len(buffers)}")
    problems: list[str] = []
    differences: list[Difference] = []
    for (number, argument), image in zip(buffers, images, strict=True):
        size = argument.width * argument.count
        if len(image) != size + 2 * GUARD:
            problems.append(f"argument {number}: {len(image)} bytes came back instead of {size + 2 * GUARD}")
            continue
        problems.extend(_guard_problems(number, argument, image, size))
        differences.extend(_differences(case, number, argument, unpack(image[GUARD : GUARD + size], argument.width)))
    if not problems and not differences:
        return Verdict(case.id, "right")
    problems.extend(
        f"argument {d.argument}{f' ({d.name})' if d.name else ''}[{d.index}]: expected {d.expected}, got {d.got}"
        + (f"; inputs {d.inputs}" if d.inputs else "")
        for d in differences[:SHOWN]
    )
    if len(differences) > SHOWN:
        problems.append(f"{len(differences)} elements differ in all")
    head = f"{case.id}: kernel {case.kernel} of {case.ptx_name}, grid {case.grid}, block {case.block}"
    return Verdict(case.id, "wrong", "\n  ".join([head, *problems]), tuple(differences))


def _guard_problems(number: int, argument: Argument, image: bytes, size: int) -> list[str]:
    problems = []
    for place, start, base in (("before", 0, -GUARD), ("after", GUARD + size, size)):
        guard = image[start : start + GUARD]
        touched = [at for at, byte in enumerate(guard) if byte != GUARD_BYTE]
        if touched:
            problems.append(
                f"argument {number}{f' ({argument.name})' if argument.name else ''}: {len(touched)} guard bytes "
                f"{place} the buffer were written, the first at byte offset {base + touched[0]}"
            )
    return problems


def _differences(case: Case, number: int, argument: Argument, got: list[int]) -> list[Difference]:
    expected: Sequence[Element] = argument.bits if argument.kind == "in" else argument.expected
    if argument.any_order:
        return _multiset_differences(number, argument, expected, got)
    found = []
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        if want is None or isinstance(want, Pointer):
            continue
        mask = argument.mask[index] if argument.mask else (1 << (8 * argument.width)) - 1
        if not _same(argument, want & mask, have & mask):
            found.append(
                Difference(
                    number,
                    argument.name,
                    index,
                    _show(argument, want) + (f" under mask {mask:0{2 * argument.width}x}" if argument.mask else ""),
                    _show(argument, have),
                    _inputs(case, number, index),
                )
            )
    return found


def _multiset_differences(
    number: int, argument: Argument, expected: Sequence[Element], got: list[int]
) -> list[Difference]:
    wanted = Counter(element for element in expected if isinstance(element, int))
    present = Counter(got)
    missing = sorted((wanted - present).elements())
    extra = sorted((present - wanted).elements())
    return [
        Difference(
            number,
            argument.name,
            got.index(surplus),
            f"{_show(argument, lack)} somewhere" if lack is not None else "no such element",
            _show(argument, surplus),
            "",
        )
        for lack, surplus in zip([*missing, *[None] * (len(extra) - len(missing))], extra, strict=True)
    ]


def _same(argument: Argument, want: int, have: int) -> bool:
    if want == have:
        return True
    if argument.type not in _FORMATS:
        return False
    if is_nan(argument.type, want):
        return is_nan(argument.type, have)
    if is_nan(argument.type, have) or not (argument.ulp or argument.absolute or argument.relative):
        return False
    if argument.ulp and abs(ordinal(argument.type, want) - ordinal(argument.type, have)) <= argument.ulp:
        return True
    exact, value = finite(argument.type, want), finite(argument.type, have)
    if exact is None or value is None:
        return False
    return abs(exact - value) <= max(Fraction(argument.absolute), Fraction(argument.relative) * abs(exact))


def is_nan(kind: str, bits: int) -> bool:
    """Whether the bits of a floating-point type are a NaN."""
    exponent, fraction = _FORMATS[kind]
    return bits >> fraction & ((1 << exponent) - 1) == (1 << exponent) - 1 and bits & ((1 << fraction) - 1) != 0


def ordinal(kind: str, bits: int) -> int:
    """The place of a number on the line of its type's numbers; neighbours differ by 1, both zeros are 0."""
    exponent, fraction = _FORMATS[kind]
    sign = bits >> (exponent + fraction)
    magnitude = bits & ((1 << (exponent + fraction)) - 1)
    return -magnitude if sign else magnitude


def finite(kind: str, bits: int) -> Fraction | None:
    """The value of a number; None for infinities and NaNs."""
    exponent, fraction = _FORMATS[kind]
    field = bits >> fraction & ((1 << exponent) - 1)
    if field == (1 << exponent) - 1:
        return None
    significand = bits & ((1 << fraction) - 1)
    bias = (1 << (exponent - 1)) - 1
    if field:
        significand |= 1 << fraction
    power = max(field, 1) - bias - fraction
    value = Fraction(significand) * (Fraction(2) ** power)
    return -value if bits >> (exponent + fraction) else value


def _show(argument: Argument, bits: int) -> str:
    text = f"{bits:0{2 * argument.width}x}"
    if argument.type in _FORMATS:
        if is_nan(argument.type, bits):
            return f"{text} (NaN)"
        value = finite(argument.type, bits)
        sign = bits >> (8 * argument.width - 1)
        shown = ("-inf" if sign else "inf") if value is None else repr(float(value))
        return f"{text} ({'-0.0' if sign and value == 0 else shown})"
    if argument.type.startswith("s") and bits >> (8 * argument.width - 1):
        return f"{text} ({bits - (1 << (8 * argument.width))})"
    return text


def _inputs(case: Case, number: int, index: int) -> str:
    """The elements at the same place of the other buffers that hold as many elements."""
    count = case.arguments[number].count
    shown = []
    for other, argument in enumerate(case.arguments):
        if argument.bits and argument.is_buffer and argument.count == count:
            element = argument.bits[index]
            if isinstance(element, int):
                shown.append(f"{argument.name or other}={_show(argument, element)}")
    return ", ".join(shown)
