"""Headers of `.entry` and `.func`: name, parameters, directives (section 11.2)."""

from __future__ import annotations

from zluda.ptx import declarations
from zluda.ptx.directives import ENTRY_DIRECTIVES, FUNC_DIRECTIVES, function_directive, pragma
from zluda.ptx.lexer import Cursor, Reject
from zluda.ptx.statements import Caches, body
from zluda.ptx.tree import Function, Linkage, Pragma


def header(cursor: Cursor, start: int, linkage: Linkage, entry: bool) -> tuple[Function, list[Pragma]]:
    """Read a header behind `.entry` or `.func`, up to the `{` or `;` that comes next, with its pragmas."""
    directives: list[tuple[str, tuple[int, ...]]] = []
    pragmas: list[Pragma] = []
    at = cursor.skip()
    if not entry and cursor.dotted() == "attribute":
        directives += declarations.attributes(cursor)
    else:
        cursor.position = at
    returns = () if entry or not cursor.accept("(") else declarations.parameters(cursor)
    name = cursor.identifier("a kernel's name" if entry else "a function's name")
    known = ENTRY_DIRECTIVES if entry else FUNC_DIRECTIVES
    try:
        parameters = declarations.parameters(cursor) if cursor.accept("(") else ()
        while cursor.peek() == ".":
            at = cursor.position
            word = cursor.dotted() or ""
            if word == "pragma":
                pragmas.append(pragma(cursor, at))
            elif word in known:
                directives.append(function_directive(cursor, word, known[word]))
            else:
                cursor.position = at
                cursor.expected(f"the body or a directive such as .{next(iter(known))}")
    except Reject as reject:
        reject.function = name
        raise
    return Function(start, name, entry, parameters, returns, linkage, tuple(directives)), pragmas


def function(cursor: Cursor, start: int, linkage: Linkage, entry: bool, caches: Caches) -> Function:
    """Read a declaration or definition behind `.entry` or `.func`."""
    read, pragmas = header(cursor, start, linkage, entry)
    try:
        if cursor.accept("{"):
            read.body = [*pragmas, *body(cursor, caches)] if pragmas else body(cursor, caches)
        elif not cursor.accept(";"):
            cursor.expected("'{' or ';' behind a function's header")
    except Reject as reject:
        reject.function = read.name
        raise
    read.end = cursor.position
    return read
