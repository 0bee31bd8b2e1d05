"""Functions and the directives at module scope (section 11)."""

from __future__ import annotations

import re

from zluda.ptx import constants
from zluda.ptx.lexer import Cursor
from zluda.ptx.tree import Alias, Pragma

ENTRY_DIRECTIVES = {
    "maxntid": 3,
    "reqntid": 3,
    "minnctapersm": 1,
    "maxnctapersm": 1,
    "maxnreg": 1,
    "reqnctapercluster": 3,
    "explicitcluster": 0,
    "maxclusterrank": 1,
    "blocksareclusters": 0,
}
"""Directives between a kernel's parameters and its body → how many numbers they take at most; one where not none."""

FUNC_DIRECTIVES = {"noreturn": 0, "abi_preserve": 1, "abi_preserve_control": 1}
"""The same for `.func` and `.callprototype`."""

_version = re.compile(r"(\d{1,4})\.(\d{1,4})(?![\w.])", re.ASCII)
_target = re.compile(r"\w++", re.ASCII)
_section_name = re.compile(r"\.?[\w.$]++", re.ASCII)


def function_directive(cursor: Cursor, name: str, most: int) -> tuple[str, tuple[int, ...]]:
    """Read the numbers of a performance-tuning, cluster or ABI directive, `most` at most."""
    numbers: list[int] = []
    while len(numbers) < most and (not numbers or cursor.accept(",")):
        numbers.append(constants.number(cursor, f"a number behind .{name}"))
    return name, tuple(numbers)


def pragma(cursor: Cursor, start: int) -> Pragma:
    """`.pragma "text", …;` (section 11.4.8)."""
    texts = [cursor.string("a string behind .pragma")]
    while cursor.accept(","):
        texts.append(cursor.string("a string behind .pragma"))
    cursor.expect(";", "behind .pragma")
    return Pragma(start, tuple(texts))


def alias(cursor: Cursor, start: int) -> Alias:
    """`.alias name, target;` (section 11.6.5)."""
    name = cursor.identifier("a function's name behind .alias")
    cursor.expect(",", "between the names of .alias")
    target = cursor.identifier("the aliased function's name")
    cursor.expect(";", "behind .alias")
    return Alias(start, name, target)


def version(cursor: Cursor) -> tuple[int, int]:
    """The number behind `.version`."""
    match = cursor.match(_version)
    if match is None:
        cursor.expected("a version such as 9.0")
    return int(match[1]), int(match[2])


def targets(cursor: Cursor) -> tuple[str, ...]:
    """The list behind `.target`."""
    found: list[str] = []
    while True:
        match = cursor.match(_target)
        if match is None:
            cursor.expected("a target such as sm_75")
        found.append(match[0])
        if not cursor.accept(","):
            return tuple(found)


def address_size(cursor: Cursor) -> int:
    """The number behind `.address_size`."""
    start = cursor.skip()
    size = constants.number(cursor, "32 or 64")
    if size not in (32, 64):
        cursor.reject(f"an address size is 32 or 64, not {size}", start)
    return size


def file(cursor: Cursor) -> tuple[int, str]:
    """The index and name behind `.file`; time stamp and size are passed over."""
    index = constants.number(cursor, "the index of a file")
    name = cursor.string("the name of a file")
    while cursor.accept(","):
        constants.number(cursor, "the time stamp or size of a file")
    return index, name


def skip_section(cursor: Cursor) -> None:
    """Pass the name and the braces of a debugging section (section 11.5.4)."""
    if cursor.match(_section_name) is None:
        cursor.expected("the name of a section")
    cursor.expect("{", "before a section's data")
    cursor.skip_braces("this section")
