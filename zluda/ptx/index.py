"""What a module holds and what reaches what, found by a fast scan; functions are parsed when asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from zluda.ptx import functions, parser
from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.lexer import BLANK, IDENTIFIER, Cursor, Reject
from zluda.ptx.source import Source
from zluda.ptx.statements import Caches, skip_line
from zluda.ptx.tree import Function, Initialiser, Linkage, Module, SymbolAddress, Variable

# A header in compiled code: `(returns) name`, then no string and no comment up to the body or the semicolon.
_header = re.compile(rf'{BLANK}(?:\([^()"/]*+\){BLANK})?({IDENTIFIER})[^{{}};"/]*+([{{;])', re.ASCII)

_PASSED = r"""//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/|"[^"\n]*+"|[.\d][\w.:]*+|[^\w$%."/]++"""

# Names that a function's text mentions, one a match, the rest passed over. A word before a dot is an opcode or a
# register with a component. Words that start with % are registers, unless the module itself has such a name.
_mentions = re.compile(rf"(?:{_PASSED}|%[\w$]*+|[A-Za-z_$][\w$]*+\.[\w.:]*+)*([A-Za-z_$][\w$]*+)?", re.ASCII)
_mentions_with_percent = re.compile(rf"(?:{_PASSED}|{IDENTIFIER}\.[\w.:]*+)*({IDENTIFIER})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """Where a function stands: `text[start:end]` is all of it, linking directives included."""

    name: str
    entry: bool
    linkage: Linkage
    start: int
    end: int
    defined: bool
    """False for a declaration without body."""


class Reachable(NamedTuple):
    """What a kernel may use."""

    functions: tuple[str, ...]
    """The kernel first, then functions as they are met, declared-only ones and both names of an alias included."""
    variables: frozenset[str]
    """Variables of module scope."""


class ModuleIndex:
    """The names of a module, its variables, and its functions on demand. Made by `index_module`."""

    def __init__(self, module: Module) -> None:
        self.module = module
        """Header, variables, aliases, files and pragmas; its `functions` stay empty."""
        self.source = module.source
        self.functions: dict[str, Span] = {}
        """Entries and device functions in the order they first appear; a definition replaces its declarations."""
        self.variables: dict[str, Variable] = {}
        """Variables of module scope; a definition replaces its `.extern` declarations."""
        self.aliases: dict[str, str] = {}
        self._caches = Caches()
        self._parsed: dict[str, Function] = {}
        self._signatures: dict[str, Function] = {}
        self._mentioned: dict[str, tuple[str, ...]] = {}
        self._has_percent = False

    @property
    def version(self) -> tuple[int, int]:
        """Of `.version`, such as (9, 0)."""
        return self.module.version

    @property
    def targets(self) -> tuple[str, ...]:
        """The operands of `.target`."""
        return self.module.targets

    @property
    def address_size(self) -> int:
        """32 or 64."""
        return self.module.address_size

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the kernels that have a body, in order."""
        return tuple(span.name for span in self.functions.values() if span.entry and span.defined)

    def text(self, name: str) -> str:
        """The text of a function. Raises KeyError."""
        span = self.functions[name]
        return self.source.text[span.start : span.end]

    def function(self, name: str) -> Function:
        """A function's tree, parsed at first use. Raises KeyError and PtxSyntaxError."""
        if name not in self._parsed:
            span = self.functions[name]
            self._parsed[name] = parser.parse_function(self.source, span.start, span.end, self._caches)
        return self._parsed[name]

    def entry_signature(self, name: str) -> Function:
        """A kernel's or function's header: parameters and directives, no body. Raises KeyError and PtxSyntaxError."""
        if name not in self._signatures:
            self._signatures[name] = self._signature(self.functions[name])
        return self._signatures[name]

    def _signature(self, span: Span) -> Function:
        cursor = Cursor(self.source.text, span.start, span.end)
        try:
            linkage, word = parser.linked(cursor)
            read, _ = functions.header(cursor, span.start, linkage, word == "entry")
        except Reject as reject:
            raise parser.syntax_error(self.source, reject) from None
        read.end = span.end
        return read

    def reachable(self, name: str) -> Reachable:
        """What a function may use, through calls, addresses, call targets and variables' initial values.

        Found from the names that the text mentions, so a local name that hides one of module scope counts as that
        one: the answer can hold too much, never too little. Raises KeyError.
        """
        met: dict[str, None] = {}
        variables: set[str] = set()
        waiting = [self.functions[name].name]
        while waiting:
            current = waiting.pop()
            if current in met or current in variables:
                continue
            if current in self.functions or current in self.aliases:
                met[current] = None
            else:
                variables.add(current)
            waiting.extend(reversed(self._mentions(current)))
        return Reachable(tuple(met), frozenset(variables))

    def _mentions(self, name: str) -> tuple[str, ...]:
        """Names of module scope that a function, variable or alias mentions, each once, in order."""
        known = self._mentioned.get(name)
        if known is None:
            known = self._mentioned[name] = tuple(dict.fromkeys(self._find_mentions(name)))
        return known

    def _find_mentions(self, name: str) -> Iterator[str]:
        words: Iterator[str] = iter(())
        if name in self.functions:
            span = self.functions[name]
            pattern = _mentions_with_percent if self._has_percent else _mentions
            words = iter(pattern.findall(self.source.text, span.start, span.end))
        elif name in self.variables:
            words = _symbols(self.variables[name].initialiser)
        if name in self.aliases:
            yield self.aliases[name]
        for word in words:
            if word != name and (word in self.functions or word in self.variables or word in self.aliases):
                yield word


def index_module(text: str, name: str = "<ptx>") -> ModuleIndex:
    """Index a module without parsing its functions; `name` stands in messages.

    What is wrong inside a body is found when the function is parsed. Raises PtxSyntaxError.
    """
    source = Source(text, name)
    cursor = Cursor(text, 0, parser.text_end(text))
    try:
        return _scan(cursor, source)
    except Reject as reject:
        raise parser.syntax_error(source, reject) from None


def _scan(cursor: Cursor, source: Source) -> ModuleIndex:
    index = ModuleIndex(Module(source, *parser.module_header(cursor)))
    module = index.module
    while first := cursor.peek():
        start = cursor.position
        if first != ".":
            if not skip_line(cursor):
                cursor.expected("a directive such as .entry, .func or .global")
            continue
        linkage, word = parser.linked(cursor)
        if word == "entry" or word == "func":
            span = _span(cursor, start, linkage, word == "entry")
            before = index.functions.get(span.name)
            if before is None or not before.defined:
                index.functions[span.name] = span
            elif span.defined:
                raise PtxSyntaxError(source, start, f"{span.name} is defined twice")
        else:
            parser.statement(cursor, start, linkage, word, module)
    for variable in module.variables:
        earlier = index.variables.get(variable.name)
        if earlier is None or earlier.linkage is Linkage.EXTERN:
            index.variables[variable.name] = variable
    index._has_percent = any(name.startswith("%") for name in (*index.functions, *index.variables))
    index.aliases = {alias.name: alias.target for alias in module.aliases}
    return index


def _span(cursor: Cursor, start: int, linkage: Linkage, entry: bool) -> Span:
    behind = cursor.position
    match = cursor.match(_header)
    if match is not None:
        name = match[1]
        opened = match[2] == "{"
    else:
        cursor.position = behind
        read, _ = functions.header(cursor, start, linkage, entry)
        name = read.name
        opened = cursor.accept("{")
        if not opened and not cursor.accept(";"):
            cursor.expected("'{' or ';' behind a function's header")
    if opened:
        try:
            cursor.skip_braces("this function")
        except Reject as reject:
            reject.function = name
            raise
    return Span(name, entry, linkage, start, cursor.position, opened)


def _symbols(value: Initialiser | None) -> Iterator[str]:
    """Names in an initialiser, whatever its depth."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, SymbolAddress):
            yield item.name
        elif isinstance(item, tuple):
            waiting.extend(reversed(item))
