"""A quick look over LLVM IR text for the lint: functions, calls, attributes, without LLVM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_DEFINE = re.compile(r'^(?:define|declare)\b[^@]*@("[^"]*"|[\w.$-]+)\s*\(')
_CALL = re.compile(r'\b(?:call|invoke)\b[^@]*?@("[^"]*"|[\w.$-]+)\s*\(')
_CALLEE = re.compile(r'@(?:"[^"]*"|[\w.$-]+)\s*\(')
_ATTRIBUTES = re.compile(r"^attributes (#\d+) = \{(.*)\}")
_GROUP = re.compile(r"#\d+")


@dataclass(slots=True)
class Call:
    """A direct call: its line number (from 1), the callee's name, the text of the line."""

    line: int
    callee: str
    text: str


@dataclass(slots=True)
class Function:
    """A definition (`body` holds its lines) or a declaration. Line numbers count from 1."""

    name: str
    line: int
    header: str
    defined: bool
    body: list[tuple[int, str]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    @property
    def kernel(self) -> bool:
        return (
            self.defined and re.search(r"\b(?:spir_kernel|amdgpu_kernel)\b", self.header.partition("@")[0]) is not None
        )


@dataclass(slots=True)
class Text:
    """IR text cut into lines, comments blanked, with its functions by name, its globals and its attribute groups."""

    lines: list[str]
    functions: dict[str, Function]
    globals: list[tuple[int, str]]
    groups: dict[str, str]

    def has_attribute(self, text: str, attribute: str) -> bool:
        """Whether a call's or function header's text carries an attribute, by itself or through a group `#n`."""
        tail = _behind_arguments(text)
        return attribute in tail.split() or any(
            attribute in self.groups.get(group, "").split() for group in _GROUP.findall(tail)
        )

    def function_at(self, line: int) -> str | None:
        """Name of the function whose definition or declaration holds a line."""
        for function in self.functions.values():
            last = function.body[-1][0] if function.body else function.line
            if function.line <= line <= last:
                return function.name
        return None

    def reach(self, name: str) -> Iterator[Function]:
        """A function and every defined function it may call."""
        seen, work = {name}, [name]
        while work:
            function = self.functions[work.pop()]
            yield function
            for call in function.calls:
                if call.callee not in seen and (callee := self.functions.get(call.callee)) and callee.defined:
                    seen.add(call.callee)
                    work.append(call.callee)


def _behind_arguments(text: str) -> str:
    """What follows the argument list of a call or header: its attributes."""
    match = _CALLEE.search(text)
    depth = 0
    for index in range(match.end() - 1 if match else 0, len(text)):
        if text[index] == "(":
            depth += 1
        elif text[index] == ")":
            depth -= 1
            if depth == 0:
                return text[index + 1 :]
    return text


def _uncomment(line: str) -> str:
    """A line without its `; …` comment; text inside quotes stays."""
    if ";" not in line:
        return line
    quoted = False
    for index, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif character == ";" and not quoted:
            return line[:index]
    return line


def scan(ir: str) -> Text:
    """Cuts IR text. As LLVM prints it: a definition's `{` ends its line, its `}` stands in column 1."""
    text = Text([_uncomment(line) for line in ir.split("\n")], {}, [], {})
    current: Function | None = None
    for number, line in enumerate(text.lines, 1):
        if current is not None:
            current.body.append((number, line))
            if line.startswith("}"):
                current = None
            elif (call := _CALL.search(line)) is not None:
                current.calls.append(Call(number, call[1].strip('"'), line))
        elif line.startswith(("define", "declare")):
            if (match := _DEFINE.match(line)) is not None:
                function = Function(match[1].strip('"'), number, line, line.startswith("define"))
                text.functions[function.name] = function
                if function.defined and not line.rstrip().endswith("}"):
                    current = function
        elif line.startswith("@"):
            text.globals.append((number, line))
        elif (match := _ATTRIBUTES.match(line)) is not None:
            text.groups[match[1]] = match[2]
    return text
