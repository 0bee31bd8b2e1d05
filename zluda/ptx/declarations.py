"""Declarations of registers, variables and parameters, and their initialisers (section 5)."""

from __future__ import annotations

import re

from zluda.ptx import constants
from zluda.ptx.lexer import IDENTIFIER, Cursor, Reject
from zluda.ptx.operands import offset
from zluda.ptx.tree import Float, Initialiser, Integer, Linkage, Property, Space, SymbolAddress, Variable

SPACES = {space.value: space for space in Space if space is not Space.SREG}
LINKAGES = {linkage.value: linkage for linkage in Linkage if linkage is not Linkage.NONE}

_FUNDAMENTAL = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 f32 f64 pred"
_ALTERNATE = "bf16 bf16x2 tf32 f32x2 e4m3 e5m2 e2m3 e3m2 e2m1 ue8m0 e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 ue8m0x2"
_PACKED = "u16x2 s16x2 u8x4 s8x4 e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4 b4x16 b4x16_p64 b6x16_p32 b6p2x16"
_OPAQUE = "texref samplerref surfref"
TYPES = frozenset(" ".join((_FUNDAMENTAL, _ALTERNATE, _PACKED, _OPAQUE)).split())
"""Types of sections 5.2 and 5.3."""

VECTORS = {"v2": 2, "v4": 4, "v8": 8}

_NESTED = 64
"""Deepest nesting of braces in an initialiser."""

_flat = re.compile(r"\{([\w$.+\-%() \t\r\n,]*+)\}", re.ASCII)
_quick_element = re.compile(
    rf"""[ \t\r\n]*+(?:
      (?P<integer>-?(?:[1-9]\d{{0,17}}+|0))
    | 0[fF](?P<single>[0-9a-fA-F]{{8}})
    | 0[dD](?P<double>[0-9a-fA-F]{{16}})
    | (?P<symbol>{IDENTIFIER})
    )[ \t\r\n]*+""",
    re.ASCII | re.VERBOSE,
)
_generic = re.compile(r"generic(?=\s*\()")
_identifier = re.compile(rf"(?!WARP_SZ(?![\w$])){IDENTIFIER}", re.ASCII)
_assign = re.compile(r"=(?!=)")


class _Shape:
    """What a declaration says before its names."""

    __slots__ = ("align", "attributes", "bank", "linkage", "pointer", "space", "type", "vector")

    def __init__(self, space: Space, linkage: Linkage) -> None:
        self.space = space
        self.linkage = linkage
        self.type: str | None = None
        self.vector = 1
        self.align: int | None = None
        self.attributes: tuple[tuple[str, tuple[int, ...]], ...] = ()
        self.pointer: tuple[str | None, int | None] | None = None
        self.bank: int | None = None


def variables(
    cursor: Cursor, space: Space, linkage: Linkage = Linkage.NONE, align: int | None = None
) -> list[Variable]:
    """Read a declaration behind its space, `.reg` in `.reg .b32 %r<3>, x;`, and the semicolon.

    `align` is that of an `.align` before the space.
    """
    shape = _shape(cursor, space, linkage, align)
    found = [_declarator(cursor, shape)]
    while not cursor.accept(";"):
        if not cursor.accept(","):
            cursor.expected("',' or ';' behind a declaration")
        found.append(_declarator(cursor, shape))
    return found


def parameters(cursor: Cursor) -> tuple[Variable, ...]:
    """Read a parameter list behind its opening parenthesis, and the closing one."""
    found: list[Variable] = []
    if cursor.accept(")"):
        return ()
    while True:
        cursor.skip()
        start = cursor.position
        space = SPACES.get(cursor.dotted() or "")
        if space not in (Space.PARAM, Space.REG):
            cursor.position = start
            cursor.expected("'.param' or '.reg' in a parameter list")
        found.append(_declarator(cursor, _shape(cursor, space, Linkage.NONE, parameter=True), parameter=True))
        if cursor.accept(")"):
            return tuple(found)
        if not cursor.accept(","):
            cursor.expected("',' or ')' in a parameter list")


def attributes(cursor: Cursor) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Read the parenthesis of `.attribute(.managed)`, `.attribute(.unified(1, 2))` (section 5.4.8)."""
    cursor.expect("(", "behind .attribute")
    found: list[tuple[str, tuple[int, ...]]] = []
    while True:
        name = cursor.dotted()
        if name is None:
            cursor.expected("an attribute such as .managed")
        numbers: list[int] = []
        if cursor.accept("("):
            numbers.append(constants.integer(cursor))
            while cursor.accept(","):
                numbers.append(constants.integer(cursor))
            cursor.expect(")", "behind an attribute's numbers")
        found.append((name, tuple(numbers)))
        if not cursor.accept(","):
            cursor.expect(")", "behind the attributes")
            return tuple(found)


def alignment(cursor: Cursor) -> int:
    start = cursor.skip()
    value = constants.integer(cursor, "an alignment in bytes")
    if value < 1 or value & (value - 1) or value >> 31:
        cursor.reject(f"an alignment is a power of two, not {value}", start)
    return value


def _shape(
    cursor: Cursor, space: Space, linkage: Linkage, align: int | None = None, *, parameter: bool = False
) -> _Shape:
    """`{.align n} {.attribute(…)} {.v4} .type`, and for parameters `{.ptr …} {.align n}` behind the type."""
    shape = _Shape(space, linkage)
    shape.align = align
    if space is Space.CONST and cursor.text.startswith("[", cursor.position, cursor.end):
        cursor.position += 1
        shape.bank = constants.count(cursor, "the number of a constant bank")
        cursor.expect("]", "behind the number of a constant bank")
    while True:
        start = cursor.skip()
        word = cursor.dotted()
        typed = shape.type is not None
        if word == "align" and shape.align is None and shape.vector == 1 and (parameter or not typed):
            shape.align = alignment(cursor)
        elif word == "attribute" and shape.vector == 1 and not typed:
            shape.attributes += attributes(cursor)
        elif word == "ptr" and parameter and typed and shape.pointer is None:
            shape.pointer = _pointer(cursor)
        elif word in VECTORS and shape.vector == 1 and not typed:
            shape.vector = VECTORS[word]
        elif word in TYPES and not typed:
            shape.type = word
        elif word is not None:
            cursor.position = start
            cursor.expected("a name in a declaration" if typed else "a type such as .b32 or .f64 in a declaration")
        elif typed:
            return shape
        else:
            cursor.expected("a type such as .b32 in a declaration")


def _pointer(cursor: Cursor) -> tuple[str | None, int | None]:
    """`.ptr{.space}{.align n}` (section 5.1.6.3); only what can follow it is taken."""
    space: str | None = None
    align: int | None = None
    while True:
        start = cursor.skip()
        word = cursor.dotted()
        if word in ("const", "global", "local", "shared") and space is None and align is None:
            space = word
        elif word == "align" and align is None:
            align = alignment(cursor)
        else:
            cursor.position = start
            return space, align


def _declarator(cursor: Cursor, shape: _Shape, *, parameter: bool = False) -> Variable:
    start = cursor.skip()
    name = cursor.identifier("a name in a declaration")
    assert shape.type is not None
    variable = Variable(
        start,
        shape.space,
        name,
        shape.type,
        vector=shape.vector,
        align=shape.align,
        linkage=shape.linkage,
        attributes=shape.attributes,
        pointer=shape.pointer,
        bank=shape.bank,
    )
    if cursor.accept("<"):
        at = cursor.skip()
        variable.count = constants.number(cursor, "the number of registers, as in %r<10>")
        if variable.count >> 31:
            cursor.reject("more registers than any machine has", at)
        cursor.expect(">", "behind the number of registers")
    following = cursor.peek()
    if following == "[":
        dimensions: list[int | None] = []
        total = 1
        while cursor.accept("["):
            if cursor.accept("]"):
                dimensions.append(None)
                continue
            extent = constants.count(cursor, "the size of an array")
            cursor.expect("]", "behind the size of an array")
            dimensions.append(extent)
            total *= max(extent, 1)
            if total >> 48:
                cursor.reject("this array is larger than any memory", start)
        variable.shape = tuple(dimensions)
    if not parameter and cursor.match(_assign) is not None:
        if shape.space not in (Space.GLOBAL, Space.CONST):
            cursor.reject("only variables in .global and .const take an initial value", cursor.position - 1)
        variable.initialiser = _initialiser(cursor)
    return variable


# --- initialisers (section 5.4.4) -------------------------------------------------------------------


class _ElementCache(dict[str, Initialiser]):
    """Text of one element → element; other text raises Reject."""

    __slots__ = ()

    def __missing__(self, text: str) -> Initialiser:
        made = self[text] = self._read(text)
        return made

    def _read(self, text: str) -> Initialiser:
        match = _quick_element.fullmatch(text)
        if match is not None and "WARP_SZ" not in text:
            kind = match.lastgroup
            if kind == "integer":
                return Integer(int(match["integer"]))
            if kind == "single":
                return Float(int(match["single"], 16), 32)
            if kind == "double":
                return Float(int(match["double"], 16), 64)
            return SymbolAddress(match["symbol"])
        cursor = Cursor(text)
        element = _element(cursor)
        if cursor.skip() != len(text):
            raise Reject(cursor.position, "more than one element")
        return element


def _initialiser(cursor: Cursor) -> Initialiser:
    """Read what stands behind `=`: an element, or lists in braces, without recursion."""
    if not cursor.starts("{"):
        return _element(cursor)
    cache = _ElementCache()
    open_lists: list[list[Initialiser]] = []
    while True:
        # Here an element or a list begins.
        done: Initialiser
        if cursor.starts("{"):
            flat = _flat_list(cursor, cache)
            if flat is None:
                if len(open_lists) == _NESTED:
                    cursor.reject("this initialiser is nested too deep", cursor.position)
                cursor.position += 1
                open_lists.append([])
                if not cursor.starts("}"):
                    continue
                done = ()
                open_lists.pop()
                cursor.position += 1
            else:
                done = flat
        else:
            done = _element(cursor)
        # Here something is complete: close what ends with it.
        while True:
            if not open_lists:
                return done
            open_lists[-1].append(done)
            if cursor.accept(","):
                break
            if not cursor.accept("}"):
                cursor.expected("',' or '}' in an initialiser")
            done = tuple(open_lists.pop())


def _flat_list(cursor: Cursor, cache: _ElementCache) -> tuple[Initialiser, ...] | None:
    """Read a list of plain elements at once; None leaves it to the careful way."""
    match = _flat.match(cursor.text, cursor.position, cursor.end)
    if match is None:
        return None
    try:
        found = tuple(map(cache.__getitem__, match[1].split(",")))
    except Reject:
        return None
    cursor.position = match.end()
    return found


def _element(cursor: Cursor) -> Initialiser:
    start = cursor.skip()
    if cursor.match(_generic) is not None:
        return _generic_address(cursor)
    name = cursor.match(_identifier)
    if name is not None:
        if cursor.match(_assign) is None:
            return SymbolAddress(name[0], offset(cursor))
        return _property(cursor, name[0])
    value = constants.constant(cursor, "a constant or a symbol in an initialiser")
    if not cursor.starts("("):
        return value
    if not isinstance(value, Integer) or not _is_byte_mask(value.value):
        cursor.reject("a mask selects one byte: 0xFF, 0xFF00, … 0xFF00000000000000", start)
    cursor.position += 1
    if cursor.match(_generic) is not None:
        address = _generic_address(cursor)
    else:
        address = SymbolAddress(cursor.identifier("a symbol behind a mask"), offset(cursor))
    cursor.expect(")", "behind a masked symbol")
    return SymbolAddress(address.name, address.offset, address.generic, value.value)


def _is_byte_mask(value: int) -> bool:
    return any(value == 0xFF << shift for shift in range(0, 64, 8))


def _generic_address(cursor: Cursor) -> SymbolAddress:
    cursor.expect("(", "behind generic")
    name = cursor.identifier("a symbol in generic()")
    cursor.expect(")", "behind a symbol in generic()")
    return SymbolAddress(name, offset(cursor), True)


def _property(cursor: Cursor, name: str) -> Property:
    word = cursor.match(_identifier)
    if word is not None:
        return Property(name, word[0])
    return Property(name, constants.integer(cursor, "the value of a property"))
