"""Headers of `.entry` and `.func`: name, parameters, directives (section 11.2)."""

from __future__ import annotations

from zluda.ptx import declarations
from zluda.ptx.directives import FUNCTION_DIRECTIVES, function_directive, pragma
from zluda.ptx.lexer import Cursor, Reject
from zluda.ptx.statements import Caches, body
from zluda.ptx.tree import Function, Linkage, Pragma


def header(cursor: Cursor, start: int, linkage: Linkage, entry: bool) -> tuple[Function, list[Pragma]]:
    """Read a header behind `.entry` or `.func`, up to the `{` or `;` that comes next, with its pragmas."""
    directives: list[tuple[str, tuple[int, ...]]] = []
    pragmas: list[Pragma] = []

    def read_directives() -> None:
        while cursor.peek() == ".":
            at = cursor.position
            word = cursor.dotted() or ""
            if word == "attribute":
                directives.extend(declarations.attributes(cursor))
            elif word == "pragma":
                pragmas.append(pragma(cursor, at))
            elif word in FUNCTION_DIRECTIVES:
                directives.append(function_directive(cursor, word))
            else:
                cursor.position = at
                cursor.expected("a directive such as .maxntid, or the body")

    read_directives()
    returns = () if entry or not cursor.accept("(") else declarations.parameters(cursor)
    read_directives()
    name = cursor.identifier("a kernel's name" if entry else "a function's name")
    try:
        read_directives()
        parameters = declarations.parameters(cursor) if cursor.accept("(") else ()
        read_directives()
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
