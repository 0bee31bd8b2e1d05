"""What is wrong with a piece of PTX, and where."""

from __future__ import annotations

from zluda.ptx.source import Source

_WIDEST = 160
"""Longest piece of a line that a message shows."""


def _excerpt(line: str, column: int) -> tuple[str, int]:
    """A line's part around a column (from 0), safe to print, and the column in it."""
    start = 0
    if len(line) > _WIDEST:
        start = max(0, min(column - _WIDEST // 2, len(line) - _WIDEST))
    shown = line[start : start + _WIDEST]
    text = "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in shown)
    before = "…" if start else ""
    after = "…" if start + _WIDEST < len(line) else ""
    return before + text + after, column - start + len(before)


class PtxError(Exception):
    """PTX that cannot be used. `str()` gives the whole message: place, reason, the line with a caret, what to do.

    `function` names the kernel or device function, where known; `hint` says what the user can do.
    """

    def __init__(
        self, source: Source, offset: int, message: str, *, function: str | None = None, hint: str | None = None
    ) -> None:
        self.source = source
        self.offset = offset
        self.message = message
        self.function = function
        self.hint = hint
        self.line, self.column = source.position(min(offset, len(source.text)))
        text, caret = _excerpt(source.line_text(self.line), self.column - 1)
        where = f"{source.name}:{self.line}:{self.column}"
        inside = f" in {function}" if function else ""
        lines = [f"{where}{inside}: {message}", f"    {text}", "    " + " " * caret + "^"]
        if hint:
            lines.append(f"    {hint}")
        super().__init__("\n".join(lines))


class PtxSyntaxError(PtxError):
    """Text that the grammar does not allow."""


class PtxUnsupported(PtxError):
    """Well-formed PTX that is not lowered (for this target)."""
