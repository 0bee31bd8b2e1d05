"""Words, blanks and punctuation of PTX text, read through a cursor."""

from __future__ import annotations

import re
from typing import NoReturn

# No pattern here can backtrack over more than one token: hostile text costs linear time.
BLANK = r"(?:[\x20\t\r\n\f\v]++|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/)*"
IDENTIFIER = r"(?:(?:[A-Za-z_]|[$%](?=[\w$]))[\w$]*+)"

_blank = re.compile(BLANK, re.ASCII)
_identifier = re.compile(IDENTIFIER, re.ASCII)
_dotted = re.compile(r"\.(\w++(?:::\w++)*)", re.ASCII)
_string = re.compile(r'"([^"\n]*+)"', re.ASCII)
_found = re.compile(r"@?!?[.\w$%]+|::|\S", re.ASCII)


# As much of a pair of braces as a single match may pass; braces without others inside go along.
_inside = re.compile(
    r"""(?:[^{}"/]++|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/|/(?![/*])|"[^"\n]*+"|\{[^{}"/]*+\})*([{}]?)""", re.ASCII
)


class Reject(Exception):
    """Text that does not fit the grammar; the parser's entry points turn it into a PtxSyntaxError."""

    def __init__(self, offset: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.hint = hint
        self.function: str | None = None


class Cursor:
    """A place in the text, moving forward. `end` bounds what may be read."""

    __slots__ = ("end", "position", "text")

    def __init__(self, text: str, position: int = 0, end: int | None = None) -> None:
        self.text = text
        self.position = position
        self.end = len(text) if end is None else end

    def skip(self) -> int:
        """Pass blanks and comments; the new position."""
        match = _blank.match(self.text, self.position, self.end)
        if match is not None:
            self.position = match.end()
        if self.text.startswith("/*", self.position, self.end):
            self.reject("this comment never ends", self.position)
        return self.position

    def peek(self) -> str:
        """The next character after blanks; empty at the end of the text."""
        position = self.skip()
        return self.text[position] if position < self.end else ""

    def starts(self, literal: str) -> bool:
        """Whether the text goes on with `literal`, after blanks."""
        return self.text.startswith(literal, self.skip(), self.end)

    def accept(self, literal: str) -> bool:
        """Pass `literal` if it comes next."""
        if self.starts(literal):
            self.position += len(literal)
            return True
        return False

    def expect(self, literal: str, where: str) -> None:
        """Pass `literal`, or reject with what was found in its place."""
        if not self.accept(literal):
            self.expected(f"'{literal}' {where}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match a pattern after blanks and pass it."""
        match = pattern.match(self.text, self.skip(), self.end)
        if match is not None:
            self.position = match.end()
        return match

    def identifier(self, what: str) -> str:
        """The next identifier; `_` alone is one (section 4.4)."""
        match = self.match(_identifier)
        if match is None:
            self.expected(what)
        return match[0]

    def dotted(self) -> str | None:
        """The next directive or modifier, without its dot, or None."""
        match = self.match(_dotted)
        return None if match is None else match[1]

    def string(self, what: str) -> str:
        """The next string in double quotes, as written between them."""
        match = self.match(_string)
        if match is None:
            if self.starts('"'):
                self.reject("this string never ends", self.position)
            self.expected(what)
        return match[1]

    def found(self) -> str:
        """The next word, for messages."""
        match = _found.match(self.text, self.skip(), self.end)
        if match is None:
            return "the end of the text"
        word = match[0]
        return repr(word if len(word) <= 40 else word[:37] + "...")

    def expected(self, what: str, hint: str | None = None) -> NoReturn:
        """Reject what comes next, saying what belongs there."""
        found = self.found()
        raise Reject(self.position, f"expected {what}, found {found}", hint)

    def reject(self, message: str, offset: int, hint: str | None = None) -> NoReturn:
        """Reject the text at `offset`."""
        raise Reject(offset, message, hint)

    def skip_braces(self, what: str) -> None:
        """Pass what stands in braces, behind the opening one, and the closing one; `what` names it in messages."""
        start = self.position
        depth = 1
        while depth:
            match = _inside.match(self.text, self.position, self.end)
            brace = match[1] if match is not None else ""
            if match is not None:
                self.position = match.end()
            if brace == "{":
                depth += 1
            elif brace == "}":
                depth -= 1
            elif self.position == self.end:
                self.reject(f"{what} never ends: no '}}' belongs to this '{{'", start - 1)
            else:
                self.skip()
                self.reject("this string never ends", self.position)
