"""Several PTX modules to one: external symbols meet their definitions, what is a file's own stays apart (section 11.6).

The result is PTX text again. Debug sections, `.file` and `.loc` are left out: their numbers belong to one file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from zluda.ptx import functions, parser
from zluda.ptx.layout import SIZES, align_of
from zluda.ptx.lexer import BLANK, IDENTIFIER, Cursor, Reject
from zluda.ptx.source import Source
from zluda.ptx.statements import skip_line
from zluda.ptx.tree import Function, Linkage, Module, Space, Variable

PROVIDED = frozenset(["vprintf", "malloc", "free", "__assertfail"])
"""Functions that CUDA programs call without anybody linking them ("System Calls" of the CUDA Programming Guide)."""

_token = re.compile(
    rf'//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/|"[^"\n]*+"|[.\d][\w.:]*+|(?P<name>{IDENTIFIER})', re.ASCII
)
_separator = re.compile(rf",{BLANK}\Z", re.ASCII)
_location = re.compile(r"^[ \t]*\.loc[ \t][^\n;{}]*$", re.ASCII | re.MULTILINE)
_architecture = re.compile(r"sm_(\d+)(\w*)", re.ASCII)


class LinkError(Exception):
    """Modules that do not fit together: one line for each reason."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = tuple(reasons)


@dataclass(slots=True)
class _Symbol:
    """A declaration or definition at module scope; its text lacks the linking directive."""

    name: str
    linkage: Linkage
    text: str
    thing: Function | Variable
    defined: bool
    prototype: str = ""
    """A device function's header as a declaration."""

    @property
    def local(self) -> bool:
        return self.linkage is Linkage.NONE


@dataclass(slots=True)
class _File:
    """One module, taken apart."""

    name: str
    module: Module
    symbols: list[_Symbol] = field(default_factory=list)
    pragmas: list[str] = field(default_factory=list)
    aliases: list[tuple[str, str]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """A piece of the module under its new names."""
        if not self.renamed:
            return text
        return _token.sub(lambda m: self.renamed.get(m["name"], m[0]) if m["name"] else m[0], text)


def link(modules: Sequence[tuple[str, str]]) -> str:
    """Link modules, given as (name, text); the text of the result.

    Raises LinkError for symbols that are undefined or defined twice and for what does not fit together,
    PtxSyntaxError for text that is no PTX.
    """
    files = [_take_apart(name, text) for name, text in modules]
    reasons: list[str] = []
    kept = _resolve(files, reasons)
    _check_headers(files, reasons)
    if reasons:
        raise LinkError(reasons)
    if len(files) == 1:
        return modules[0][1]
    _rename(files)
    return _write(files, kept)


# --- reading ------------------------------------------------------------------------------------------


def _take_apart(name: str, text: str) -> _File:
    source = Source(text, name)
    cursor = Cursor(text, 0, parser.text_end(text))
    try:
        file = _File(name, Module(source, *parser.module_header(cursor)))
        while first := cursor.peek():
            if first == ".":
                _statement(file, cursor)
            elif not skip_line(cursor):
                cursor.expected("a directive such as .entry, .func or .global")
    except Reject as reject:
        raise parser.syntax_error(source, reject) from None
    aliased = {alias for alias, _ in file.aliases}
    declared = {s.name: s.linkage for s in file.symbols if not s.local}
    for symbol in file.symbols:
        symbol.defined |= symbol.name in aliased
        if symbol.local and symbol.name in declared:  # a definition has the directive of its declaration
            outer = declared[symbol.name]
            symbol.linkage = Linkage.VISIBLE if outer is Linkage.EXTERN else outer
    return file


def _statement(file: _File, cursor: Cursor) -> None:
    text, module, start = cursor.text, file.module, cursor.position
    linkage, word = parser.linked(cursor)
    keyword = cursor.position - len(word or "") - 1
    if word == "entry" or word == "func":
        file.symbols.append(_function(cursor, keyword, linkage, word == "entry"))
        return
    variables, aliases, pragmas = len(module.variables), len(module.aliases), len(module.pragmas)
    parser.statement(cursor, start, linkage, word, module)
    for symbol in _variables(module.variables[variables:], text, keyword, cursor.position):
        file.symbols.append(symbol)
    file.aliases += [(alias.name, alias.target) for alias in module.aliases[aliases:]]
    if len(module.pragmas) > pragmas:
        file.pragmas.append(text[start : cursor.position])


def _function(cursor: Cursor, keyword: int, linkage: Linkage, entry: bool) -> _Symbol:
    read, _ = functions.header(cursor, keyword, linkage, entry)
    header_end = cursor.skip()
    prototype = "" if entry else cursor.text[keyword:header_end].rstrip() + ";"
    defined = cursor.accept("{")
    if defined:
        cursor.skip_braces("this function")
    elif not cursor.accept(";"):
        cursor.expected("'{' or ';' behind a function's header")
    return _Symbol(read.name, linkage, cursor.text[keyword : cursor.position], read, defined, prototype)


def _variables(variables: list[Variable], text: str, keyword: int, end: int) -> list[_Symbol]:
    """A declaration of several names as several declarations."""
    found = []
    for place, variable in enumerate(variables):
        last = place + 1 == len(variables)
        declarator = text[variable.offset : end if last else variables[place + 1].offset]
        if not last:
            declarator = _separator.sub(";", declarator)
        whole = text[keyword : variables[0].offset] + declarator
        found.append(_Symbol(variable.name, variable.linkage, whole, variable, variable.linkage is not Linkage.EXTERN))
    return found


# --- resolving ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Kept:
    """What goes into the result of each global name: its definition, or a declaration where that is all there is."""

    file: _File
    symbol: _Symbol


def _resolve(files: list[_File], reasons: list[str]) -> dict[str, _Kept]:
    """The one definition of each name that files share."""
    found: dict[str, list[_Kept]] = {}
    for file in files:
        own = {s.name for s in file.symbols if s.local and s.defined}
        for symbol in file.symbols:
            # Compilers write forward declarations, without directive, before a file's own functions.
            if not symbol.local or symbol.name not in own:
                found.setdefault(symbol.name, []).append(_Kept(file, symbol))
    kept = {}
    for name, candidates in found.items():
        chosen = _choose(name, candidates, reasons)
        if chosen is not None:
            kept[name] = chosen
    return kept


def _choose(name: str, candidates: list[_Kept], reasons: list[str]) -> _Kept | None:
    definitions = [c for c in candidates if c.symbol.defined]
    strong = [c for c in definitions if c.symbol.linkage not in (Linkage.WEAK, Linkage.COMMON)]
    # An alias and its declaration are one definition.
    if len({id(c.file) for c in strong}) > 1:
        where = " and ".join(f"'{c.file.name}'" for c in strong)
        reasons.append(f"Multiple definition of '{name}' in {where}")
        return None
    common = [c for c in definitions if c.symbol.linkage is Linkage.COMMON]
    if strong:
        chosen = strong[0]
    elif common:
        chosen = _largest(name, common, reasons)
    elif definitions:
        chosen = definitions[0]
    else:
        return _undefined(name, candidates, reasons)
    reasons += [
        f"'{name}' in '{c.file.name}' does not fit its definition in '{chosen.file.name}': {reason}"
        for c in candidates
        if (reason := _mismatch(c.symbol.thing, chosen.symbol.thing))
    ]
    return chosen


def _largest(name: str, common: list[_Kept], reasons: list[str]) -> _Kept:
    """Of common symbols the largest is kept; only that one may have initial values (section 11.6.4)."""

    def size(kept: _Kept) -> int:
        return _bytes(kept.symbol.thing) if isinstance(kept.symbol.thing, Variable) else 0

    initialised = [c for c in common if isinstance(c.symbol.thing, Variable) and c.symbol.thing.initialiser is not None]
    largest = max(size(c) for c in common)
    if len(initialised) > 1:
        where = " and ".join(f"'{c.file.name}'" for c in initialised)
        reasons.append(f"Common symbol '{name}' has initial values in {where}: only one file may give them")
    if initialised and size(initialised[0]) < largest:
        where = initialised[0].file.name
        reasons.append(f"Common symbol '{name}' has initial values in '{where}', but is larger elsewhere")
    return initialised[0] if initialised else next(c for c in common if size(c) == largest)


def _undefined(name: str, candidates: list[_Kept], reasons: list[str]) -> _Kept | None:
    """Nobody defines it: dynamic shared memory, a system call, a declaration that nobody uses, or an error."""
    things = [c.symbol.thing for c in candidates]
    if all(isinstance(thing, Variable) and thing.space is Space.SHARED for thing in things):
        return max(candidates, key=lambda c: align_of(c.symbol.thing) if isinstance(c.symbol.thing, Variable) else 0)
    if name in PROVIDED:
        return candidates[0]
    for file in dict.fromkeys(id(c.file) for c in candidates):
        user = next(c.file for c in candidates if id(c.file) == file)
        if _mentioned(user, name):
            reasons.append(f"Undefined reference to '{name}' in '{user.name}'")
    return None


def _mentioned(file: _File, name: str) -> bool:
    texts = [s.text for s in file.symbols if s.defined and s.name != name]
    return any(name in text and any(m["name"] == name for m in _token.finditer(text)) for text in texts) or any(
        target == name for _, target in file.aliases
    )


def _mismatch(declared: Function | Variable, defined: Function | Variable) -> str:
    """How a declaration contradicts the definition, or nothing."""
    if _kind(declared) != _kind(defined):
        return f"declared as a {_kind(declared)}, defined as a {_kind(defined)}"
    if isinstance(declared, Function) and isinstance(defined, Function) and _shape(declared) != _shape(defined):
        return "declared and defined with different parameters"
    return ""


def _kind(thing: Function | Variable) -> str:
    if isinstance(thing, Variable):
        return f".{thing.space.value} variable"
    return "kernel" if thing.entry else "function"


def _shape(function: Function) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of what a function takes and returns. Bytes; 0 for what has none."""
    return tuple(map(_bytes, function.parameters)), tuple(map(_bytes, function.returns))


def _bytes(variable: Variable) -> int:
    return SIZES.get(variable.type, 0) * variable.vector * math.prod(extent or 0 for extent in variable.shape)


def _check_headers(files: list[_File], reasons: list[str]) -> None:
    sizes = {file.module.address_size for file in files}
    if len(sizes) > 1:
        reasons.append("; ".join(f"'{f.name}' has addresses of {f.module.address_size} bits" for f in files))
    for mode in ("texmode_unified", "texmode_independent"):
        having = sum(mode in file.module.targets for file in files)
        if mode == "texmode_independent" and 0 < having < len(files):
            reasons.append("some of the modules are .target texmode_independent, others are not")


# --- writing ------------------------------------------------------------------------------------------


def _rename(files: list[_File]) -> None:
    """Give what is a file's own another name where files would clash."""
    taken = {symbol.name for file in files for symbol in file.symbols if not symbol.local}
    words = {m["name"] for file in files for m in _token.finditer(file.module.source.text) if m["name"]}
    for file in files:
        for name in dict.fromkeys(s.name for s in file.symbols if s.local and s.defined):
            if name in taken:
                number = 2
                while f"{name}__{number}" in words:
                    number += 1
                file.renamed[name] = f"{name}__{number}"
                words.add(file.renamed[name])
            taken.add(name)


def _header(files: list[_File]) -> list[str]:
    version = max(file.module.version for file in files)
    targets = [target for file in files for target in file.module.targets]
    newest = max((m for t in targets if (m := _architecture.fullmatch(t))), key=lambda m: int(m[1]), default=None)
    others = dict.fromkeys(t for t in targets if not _architecture.fullmatch(t) and t != "debug")
    named = [newest[0]] if newest else []
    return [
        f".version {version[0]}.{version[1]}",
        f".target {', '.join([*named, *others])}",
        f".address_size {files[0].module.address_size}",
    ]


def _linked(linkage: Linkage) -> str:
    return f".{linkage.value} " if linkage is not Linkage.NONE else ""


def _write(files: list[_File], kept: dict[str, _Kept]) -> str:
    prototypes: list[str] = []
    variables: list[str] = []
    bodies: list[str] = []
    aliases: list[str] = []
    for file in files:
        bodies.append(f"// {file.name}".replace("\n", " "))
        for symbol in file.symbols:
            chosen = kept.get(symbol.name)
            if not (symbol.local and symbol.defined) and (chosen is None or chosen.symbol is not symbol):
                continue
            directive = _linked(symbol.linkage)
            if symbol.prototype:
                prototypes.append(directive + file.text(symbol.prototype))
            if isinstance(symbol.thing, Variable):
                variables.append(directive + file.text(symbol.text))
            elif symbol.text.endswith("}"):
                bodies.append(directive + _location.sub("", file.text(symbol.text)))
        aliases += [f".alias {file.text(name)}, {file.text(target)};" for name, target in file.aliases]
    pragmas = [pragma for file in files for pragma in file.pragmas]
    return "\n".join([*_header(files), *pragmas, *prototypes, *variables, *bodies, *aliases, ""])
