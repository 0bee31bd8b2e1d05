"""Constants and constant expressions, folded as sections 4.5.1 to 4.5.6 prescribe."""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable

from zluda.ptx.lexer import Cursor
from zluda.ptx.tree import Float, Integer

MASK64 = (1 << 64) - 1
WARP_SIZE = 32
"""The value of the predefined constant WARP_SZ (section 4.5.3)."""

_LONGEST = 1100
"""More characters than any exact binary64 value needs in decimal."""

_literal = re.compile(
    r"""
    0[xX](?P<hex>[0-9a-fA-F]++)(?P<hexu>U?)
  | 0[fF](?P<single>[0-9a-fA-F]{8})
  | 0[dD](?P<double>[0-9a-fA-F]{16})
  | 0[bB](?P<binary>[01]++)(?P<binaryu>U?)
  | (?P<decimal>(?:\d++\.\d*+|\.\d++)(?:[eE][+-]?\d++)?|\d++[eE][+-]?\d++)
  | (?P<integer>\d++)(?P<integeru>U?)
    """,
    re.ASCII | re.VERBOSE,
)
_word_goes_on = re.compile(r"[\w$]", re.ASCII)
_unary = re.compile(r"\(\s*\.([su]64)\s*\)|[-+!~(]")
_binary = re.compile(r"<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|?:)]")
_warp_size = re.compile(r"WARP_SZ(?![\w$])", re.ASCII)

_SINGLE = "a 0f constant cannot stand in a constant expression, nor behind a sign"
_SINGLE_HINT = "write it as a 0d or decimal constant, or with the result's bits"

_PRECEDENCE = {
    **dict.fromkeys(("*", "/", "%"), 10),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("<", "<=", ">", ">="), 7),
    **dict.fromkeys(("==", "!="), 6),
    "&": 5,
    "^": 4,
    "|": 3,
    "&&": 2,
    "||": 1,
    "?": 0,
    "?:": 0,
    "(": -1,
}
_UNARY_PRECEDENCE = 11

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "^": operator.xor,
    "|": operator.or_,
}


def signed(value: int) -> int:
    """The low 64 bits as a signed number."""
    value &= MASK64
    return value - (1 << 64) if value >> 63 else value


def _integer(value: int, unsigned: bool) -> Integer:
    return Integer(value & MASK64, True) if unsigned else Integer(signed(value), False)


def _float_value(constant: Float) -> float:
    if constant.width == 64:
        return float(struct.unpack("<d", constant.bits.to_bytes(8, "little"))[0])
    return float(struct.unpack("<f", constant.bits.to_bytes(4, "little"))[0])


def double(value: float) -> Float:
    """A binary64 constant."""
    return Float(int.from_bytes(struct.pack("<d", value), "little"), 64)


def literal(cursor: Cursor) -> Integer | Float | None:
    """Read one number if one comes next."""
    match = cursor.match(_literal)
    if match is None:
        return None
    start, end = match.span()
    if end < cursor.end and _word_goes_on.match(cursor.text, end):
        cursor.position = start
        cursor.reject(f"this is not a number: {cursor.found()}", start)
    if end - start > _LONGEST:
        cursor.reject("this number is too long", start)
    kind = match.lastgroup
    if kind == "single":
        return Float(int(match["single"], 16), 32)
    if kind == "double":
        return Float(int(match["double"], 16), 64)
    if kind == "decimal":
        return double(float(match["decimal"]))
    if kind == "hexu":
        value, suffix = int(match["hex"], 16), match["hexu"]
    elif kind == "binaryu":
        value, suffix = int(match["binary"], 2), match["binaryu"]
    else:
        digits, suffix = match["integer"], match["integeru"]
        if digits[0] == "0" and len(digits) > 1:
            if "8" in digits or "9" in digits:
                cursor.reject("an octal number (leading 0) has digits 0 to 7 only", start)
            value = int(digits, 8)
        else:
            value = int(digits)
    if value > MASK64:
        cursor.reject("this integer does not fit into 64 bits", start)
    return Integer(value, bool(suffix) or value >> 63 != 0)


def constant(cursor: Cursor, what: str = "a constant") -> Integer | Float:
    """Read and fold a constant expression; precedence is that of C.

    Types are `.s64`, `.u64` and binary64 (section 4.5.5); a 0f literal stands alone.
    """
    values: list[Integer | Float] = []
    pending: list[tuple[str, int]] = []
    """Operators whose right side is still being read, as (operator, offset); unary ones start with `u`."""

    def reduce(precedence: int) -> None:
        while pending:
            name, offset = pending[-1]
            if name[0] == "u":
                if precedence > _UNARY_PRECEDENCE:
                    return
                pending.pop()
                values[-1] = _apply_unary(cursor, name[1:], offset, values[-1])
                continue
            own = _PRECEDENCE[name]
            if own < precedence or name in ("(", "?"):
                return
            pending.pop()
            right = values.pop()
            if name == "?:":
                middle = values.pop()
                values[-1] = _select(cursor, offset, values[-1], middle, right)
            else:
                values[-1] = _apply_binary(cursor, name, offset, values[-1], right)

    while True:
        while (prefix := cursor.match(_unary)) is not None:  # an operand, behind its prefixes
            name = prefix[0]
            if name == "(":
                pending.append(("(", prefix.start()))
            else:
                pending.append(("u" + (prefix[1] or name), prefix.start()))
        number = literal(cursor)
        if number is None:
            if cursor.match(_warp_size) is None:
                cursor.expected(what)
            number = Integer(WARP_SIZE)
        values.append(number)
        while True:  # what may follow an operand
            start = cursor.skip()
            match = _binary.match(cursor.text, start, cursor.end)
            name = match[0] if match is not None else ""
            if name == ")":
                reduce(-1)
                if pending and pending[-1][0] == "(":
                    pending.pop()
                    cursor.position += 1
                    continue
                if pending:
                    cursor.expected("':' in a constant expression")
                return values[0]
            if name == ":":
                reduce(0)
                if pending and pending[-1][0] == "?":
                    pending[-1] = ("?:", pending[-1][1])
                    cursor.position += 1
                    break
                name = ""
            if not name:
                reduce(-1)
                if pending:
                    mark = ")" if pending[-1][0] == "(" else ":"
                    cursor.expected(f"'{mark}' in a constant expression")
                return values[0]
            # A right-hand `?:` belongs to the branch being read, everything else binds to the left.
            reduce(_PRECEDENCE[name] + (1 if name == "?" else 0))
            pending.append((name, start))
            cursor.position += len(name)
            break


def integer(cursor: Cursor, what: str = "an integer") -> int:
    """Read a constant expression that must be an integer."""
    start = cursor.skip()
    value = constant(cursor, what)
    if not isinstance(value, Integer):
        cursor.reject(f"expected {what}, found a floating-point constant", start)
    return value.value


def number(cursor: Cursor, what: str) -> int:
    """Read a plain integer where the grammar has no expression."""
    start = cursor.skip()
    value = literal(cursor)
    if not isinstance(value, Integer):
        cursor.position = start
        cursor.expected(what)
    return value.value


def count(cursor: Cursor, what: str) -> int:
    """Read an integer that is a count, a size or an index: not negative and below 2^63."""
    start = cursor.skip()
    value = integer(cursor, what)
    if not 0 <= value < 1 << 63:
        cursor.reject(f"expected {what}, found {value}", start)
    return value


def _apply_unary(cursor: Cursor, name: str, offset: int, value: Integer | Float) -> Integer | Float:
    if isinstance(value, Float):
        if value.width == 32:
            cursor.reject(_SINGLE, offset, _SINGLE_HINT)
        if name == "+":
            return value
        if name == "-":
            return Float(value.bits ^ 1 << 63, 64)
        cursor.reject(f"'{name}' does not apply to a floating-point constant", offset)
    if name == "+":
        return value
    if name == "-":
        return _integer(-value.value, value.unsigned)
    if name == "!":
        return Integer(int(value.value == 0))
    if name == "~":
        return _integer(~value.value, True)
    return _integer(value.value, name == "u64")


def _apply_binary(
    cursor: Cursor, name: str, offset: int, left: Integer | Float, right: Integer | Float
) -> Integer | Float:
    if isinstance(left, Float) or isinstance(right, Float):
        return _apply_float(cursor, name, offset, left, right)
    if name in ("&&", "||"):
        sides = (left.value != 0, right.value != 0)
        return Integer(int(all(sides) if name == "&&" else any(sides)))
    if name in ("<<", ">>"):
        distance = right.value & MASK64
        if name == "<<":
            return _integer(left.value << distance if distance < 64 else 0, left.unsigned)
        return _integer(left.value >> min(distance, 64), left.unsigned)
    unsigned = left.unsigned or right.unsigned
    a, b = (left.value & MASK64, right.value & MASK64) if unsigned or name == "%" else (left.value, right.value)
    if name in _COMPARE:
        return Integer(int(_COMPARE[name](a, b)))
    if name in _ARITHMETIC:
        return _integer(_ARITHMETIC[name](a, b), unsigned)
    if b == 0:
        cursor.reject("division by zero in a constant expression", offset)
    if name == "%":
        return _integer(a % b, True)
    quotient = abs(a) // abs(b)
    return _integer(quotient if (a < 0) == (b < 0) else -quotient, unsigned)


def _apply_float(
    cursor: Cursor, name: str, offset: int, left: Integer | Float, right: Integer | Float
) -> Integer | Float:
    if not isinstance(left, Float) or not isinstance(right, Float):
        cursor.reject("a constant expression cannot mix integers and floating-point constants", offset)
    if left.width == 32 or right.width == 32:
        cursor.reject(_SINGLE, offset, _SINGLE_HINT)
    a, b = _float_value(left), _float_value(right)
    if name in _COMPARE:
        return Integer(int(_COMPARE[name](a, b)))
    if name == "+":
        return double(a + b)
    if name == "-":
        return double(a - b)
    if name == "*":
        return double(a * b)
    if name == "/":
        if b == 0.0:
            cursor.reject("division by zero in a constant expression", offset)
        return double(a / b)
    cursor.reject(f"'{name}' does not apply to floating-point constants", offset)


def _select(
    cursor: Cursor, offset: int, condition: Integer | Float, first: Integer | Float, second: Integer | Float
) -> Integer | Float:
    if isinstance(condition, Float):
        cursor.reject("the condition of '?:' must be an integer", offset)
    chosen = first if condition.value != 0 else second
    if isinstance(first, Integer) and isinstance(second, Integer):
        assert isinstance(chosen, Integer)
        return _integer(chosen.value, first.unsigned or second.unsigned)
    return chosen
