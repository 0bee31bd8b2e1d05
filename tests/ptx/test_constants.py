"""Integer and floating-point constants and constant expressions: sections 4.5.1 to 4.5.6.

Expected values are worked out by hand from the section's table of types, or by a C compiler where the rules agree.
"""

from __future__ import annotations

import math
import struct

import pytest

from zluda.ptx.constants import constant
from zluda.ptx.lexer import Cursor, Reject
from zluda.ptx.tree import Float, Integer

U64 = 1 << 64


def read(text: str) -> Integer | Float:
    cursor = Cursor(text)
    value = constant(cursor)
    assert cursor.skip() == len(text)
    return value


@pytest.mark.parametrize(
    ("text", "value", "unsigned"),
    [
        ("0", 0, False),
        ("42", 42, False),
        ("42U", 42, True),
        ("0U", 0, True),
        ("017", 15, False),
        ("0x1f", 31, False),
        ("0XfFU", 255, True),
        ("0b101", 5, False),
        ("0B11U", 3, True),
        ("9223372036854775807", (1 << 63) - 1, False),
        ("9223372036854775808", 1 << 63, True),
        ("0xfabc123400000000", 0xFABC123400000000, True),
        ("18446744073709551615", U64 - 1, True),
        ("WARP_SZ", 32, False),
    ],
)
def test_integer_literals(text: str, value: int, unsigned: bool) -> None:
    assert read(text) == Integer(value, unsigned)


@pytest.mark.parametrize(
    ("text", "value", "unsigned"),
    [
        ("-1", -1, False),
        ("- - 5", 5, False),
        ("-1U", U64 - 1, True),
        ("-9223372036854775808", 1 << 63, True),
        ("+3", 3, False),
        ("~5", U64 - 6, True),
        ("!5", 0, False),
        ("!0U", 1, False),
        ("2+3*4", 14, False),
        ("(2+3)*4", 20, False),
        ("10-4-3", 3, False),
        ("7/2", 3, False),
        ("-7/2", -3, False),
        ("-7/2U", (U64 - 7) // 2, True),
        ("-1%10", (U64 - 1) % 10, True),
        ("1<<4|1", 17, False),
        ("1<<63", -(1 << 63), False),
        ("1U<<63", 1 << 63, True),
        ("1<<64", 0, False),
        ("-8>>1", -4, False),
        ("-8>>100", -1, False),
        ("0x8000000000000000>>63", 1, True),
        ("1 < 2 == 1", 1, False),
        ("-1 < 0U", 0, False),
        ("-1 < 0", 1, False),
        ("6 & 3 == 3", 0, False),
        ("1 | 6 ^ 3 & 2", 1 | (6 ^ (3 & 2)), False),
        ("0 || 0 && 1", 0, False),
        ("1 || 0 && 0", 1, False),
        ("1 ? 2 : 3", 2, False),
        ("0 ? 2 : 3U", 3, True),
        ("1 ? -2 : 3U", U64 - 2, True),
        ("0 ? 1 : 0 ? 2 : 3", 3, False),
        ("1 ? 0 ? 1 : 2 : 3", 2, False),
        ("1 ? 2 : 3 + 4", 2, False),
        ("(.u64)-1", U64 - 1, True),
        ("(.s64)18446744073709551615", -1, False),
        ("( .s64 ) 0xffffffffffffffff >> 2", -1, False),
        ("9223372036854775807+1", -(1 << 63), False),
        ("WARP_SZ*2-1", 63, False),
    ],
)
def test_integer_expressions(text: str, value: int, unsigned: bool) -> None:
    assert read(text) == Integer(value, unsigned)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.5E-3", 1.5e-3),
        ("0d3FF0000000000000", 1.0),
        ("-1.5", -1.5),
        ("0.1+0.2", 0.1 + 0.2),
        ("1.0/3.0*2.0", 1.0 / 3.0 * 2.0),
        ("-(2.0-0.5)", -1.5),
        ("1e999", math.inf),
    ],
)
def test_doubles(text: str, value: float) -> None:
    assert read(text) == Float(int.from_bytes(struct.pack("<d", value), "little"), 64)


def test_single_precision_is_bits() -> None:
    assert read("0f3F800000") == Float(0x3F800000, 32)
    assert read("0F7fC00001") == Float(0x7FC00001, 32)


def test_double_comparison_is_an_integer() -> None:
    assert read("1.0 < 2.0") == Integer(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("08", "octal"),
        ("18446744073709551616", "64 bits"),
        ("0x10000000000000000", "64 bits"),
        ("12ab", "not a number"),
        ("0f3F80000", "not a number"),
        ("1/0", "division by zero"),
        ("1%0", "division by zero"),
        ("1 ? 2 : 1/0", "division by zero"),
        ("1.0+2", "mix"),
        ("-0f3F800000", "0f"),
        ("0f3F800000+0f3F800000", "0f"),
        ("~1.0", "does not apply"),
        ("1.0%2.0", "does not apply"),
        ("1.0 ? 1 : 2", "integer"),
        ("(1", "')'"),
        ("1 ? 2", "':'"),
        ("1 +", "a constant"),
        ("(.u32)5", "a constant"),
        ("", "end of the text"),
        ("1" * 5000, "too long"),
        ("x", "a constant"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(Reject) as caught:
        read(text)
    assert message in caught.value.message
