"""What is wrong with a piece of PTX, and where."""

from __future__ import annotations

from zluda.ptx.tree import Source


class PtxError(Exception):
    """PTX that cannot be used. `str()` gives the whole message: place, reason, the line with a caret, what to do.

    `function` names the kernel or device function, where known; `hint` says what the user can do.
    """

    def __init__(self, source: Source, offset: int, message: str, *, function: str | None = None, hint: str | None = None) -> None:
        self.source = source
        self.offset = offset
        self.message = message
        self.function = function
        self.hint = hint
        self.line, self.column = source.position(min(offset, len(source.text)))
        text = source.line_text(self.line)
        where = f"{source.name}:{self.line}:{self.column}"
        inside = f" in {function}" if function else ""
        lines = [f"{where}{inside}: {message}", f"    {text.expandtabs(1)}", "    " + " " * (self.column - 1) + "^"]
        if hint:
            lines.append(f"    {hint}")
        super().__init__("\n".join(lines))


class PtxSyntaxError(PtxError):
    """Text that the grammar does not allow."""


class PtxUnsupported(PtxError):
    """Well-formed PTX that is not lowered (for this target)."""
