"""The statements of a function body: instructions, labels, blocks and the directives among them (section 4.3)."""

from __future__ import annotations

import re

from zluda.ptx import constants, declarations
from zluda.ptx.directives import ENTRY_DIRECTIVES, FUNC_DIRECTIVES, function_directive, pragma
from zluda.ptx.lexer import BLANK, IDENTIFIER, Cursor, Reject
from zluda.ptx.operands import GuardCache, OpcodeCache, OperandCache, offset, operands
from zluda.ptx.tree import (
    Block,
    Instruction,
    Label,
    Location,
    Operand,
    Prototype,
    Space,
    Statement,
    Targets,
    Variable,
)

DEEPEST_BLOCK = 100
"""Blocks nested deeper than this are refused, so that whoever walks the tree may recurse."""

# One match for the statements that make up compiled code. What does not fit exactly goes through `_Body.careful`,
# which holds the whole grammar and the error messages.
_NUMBER = r"(?:0|[1-9]\d{0,8}+)"
_common = re.compile(
    rf"""{BLANK}(?:
      (@!?{IDENTIFIER}[ \t]++)?([a-z]\w*+(?:\.\w++(?:::\w++)*)*)(?:\s++|(?=;))([^;:/"@]*+);
    | ({IDENTIFIER}):(?!:|\s*+(?:/|\.[bc]))
    | ([{{}}])
    | \.(reg|param)\s++(?:\.align\s++(1|2|4|8|16)\s++)?\.(pred|[bsu](?:8|16|32|64)|f(?:16|32|64))\s++
      ({IDENTIFIER})(?:<({_NUMBER})>)?(?:\[({_NUMBER})\])?;
    | \.loc\s++({_NUMBER})\s++({_NUMBER})\s++({_NUMBER})
      (?:,\s*+function_name\s++({IDENTIFIER})\s*+,\s*+inlined_at\s++({_NUMBER})\s++({_NUMBER})\s++({_NUMBER}))?
      (?=\s++(?:[^\s,/+]|//[^\n]*+\n\s*+[^\s,/+]))
    )""",
    re.ASCII | re.VERBOSE,
)
_OPERANDS, _LABEL, _BRACE, _DECLARATION = 3, 4, 5, (9, 10, 11)

# Operands of an instruction where some are in brackets: no bracket inside another one of its kind.
_split = re.compile(r"(?:[^,{}()\[\]]++|\{[^{}]*+\}|\[(?:[^{}\[\]]++|\{[^{}]*+\})*\]|\([^()]*+\))+")

_label = re.compile(rf"({IDENTIFIER}){BLANK}:(?!:)", re.ASCII)
_line_marker = re.compile(r'#[ \t]*+(?:(?:line|file)[ \t]++)?\d++(?:[ \t]++"[^"\n]*+")?[ \t\d\r]*+(?=\n|\Z)', re.ASCII)
_function_name = re.compile(r"function_name(?![\w$])", re.ASCII)
_inlined_at = re.compile(r"inlined_at(?![\w$])", re.ASCII)


class Caches:
    """Pieces of text that were read before; good for all functions of a module."""

    __slots__ = ("guards", "opcodes", "operands")

    def __init__(self) -> None:
        self.operands = OperandCache()
        self.opcodes = OpcodeCache()
        self.guards = GuardCache()


def body(cursor: Cursor, caches: Caches) -> list[Statement]:
    """Read a body behind its opening brace, and the closing one."""
    return _Body(cursor, caches).read()


class _Body:
    __slots__ = ("blocks", "caches", "cursor", "statements")

    def __init__(self, cursor: Cursor, caches: Caches) -> None:
        self.cursor = cursor
        self.caches = caches
        self.statements: list[Statement] = []
        self.blocks: list[list[Statement]] = []

    def read(self) -> list[Statement]:
        cursor = self.cursor
        text, end = cursor.text, cursor.end
        position = cursor.position
        match_common = _common.match
        operand_of = self.caches.operands.__getitem__
        opcode_of = self.caches.opcodes.__getitem__
        guard_of = self.caches.guards.__getitem__
        append = self.statements.append
        while True:
            match = match_common(text, position, end)
            if match is not None:
                kind = match.lastindex
                if kind == _OPERANDS:
                    guard, opcode, rest = match.group(1, 2, 3)
                    try:
                        if not rest:
                            items: tuple[Operand, ...] = ()
                        elif "{" in rest or "(" in rest:
                            items = tuple(map(operand_of, _pieces(rest, opcode)))
                        else:
                            items = tuple(map(operand_of, rest.split(",")))
                    except Reject:
                        pass  # the careful way reads it, or says what is wrong and where
                    else:
                        if guard is None:
                            append(Instruction(match.start(2), opcode_of(opcode), items))
                        else:
                            append(Instruction(match.start(1), opcode_of(opcode), items, guard_of(guard.rstrip())))
                        position = match.end()
                        continue
                else:
                    if kind == _LABEL:
                        append(Label(match.start(4), match[4]))
                    elif kind == _BRACE:
                        if self.brace(match.start(5)):
                            cursor.position = match.end()
                            return self.statements
                        append = self.statements.append
                    elif kind in _DECLARATION:
                        append(_quick_declaration(match))
                    else:
                        append(_quick_location(match))
                    position = match.end()
                    continue
            cursor.position = position
            if self.careful():
                return self.statements
            position = cursor.position
            append = self.statements.append

    def careful(self) -> bool:
        """Read one statement of any kind; True at the end of the body."""
        cursor = self.cursor
        first = cursor.peek()
        start = cursor.position
        if first == "{" or first == "}":
            cursor.position += 1
            return self.brace(start)
        if first == ".":
            self.directive()
        elif not skip_line_marker(cursor):
            label = cursor.match(_label)
            if label is None:
                self.instruction()
            else:
                self.statements.append(self.labelled(start, label[1]))
        return False

    def brace(self, offset: int) -> bool:
        """Open or close a block; True at the end of the body."""
        if self.cursor.text[offset] == "}":
            if not self.blocks:
                return True
            self.statements = self.blocks.pop()
            return False
        if len(self.blocks) == DEEPEST_BLOCK:
            self.cursor.reject("blocks are nested too deep", offset)
        block = Block(offset, [])
        self.statements.append(block)
        self.blocks.append(self.statements)
        self.statements = block.statements
        return False

    def instruction(self) -> None:
        cursor = self.cursor
        start = cursor.skip()
        guard = None
        if cursor.accept("@"):
            sign = "@!" if cursor.accept("!") else "@"
            guard = self.caches.guards[sign + cursor.identifier("a predicate behind '@'")]
        name = cursor.identifier("an instruction, a directive, a label or '}'")
        words = [name]
        while (modifier := cursor.dotted()) is not None:
            words.append(modifier)
        found = operands(cursor, group=name == "call")
        self.statements.append(Instruction(start, self.caches.opcodes[".".join(words)], found, guard))

    def directive(self) -> None:
        cursor = self.cursor
        start = cursor.position
        name = cursor.dotted()
        align = None
        if name == "align":
            align = declarations.alignment(cursor)
            name = cursor.dotted()
        if name in declarations.SPACES:
            self.statements += declarations.variables(cursor, declarations.SPACES[name], align=align)
        elif align is not None:
            cursor.expected("a state space behind .align")
        elif name == "loc":
            self.statements.append(_location(cursor, start))
        elif name == "pragma":
            self.statements.append(pragma(cursor, start))
        elif name in declarations.LINKAGES:
            cursor.reject(f".{name} belongs outside functions", start)
        elif name in ENTRY_DIRECTIVES or name in FUNC_DIRECTIVES:
            cursor.reject(f".{name} belongs between the parameters and the body", start)
        else:
            cursor.position = start
            cursor.expected("an instruction, a label, '}' or a directive that may stand in a body")

    def labelled(self, start: int, name: str) -> Statement:
        """What stands behind `name:`, when it is a directive that the label names."""
        cursor = self.cursor
        after = cursor.position
        if cursor.peek() == ".":
            kind = cursor.dotted()
            if kind == "callprototype":
                return _prototype(cursor, start, name)
            if kind == "branchtargets" or kind == "calltargets":
                targets = [cursor.identifier(f"a name in .{kind}")]
                while cursor.accept(","):
                    targets.append(cursor.identifier(f"a name in .{kind}"))
                cursor.expect(";", f"behind .{kind}")
                return Targets(start, name, kind, tuple(targets))
            cursor.position = after
        return Label(start, name)


def skip_line_marker(cursor: Cursor) -> bool:
    """Pass `#line 5 "a.cu"` or `# 5 "a.cu"`, which the C preprocessor leaves; reject its directives."""
    start = cursor.skip()
    if not cursor.starts("#"):
        return False
    if cursor.match(_line_marker) is None:
        cursor.reject("a preprocessor directive", start, "run the text through the C preprocessor first")
    return True


def skip_line(cursor: Cursor) -> bool:
    """Pass a line marker, or a line of old debugging data, `@@DWARF …` (section 11.5.1)."""
    if not cursor.starts("@@DWARF"):
        return skip_line_marker(cursor)
    end = cursor.text.find("\n", cursor.position, cursor.end)
    cursor.position = cursor.end if end < 0 else end
    return True


def _pieces(rest: str, opcode: str) -> list[str]:
    """Split operands at the commas outside brackets; Reject when only the careful way can."""
    if "(" in rest and not (opcode == "call" or opcode.startswith("call.")):
        raise Reject(0, "a constant expression")
    pieces = _split.findall(rest)
    if ",".join(pieces) != rest:
        raise Reject(0, "brackets that do not match")
    return pieces


def _quick_declaration(match: re.Match[str]) -> Variable:
    space, align, kind, name, count, extent = match.group(6, 7, 8, 9, 10, 11)
    return Variable(
        match.start(9),
        Space.REG if space == "reg" else Space.PARAM,
        name,
        kind,
        shape=() if extent is None else (int(extent),),
        align=None if align is None else int(align),
        count=None if count is None else int(count),
    )


def _quick_location(match: re.Match[str]) -> Location:
    file, line, column, function, at_file, at_line, at_column = match.group(12, 13, 14, 15, 16, 17, 18)
    inlined = None if function is None else (int(at_file), int(at_line), int(at_column))
    start = match.string.rindex(".loc", match.start(), match.start(12))
    return Location(start, int(file), int(line), int(column), function, inlined)


def _location(cursor: Cursor, start: int) -> Location:
    """`.loc file line column {, function_name label {+ n}, inlined_at file line column}` (section 11.5.3)."""
    location = Location(start, *_place(cursor))
    if cursor.accept(","):
        if cursor.match(_function_name) is None:
            cursor.expected("function_name")
        location.function = cursor.identifier("a label behind function_name")
        location.function_offset = offset(cursor)
        cursor.expect(",", "before inlined_at")
        if cursor.match(_inlined_at) is None:
            cursor.expected("inlined_at")
        location.inlined_at = _place(cursor)
    return location


def _place(cursor: Cursor) -> tuple[int, int, int]:
    file, line, column = (constants.number(cursor, f"the {what} of .loc") for what in ("file", "line", "column"))
    return file, line, column


def _prototype(cursor: Cursor, start: int, name: str) -> Prototype:
    """`.callprototype {(returns)} _ {(parameters)} {.noreturn} {.abi_preserve n} …;` (section 11.3.3)."""
    returns = declarations.parameters(cursor) if cursor.accept("(") else ()
    cursor.identifier("'_' in .callprototype")
    parameters = declarations.parameters(cursor) if cursor.accept("(") else ()
    found: list[tuple[str, tuple[int, ...]]] = []
    while not cursor.accept(";"):
        at = cursor.position
        word = cursor.dotted()
        if word not in FUNC_DIRECTIVES:
            cursor.position = at
            cursor.expected("';' behind .callprototype")
        found.append(function_directive(cursor, word, FUNC_DIRECTIVES[word]))
    noreturn = ("noreturn", ()) in found
    kept = tuple(directive for directive in found if directive[0] != "noreturn")
    return Prototype(start, name, returns, parameters, noreturn, kept)
