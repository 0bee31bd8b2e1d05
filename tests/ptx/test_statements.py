"""Statements of a body other than instructions: labels, blocks, locations, targets, prototypes, pragmas."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.statements import DEEPEST_BLOCK
from zluda.ptx.tree import (
    Block,
    Instruction,
    Label,
    Location,
    Pragma,
    Prototype,
    Space,
    Statement,
    Targets,
    Variable,
)

Body = Callable[[str], list[Statement]]


def test_labels_and_blocks(body: Body) -> None:
    first, block, last = body("A: { .reg .b32 t; { B : ret; } } $C:")
    assert isinstance(first, Label) and first.name == "A"
    assert isinstance(last, Label) and last.name == "$C"
    assert isinstance(block, Block)
    register, inner = block.statements
    assert isinstance(register, Variable) and register.name == "t"
    assert isinstance(inner, Block)
    label, instruction = inner.statements
    assert isinstance(label, Label) and label.name == "B"
    assert isinstance(instruction, Instruction)


def test_offsets_point_at_the_statement(body: Body) -> None:
    lead = len(".version 9.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n")
    text = "L: // x\n  @p add.s32 a, b, c;\n{ }\n\t.loc 1 2 3\nexit;"
    offsets = [statement.offset - lead for statement in body(text) if not isinstance(statement, Variable)]
    assert offsets == [text.index(word) for word in ("L:", "@p", "{", ".loc", "exit")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".loc 1 22 7", Location(0, 1, 22, 7)),
        (".loc 1 22 7 // why", Location(0, 1, 22, 7)),
        (".loc 2 5 6, function_name $L__s0, inlined_at 1 7 8", Location(0, 2, 5, 6, "$L__s0", (1, 7, 8))),
        (".loc 2 5 6 , function_name s + 16 , inlined_at 1 7 8", Location(0, 2, 5, 6, "s", (1, 7, 8), 16)),
    ],
)
@pytest.mark.parametrize("next_statement", ["ret;", "// comment\n\tret;", ""])
def test_loc(body: Body, text: str, expected: Location, next_statement: str) -> None:
    location = body(f"{text}\n{next_statement}")[0]
    assert isinstance(location, Location)
    location.offset = 0
    assert location == expected


@pytest.mark.parametrize(
    "text", [".loc 1 2", ".loc 1 2 -3", ".loc 1 2 3, inlined_at 1 2 3", ".loc 1 2 3, function_name L"]
)
def test_loc_refused(body: Body, text: str) -> None:
    with pytest.raises(PtxSyntaxError):
        body(text + "\nret;")


def test_branch_and_call_targets(body: Body) -> None:
    branches, calls = body("T: .branchtargets A, $B, C;\nU :\n.calltargets f,g ;")
    assert isinstance(branches, Targets) and isinstance(calls, Targets)
    assert (branches.name, branches.kind, branches.targets) == ("T", "branchtargets", ("A", "$B", "C"))
    assert (calls.name, calls.kind, calls.targets) == ("U", "calltargets", ("f", "g"))


@pytest.mark.parametrize("between", ["", " ", "\n// why\n", "/* */"])
def test_prototype(body: Body, between: str) -> None:
    (found,) = body(
        f"P {between}:{between}.callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]);"
    )
    assert isinstance(found, Prototype)
    assert found.name == "P"
    assert [(v.space, v.type) for v in found.returns] == [(Space.PARAM, "b32")]
    assert [(v.type, v.align, v.shape) for v in found.parameters] == [("b64", None, ()), ("b8", 8, (16,))]
    assert not found.noreturn


def test_prototype_directives(body: Body) -> None:
    bare, full = body("P: .callprototype _;Q: .callprototype _ () .noreturn .abi_preserve 10 .abi_preserve_control 2;")
    assert isinstance(bare, Prototype) and isinstance(full, Prototype)
    assert (bare.returns, bare.parameters, bare.directives) == ((), (), ())
    assert full.noreturn
    assert full.directives == (("abi_preserve", (10,)), ("abi_preserve_control", (2,)))


def test_pragma(body: Body) -> None:
    (found,) = body('.pragma "nounroll", "{;";')
    assert isinstance(found, Pragma)
    assert found.texts == ("nounroll", "{;")


def test_comments_and_line_markers_are_passed_over(body: Body) -> None:
    (found,) = body('/* } ; */ // }\n#line 5 "a.cu"\n# 7 "b.cu"\nret; /**/')
    assert isinstance(found, Instruction)


def test_blocks_nest_to_a_limit(body: Body) -> None:
    assert body("{" * DEEPEST_BLOCK + "}" * DEEPEST_BLOCK)
    with pytest.raises(PtxSyntaxError, match="nested too deep"):
        body("{" * (DEEPEST_BLOCK + 1) + "}" * (DEEPEST_BLOCK + 1))


@pytest.mark.parametrize(
    "text",
    [
        ".maxntid 3;",
        ".version 9.0",
        ".alias a, b;",
        ".entry z() {ret;}",
        ".extern .shared .b8 x[];",
        ".file 1 \"x\"",
        ".section .debug_x {}",
        '.pragma "x"',
        ".pragma x;",
        "#define X",
        "T: .branchtargets ;",
        ".reg .b32 a b;",
        ".frobnicate;",
        "}",
        "{",
    ],
)  # fmt: skip
def test_refused(body: Body, text: str) -> None:
    with pytest.raises(PtxSyntaxError):
        body(text)
