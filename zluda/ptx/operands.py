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
    | (?P<address>\[({IDENTIFIER})(?:\+(-?(?:[1-9]\d{{0,17}}+|0)))?\])
    | (?P<vector>\{{([^{{}}()\[\]|]*+)\}})
    | (?P<pair>({IDENTIFIER})\|({IDENTIFIER}))
    | (?P<not>!({IDENTIFIER}))
    )[ \t\r\n]*+""",
    re.ASCII | re.VERBOSE,
)


def operand(cursor: Cursor, *, group: bool = False) -> Operand:
    """Read one operand. With `group`, a parenthesis opens a list, as in call; else a constant expression."""
    first = _single(cursor, group)
    if cursor.match(_bar) is None:
        return first
    return Pair(first, _single(cursor, False))


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


def _single(cursor: Cursor, group: bool) -> Operand:
    first = cursor.peek()
    if first == "{":
        return _vector(cursor)
    if first == "[":
        return _address(cursor)
    if first == "(" and group:
        cursor.position += 1
        return Group(() if cursor.accept(")") else _plain_items(cursor, ")"))
    return _plain(cursor)


def _plain(cursor: Cursor) -> Operand:
    """An operand that is neither a vector nor an address nor a list."""
    first = cursor.peek()
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


def _vector(cursor: Cursor) -> Vector:
    cursor.expect("{", "before a vector")
    return Vector(_plain_items(cursor, "}"))


def _plain_items(cursor: Cursor, closing: str) -> tuple[Operand, ...]:
    items = [_plain(cursor)]
    while not cursor.accept(closing):
        if not cursor.accept(","):
            cursor.expected(f"',' or '{closing}' behind an operand")
        items.append(_plain(cursor))
    return tuple(items)


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


def _address(cursor: Cursor) -> Address:
    cursor.expect("[", "before an address")
    base: Name | None = None
    distance = 0
    if _is_name(cursor, cursor.position):
        base = register(cursor, "an address")
        distance = offset(cursor)
    else:
        distance = constants.signed(constants.integer(cursor, "an address"))
    extra: list[Operand] = []
    while not cursor.accept("]"):
        if not cursor.accept(","):
            cursor.expected(
                "']' behind an address", "a negative offset is written [r+-4]" if cursor.starts("-") else None
            )
        extra.append(_vector(cursor) if cursor.starts("{") else _plain(cursor))
    return Address(base, distance, tuple(extra))


# --- caches -----------------------------------------------------------------------------------------


class OperandCache(dict[str, Operand]):
    """Operand text → operand. Text that is not one operand raises Reject (its offset means nothing).

    A text that starts with a parenthesis is taken for a call's list.
    """

    __slots__ = ()

    def __missing__(self, text: str) -> Operand:
        made: Operand
        match = _quick.fullmatch(text)
        kind = None if match is None or "WARP_SZ" in text else match.lastgroup
        if match is None or kind is None:
            cursor = Cursor(text)
            made = operand(cursor, group=True)
            if cursor.skip() != len(text):
                raise Reject(cursor.position, "more than one operand")
        elif kind == "name":
            made = Name(match[1])
        elif kind == "address":
            made = Address(Name(match[9]), int(match[10] or 0))
        elif kind == "single":
            made = Float(int(match["single"], 16), 32)
        elif kind == "integer":
            made = Integer(int(match["integer"]))
        elif kind == "vector":
            made = Vector(tuple([self[item] for item in match[12].split(",")]))
        elif kind == "component":
            made = Component(match[3], match[4])
        elif kind == "double":
            made = Float(int(match["double"], 16), 64)
        elif kind == "pair":
            made = Pair(Name(match[14]), Name(match[15]))
        else:
            made = Not(Name(match[17]))
        self[text] = made
        return made


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
