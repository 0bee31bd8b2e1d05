"""Compile errors on their way from a worker, and from and to PtxError."""

from __future__ import annotations

import json

import pytest

from zluda.compiler.errors import CompileError
from zluda.ptx.errors import PtxSyntaxError, PtxUnsupported
from zluda.ptx.source import Source

TEXT = ".version 9.0\n.entry k()\n{\n\tadd.s33 %r1;\n}\n"


@pytest.mark.parametrize(("made", "kind"), [(PtxSyntaxError, "ptx"), (PtxUnsupported, "unsupported")])
def test_a_ptx_error_survives_the_way(made: type[PtxSyntaxError | PtxUnsupported], kind: str) -> None:
    original = made(Source(TEXT, "a.ptx"), TEXT.index("s33"), "no such type", function="k", hint="write s32")
    error = CompileError.from_wire(json.loads(json.dumps(CompileError.from_ptx(original).to_wire())))
    assert error.kind == kind and str(error) == str(original)
    assert (error.line, error.column, error.function) == (4, 6, "k")
    again = error.to_ptx(TEXT, "a.ptx")
    assert type(again) is made and str(again) == str(original) and again.offset == original.offset


def test_other_errors_have_no_place() -> None:
    error = CompileError.from_wire(CompileError("it broke", kind="vendor", log="line\nline").to_wire())
    assert (str(error), error.kind, error.log, error.line) == ("it broke", "vendor", "line\nline", None)
    assert error.to_ptx(TEXT, "a.ptx") is None


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        CompileError.from_wire({**CompileError("x").to_wire(), "kind": "odd"})
