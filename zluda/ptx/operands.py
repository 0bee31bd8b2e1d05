"""Instruction operands: registers, constants, addresses, vectors (section 6)."""

from __future__ import annotations

import re

from zluda.ptx import constants
from zluda.ptx.lexer import BLANK, IDENTIFIER, Cursor, Reject
from zluda.ptx.tree import (
    Address,
    Component,
    Element,
    Float,
    Group,
    Guard,
    Integer,
    Name,
    Negative,
    Not,
    Offset,
    Opcode,
    Operand,
    Pair,
    Vector,
)

_NESTED = 8
"""Vectors and addresses hold each other at most this deep in any instruction, with room to spare."""

_name_next = re.compile(rf"{BLANK}(?!WARP_SZ(?![\w$]))(?:{IDENTIFIER})", re.ASCII)
_component = re.compile(r"\.(\w++)", re.ASCII)
_bar = re.compile(r"\|(?!\|)")

# The forms that make up nearly all operands of compiled code; all others go through `operand`.
_quick = re.compile(
    rf"""[ \t\r\n]*+(?:
      (?P<name>{IDENTIFIER})
    | (?P<component>({IDENTIFIER})\.(\w++))
    | (?P<integer>-?(?:[1-9]\d{{0,17}}+|0))
    | 0[fF](?P<single>[0-9a-fA-F]{{8}})
    | 0[dD](?P<double>[0-9a-fA-F]{{16}})
    | (?P<address>\[({IDENTIFIER})(?:\+?(-?(?:[1-9]\d{{0,17}}+|0)))?+\])
    | (?P<vector>\{{([^{{}}()\[\]|]*+)\}})
    | (?P<pair>({IDENTIFIER})\|({IDENTIFIER}))
    | (?P<not>!({IDENTIFIER}))
    )[ \t\r\n]*+""",
    re.ASCII | re.VERBOSE,
)


def operand(cursor: Cursor, *, group: bool = False, depth: int = 0) -> Operand:
    """Read one operand. With `group`, a parenthesis opens a list, as in call; else a constant expression."""
    first = _single(cursor, group, depth)
    if cursor.match(_bar) is None:
        return first
    return Pair(first, _single(cursor, False, depth))


def operands(cursor: Cursor, *, group: bool = False) -> tuple[Operand, ...]:
    """Read operands up to the semicolon that ends the instruction, and pass it."""
    if cursor.accept(";"):
        return ()
    items = [operand(cursor, group=group)]
    while not cursor.accept(";"):
        if not cursor.accept(","):
            cursor.expected("',' or ';' behind an operand")
        items.append(operand(cursor, group=group))
    return tuple(items)


def register(cursor: Cursor, what: str = "a register") -> Name:
    """Read a plain name."""
    return Name(cursor.identifier(what))


def _single(cursor: Cursor, group: bool, depth: int) -> Operand:
    if depth > _NESTED:
        cursor.reject("brackets are nested too deep", cursor.position)
    first = cursor.peek()
    if first == "{":
        cursor.position += 1
        return Vector(_items(cursor, "}", depth))
    if first == "[":
        cursor.position += 1
        return _address(cursor, depth)
    if first == "(" and group:
        cursor.position += 1
        return Group(_items(cursor, ")", depth))
    if _is_name(cursor, cursor.position):
        return _named(cursor)
    if first in ("!", "-") and _is_name(cursor, cursor.position + 1):
        cursor.position += 1
        if first == "!":
            return Not(register(cursor, "a predicate behind '!'"))
        name = register(cursor)
        component = cursor.match(_component)
        return Negative(name if component is None else Component(name.name, component[1]))
    return constants.constant(cursor, "an operand")


def _is_name(cursor: Cursor, position: int) -> bool:
    """Whether a name stands at `position` (after blanks) that is not a constant's."""
    return _name_next.match(cursor.text, position, cursor.end) is not None


def _items(cursor: Cursor, closing: str, depth: int) -> tuple[Operand, ...]:
    items: list[Operand] = []
    if closing == ")" and cursor.accept(closing):
        return ()
    while True:
        items.append(operand(cursor, depth=depth + 1))
        if cursor.accept(closing):
            return tuple(items)
        if not cursor.accept(","):
            cursor.expected(f"',' or '{closing}' behind an operand")


def _named(cursor: Cursor) -> Operand:
    name = cursor.identifier("a name")
    component = cursor.match(_component)
    if component is not None:
        return Component(name, component[1])
    following = cursor.peek()
    if following == "[":
        return _element(cursor, name)
    if following == "+":
        return Offset(name, offset(cursor))
    return Name(name)


def _element(cursor: Cursor, name: str) -> Element:
    cursor.expect("[", "before a subscript")
    index = None
    distance = 0
    if _is_name(cursor, cursor.position):
        index = register(cursor)
        distance = offset(cursor)
    else:
        distance = constants.signed(constants.integer(cursor, "a subscript"))
    cursor.expect("]", "behind a subscript")
    return Element(name, index, distance)


def offset(cursor: Cursor) -> int:
    """Read `+8`, `+-8` or nothing: bytes added to an address, as a signed number."""
    if not cursor.accept("+"):
        return 0
    return constants.signed(constants.integer(cursor, "a constant offset"))


def _address(cursor: Cursor, depth: int) -> Address:
    base: Name | Component | None = None
    distance = 0
    if _is_name(cursor, cursor.position):
        name = cursor.identifier("an address")
        component = cursor.match(_component)
        base = Name(name) if component is None else Component(name, component[1])
        distance = offset(cursor)
    else:
        distance = constants.signed(constants.integer(cursor, "an address"))
    if cursor.accept("]"):
        return Address(base, distance)
    if not cursor.accept(","):
        cursor.expected("']' behind an address", "a negative offset is written [r+-4]" if cursor.starts("-") else None)
    return Address(base, distance, _items(cursor, "]", depth))


# --- caches -----------------------------------------------------------------------------------------


class OperandCache(dict[str, Operand]):
    """Operand text → operand. Text that is not one operand raises Reject (its offset means nothing).

    A text that starts with a parenthesis is taken for a call's list.
    """

    __slots__ = ()

    def __missing__(self, text: str) -> Operand:
        made = self[text] = self._read(text)
        return made

    def _read(self, text: str) -> Operand:
        match = _quick.fullmatch(text)
        if match is not None and "WARP_SZ" not in text:
            kind = match.lastgroup
            if kind == "name":
                return Name(match["name"])
            if kind == "integer":
                return Integer(int(match["integer"]))
            if kind == "address":
                return Address(Name(match[9]), int(match[10] or 0))
            if kind == "component":
                return Component(match[3], match[4])
            if kind == "single":
                return Float(int(match["single"], 16), 32)
            if kind == "double":
                return Float(int(match["double"], 16), 64)
            if kind == "vector":
                return Vector(tuple([self[item] for item in match[12].split(",")]))
            if kind == "pair":
                return Pair(Name(match[14]), Name(match[15]))
            if kind == "not":
                return Not(Name(match[17]))
        cursor = Cursor(text)
        read = operand(cursor, group=True)
        if cursor.skip() != len(text):
            raise Reject(cursor.position, "more than one operand")
        return read


class OpcodeCache(dict[str, Opcode]):
    """Opcode text → Opcode."""

    __slots__ = ()

    def __missing__(self, text: str) -> Opcode:
        name, *modifiers = text.split(".")
        made = self[text] = Opcode(name, tuple(modifiers))
        return made


class GuardCache(dict[str, Guard]):
    """`@p` or `@!p`, without blanks → Guard."""

    __slots__ = ()

    def __missing__(self, text: str) -> Guard:
        negated = text.startswith("@!")
        made = self[text] = Guard(text[2 if negated else 1 :], negated)
        return made
