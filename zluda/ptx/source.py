"""PTX text and places in it: all that an error message needs of a module."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


class Position(NamedTuple):
    """A place in PTX text; line and column count from 1."""

    line: int
    column: int


class Source:
    """PTX text with a name for messages; finds lines lazily."""

    __slots__ = ("_starts", "name", "text")

    def __init__(self, text: str, name: str = "<ptx>") -> None:
        self.text = text
        self.name = name
        self._starts: list[int] | None = None

    def position(self, offset: int) -> Position:
        """Line and column of a character offset."""
        if self._starts is None:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._starts = starts
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def line_text(self, line: int) -> str:
        """The text of a line (from 1), without its newline."""
        self.position(0)
        assert self._starts is not None
        start = self._starts[line - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)]
