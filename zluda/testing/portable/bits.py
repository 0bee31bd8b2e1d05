"""The notation for exact bits: elements in hexadecimal, most significant digit first, separated by white space.

3f800000 7fc00000      two 32-bit elements
00000001*5             five times the same element
-    -*7               elements whose value is not looked at (expected values only)
&2   &2+16             the address of argument 2 (which is a buffer), 16 bytes on; 64-bit elements only
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTHS = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
}
"""Element type to bytes."""


class BitsError(ValueError):
    """A text that is not in the notation."""


class Pointer(NamedTuple):
    """The address of a buffer argument, plus bytes."""

    argument: int
    offset: int = 0


Element = int | Pointer | None
"""One element: its bits, an address that is known at launch, or None where the value is not looked at."""


def decode(text: str, width: int) -> list[Element]:
    """Elements of `width` bytes that `text` spells; BitsError where it spells none."""
    elements: list[Element] = []
    for token in text.split():
        body, star, times = token.partition("*")
        try:
            count = int(times) if star else 1
            element = _element(body, width)
        except ValueError as error:
            raise BitsError(f"{token!r}: {error}") from None
        if count < 1:
            raise BitsError(f"{token!r}: a count below 1")
        elements.extend([element] * count)
    return elements


def _element(body: str, width: int) -> Element:
    if body == "-":
        return None
    if body.startswith("&"):
        if width != 8:
            raise ValueError("an address needs 64-bit elements")
        argument, _, offset = body[1:].partition("+")
        return Pointer(int(argument), int(offset or "0"))
    if len(body) != 2 * width:
        raise ValueError(f"{2 * width} hexadecimal digits were expected")
    return int(body, 16)


def encode(elements: Sequence[Element], width: int) -> str:
    """The notation for `elements` of `width` bytes, runs of four and more folded."""
    tokens: list[str] = []
    position = 0
    while position < len(elements):
        element = elements[position]
        end = position
        while end < len(elements) and elements[end] == element and type(elements[end]) is type(element):
            end += 1
        token = _token(element, width)
        run = end - position
        tokens.extend([f"{token}*{run}"] if run > 3 else [token] * run)
        position = end
    return " ".join(tokens)


def _token(element: Element, width: int) -> str:
    if element is None:
        return "-"
    if isinstance(element, Pointer):
        return f"&{element.argument}" + (f"+{element.offset}" if element.offset else "")
    if not 0 <= element < 1 << (8 * width):
        raise BitsError(f"{element:#x} does not fit {width} bytes")
    return f"{element:0{2 * width}x}"


def pack(elements: Sequence[Element], width: int) -> bytes:
    """Little-endian bytes; addresses and unseen elements are zero (addresses are put in at launch)."""
    return b"".join((element if isinstance(element, int) else 0).to_bytes(width, "little") for element in elements)


def unpack(data: bytes, width: int) -> list[int]:
    """The elements of little-endian bytes."""
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]
