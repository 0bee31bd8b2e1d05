"""PTX text to syntax tree, for the whole grammar of PTX ISA 9.0, whatever can be lowered."""

from __future__ import annotations

from zluda.ptx import declarations, directives, functions
from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.lexer import Cursor, Reject
from zluda.ptx.source import Source
from zluda.ptx.statements import Caches, skip_line
from zluda.ptx.tree import Function, Linkage, Module


def parse_module(text: str, name: str = "<ptx>") -> Module:
    """Parse a whole module; `name` stands in messages.

    NULs and blanks at the end are passed over. Raises PtxSyntaxError.
    """
    source = Source(text, name)
    cursor = Cursor(text, 0, text_end(text))
    try:
        return _module(cursor, source)
    except Reject as reject:
        raise syntax_error(source, reject) from None


def parse_function(source: Source, start: int, end: int, caches: Caches | None = None) -> Function:
    """Parse the one function between two offsets of a module, its linking directives included.

    `caches` may be shared by the functions of a module. Raises PtxSyntaxError.
    """
    cursor = Cursor(source.text, start, end)
    try:
        at = cursor.skip()
        linkage, word = linked(cursor)
        if word not in ("entry", "func"):
            cursor.position = at
            cursor.expected("'.entry' or '.func'")
        function = functions.function(cursor, at, linkage, word == "entry", caches or Caches())
        if cursor.peek():
            cursor.expected("the end of the function")
        return function
    except Reject as reject:
        raise syntax_error(source, reject) from None


def text_end(text: str) -> int:
    """Where the text ends, without the NULs that containers put behind it."""
    return len(text.rstrip("\0 \t\r\n"))


def syntax_error(source: Source, reject: Reject) -> PtxSyntaxError:
    """A Reject with its place in the module."""
    return PtxSyntaxError(source, reject.offset, reject.message, function=reject.function, hint=reject.hint)


def linked(cursor: Cursor) -> tuple[Linkage, str | None]:
    """Read linking directives and the directive behind them."""
    linkage = Linkage.NONE
    while True:
        start = cursor.skip()
        word = cursor.dotted()
        if word not in declarations.LINKAGES:
            return linkage, word
        if linkage is not Linkage.NONE:
            cursor.reject(f".{word} behind .{linkage.value}: a symbol has one linking directive", start)
        linkage = declarations.LINKAGES[word]


def module_header(cursor: Cursor) -> tuple[tuple[int, int], tuple[str, ...], int]:
    """Read `.version`, `.target` and, where given, `.address_size`: version, targets, address size."""
    while cursor.peek() in ("#", "@") and skip_line(cursor):
        pass
    start = cursor.position
    if cursor.dotted() != "version":
        cursor.position = start
        cursor.expected("'.version': a module starts with it")
    version = directives.version(cursor)
    while cursor.peek() in ("#", "@") and skip_line(cursor):
        pass
    start = cursor.position
    if cursor.dotted() != "target":
        cursor.position = start
        cursor.expected("'.target' behind '.version'")
    targets = directives.targets(cursor)
    start = cursor.skip()
    if cursor.dotted() == "address_size":
        return version, targets, directives.address_size(cursor)
    cursor.position = start
    return version, targets, 32


def _module(cursor: Cursor, source: Source) -> Module:
    module = Module(source, *module_header(cursor))
    caches = Caches()
    while first := cursor.peek():
        start = cursor.position
        if first != ".":
            if not skip_line(cursor):
                cursor.expected("a directive such as .entry, .func or .global")
            continue
        linkage, word = linked(cursor)
        if word == "entry" or word == "func":
            module.functions.append(functions.function(cursor, start, linkage, word == "entry", caches))
        else:
            statement(cursor, start, linkage, word, module)
    return module


def statement(cursor: Cursor, start: int, linkage: Linkage, word: str | None, module: Module) -> None:
    """Read what stands at module scope and is no function, behind its first directive, into `module`."""
    align = None
    if word == "align":
        align = declarations.alignment(cursor)
        word = cursor.dotted()
        if word not in declarations.SPACES:
            cursor.reject("expected a state space behind .align", start)
    if word in declarations.SPACES:
        module.variables += declarations.variables(cursor, declarations.SPACES[word], linkage, align)
    elif linkage is not Linkage.NONE:
        cursor.position = start
        cursor.reject(f"expected .entry, .func or a state space behind .{linkage.value}", start)
    elif word == "file":
        index, path = directives.file(cursor)
        module.files[index] = path
    elif word == "section":
        directives.skip_section(cursor)
    elif word == "pragma":
        module.pragmas.append(directives.pragma(cursor, start))
    elif word == "alias":
        module.aliases.append(directives.alias(cursor, start))
    elif word == "target":
        more = directives.targets(cursor)
        module.targets += tuple(target for target in more if target not in module.targets)
    elif word == "version" or word == "address_size":
        cursor.reject(f".{word} belongs at the start of the module", start)
    else:
        cursor.position = start
        cursor.expected("a directive that may stand outside functions")
