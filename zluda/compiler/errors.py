"""Why a compilation failed: one exception, with a kind that the core turns into a CUDA result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from zluda.ptx.errors import PtxError

Kind = Literal["ptx", "unsupported", "internal", "vendor", "timeout", "died"]
"""`ptx`: the text is wrong (CUDA_ERROR_INVALID_PTX). `unsupported`: correct PTX that is not lowered for this target
(also CUDA_ERROR_INVALID_PTX). `vendor`: the device's compiler refused the image. `timeout`: the time limit passed.
`died`: the worker process ended, by a signal or of its own. `internal`: a defect of zluda."""

REPORT = "This is a defect of zluda: please report it with the PTX, the names of its kernels, and the text above."


class CompileError(Exception):
    """A compilation that failed. `str()` is the whole message; `log` is what a compiler or a dead process left behind.

    For the kinds `ptx` and `unsupported` the place is known: `line` and `column` (from 1), `offset` in characters,
    `function`, the bare `reason` and a `hint`; the message then holds the line of PTX with a caret, and `__cause__`
    is the PtxError.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Kind = "internal",
        log: str = "",
        line: int | None = None,
        column: int | None = None,
        offset: int | None = None,
        function: str | None = None,
        reason: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind: Kind = kind
        self.log = log
        self.line = line
        self.column = column
        self.offset = offset
        self.function = function
        self.reason = reason or message
        self.hint = hint

    @classmethod
    def from_ptx(cls, error: PtxError) -> CompileError:
        """The same failure as a CompileError; PtxUnsupported becomes `unsupported`, everything else `ptx`."""
        from zluda.ptx.errors import PtxUnsupported

        made = cls(
            str(error),
            kind="unsupported" if isinstance(error, PtxUnsupported) else "ptx",
            line=error.line,
            column=error.column,
            offset=error.offset,
            function=error.function,
            reason=error.message,
            hint=error.hint,
        )
        made.__cause__ = error
        return made

    def to_ptx(self, text: str, name: str) -> PtxError | None:
        """The PtxError this was made from, for PTX `text` called `name`; None when it was made from none."""
        from zluda.ptx.errors import PtxSyntaxError, PtxUnsupported
        from zluda.ptx.source import Source

        if self.offset is None:
            return None
        made = PtxUnsupported if self.kind == "unsupported" else PtxSyntaxError
        return made(Source(text, name), self.offset, self.reason, function=self.function, hint=self.hint)

    def to_wire(self) -> dict[str, Any]:
        """A JSON object, for the way from a worker; `from_wire` is its inverse."""
        return {
            "message": self.message,
            "kind": self.kind,
            "log": self.log,
            "line": self.line,
            "column": self.column,
            "offset": self.offset,
            "function": self.function,
            "reason": self.reason,
            "hint": self.hint,
        }

    @classmethod
    def from_wire(cls, fields: dict[str, Any]) -> CompileError:
        if fields["kind"] not in get_args(Kind):
            raise ValueError(f"unknown kind of compile error: {fields['kind']!r}")
        return cls(**fields)
