"""Variables, registers, parameters and initialisers: section 5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.tree import (
    Float,
    Initialiser,
    Integer,
    Linkage,
    Module,
    Property,
    Space,
    Statement,
    SymbolAddress,
    Variable,
)

Parse = Callable[[str], Module]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".global .b32 x;", {"space": Space.GLOBAL, "name": "x", "type": "b32"}),
        (".visible .global .align 8 .b8 x[4][2];", {"linkage": Linkage.VISIBLE, "align": 8, "shape": (4, 2)}),
        (".align 8 .global .b32 x;", {"align": 8}),
        (".extern .shared .align 16 .b8 x[];", {"space": Space.SHARED, "linkage": Linkage.EXTERN, "shape": (None,)}),
        (".weak .const .v4 .f32 x;", {"space": Space.CONST, "linkage": Linkage.WEAK, "vector": 4}),
        (".common .global .s64 x;", {"linkage": Linkage.COMMON}),
        (".global .v8 .b32 x;", {"vector": 8}),
        (".const[3] .b32 x;", {"bank": 3}),
        (".global .attribute(.managed) .b32 x;", {"attributes": (("managed", ()),)}),
        (
            ".global .align 8 .attribute(.managed, .unified(19, 0x5f)) .f32 x;",
            {"align": 8, "attributes": (("managed", ()), ("unified", (19, 95)))},
        ),
        (".global .texref x;", {"type": "texref"}),
        (".global .b32 x[2+2];", {"shape": (4,)}),
        (".global .b128 x;", {"type": "b128"}),
        (".global .b32 $x$1;", {"name": "$x$1"}),
        (".global .b32 %x;", {"name": "%x"}),
        (".global .b32 _x;", {"name": "_x"}),
    ],
)
def test_declaration(module: Parse, text: str, expected: dict[str, Any]) -> None:
    (variable,) = module(text).variables
    assert {key: getattr(variable, key) for key in expected} == expected


def test_several_names(module: Parse) -> None:
    first, second, third = module(".global .b32 a = 1, b[2], c<5>;").variables
    assert (first.name, first.initialiser) == ("a", Integer(1))
    assert (second.name, second.shape) == ("b", (2,))
    assert (third.name, third.count) == ("c", 5)


def test_variable_offset_is_that_of_its_name(module: Parse) -> None:
    read = module(".global .b32 a, bb;")
    assert [read.source.text[v.offset : v.offset + len(v.name)] for v in read.variables] == ["a", "bb"]


@pytest.mark.parametrize(
    ("text", "names", "kind"),
    [
        (".reg .pred %p<8>;", [("%p", 8)], "pred"),
        (".reg .b32 a;", [("a", None)], "b32"),
        (".reg .b32 a, %b<0x10>;", [("a", None), ("%b", 16)], "b32"),
        (".reg .f16x2 h<2>;", [("h", 2)], "f16x2"),
        (".reg\t.b64 \t%rd< 10 >;", [("%rd", 10)], "b64"),
    ],
)
def test_registers(
    body: Callable[[str], list[Statement]], text: str, names: list[tuple[str, int | None]], kind: str
) -> None:
    found = body(text)
    assert all(isinstance(v, Variable) and v.space is Space.REG and v.type == kind for v in found)
    assert [(v.name, v.count) for v in found if isinstance(v, Variable)] == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".param .u64 a", {"type": "u64", "pointer": None}),
        (".param .u64 .ptr a", {"pointer": (None, None)}),
        (".param .u64 .ptr .global a", {"pointer": ("global", None)}),
        (".param .u64 .ptr .shared .align 16 a", {"pointer": ("shared", 16), "align": None}),
        (".param .u64 .ptr .align 4 a", {"pointer": (None, 4)}),
        (".param .align 16 .b8 a[32]", {"align": 16, "shape": (32,)}),
        (".param .b8 .align 8 a", {"align": 8}),
        (".param .align 8 .b8 a[]", {"shape": (None,)}),
        (".reg .f64 a", {"space": Space.REG, "type": "f64"}),
    ],
)
def test_parameters(module: Parse, text: str, expected: dict[str, Any]) -> None:
    (parameter,) = module(f".func f({text});").functions[0].parameters
    assert {key: getattr(parameter, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".b32 x = -5", Integer(-5)),
        (".b32 x = 1<<4", Integer(16)),
        (".f32 x = 1.5", Float(0x3FF8000000000000, 64)),
        (".f32 x = 0f40000000", Float(0x40000000, 32)),
        (".b8 x[3] = {1, 2,3}", (Integer(1), Integer(2), Integer(3))),
        (".b8 x[2] = { }", ()),
        (".b8 x[2] = {0x0A, 1+1}", (Integer(10), Integer(2))),
        (".b8 x[2] = {/* a */ 7, // b\n 8}", (Integer(7), Integer(8))),
        (".b8 x[2][2] = {{1, 2}, {3}}", ((Integer(1), Integer(2)), (Integer(3),))),
        (".b8 x[2][2] = {{}, {3}}", ((), (Integer(3),))),
        (".b8 x[1][1][1] = {{{4}}}", (((Integer(4),),),)),
        (".b64 x = y", SymbolAddress("y")),
        (".b64 x = y+4", SymbolAddress("y", 4)),
        (".b64 x = generic(y)", SymbolAddress("y", 0, True)),
        (".b64 x = generic(y)+4", SymbolAddress("y", 4, True)),
        (".b64 x[2] = {y, generic(z)+8}", (SymbolAddress("y"), SymbolAddress("z", 8, True))),
        (
            ".b8 x[2] = {0xff(y), 0xff00(y+4)}",
            (SymbolAddress("y", 0, False, 0xFF), SymbolAddress("y", 4, False, 0xFF00)),
        ),
        (".b8 x = 0xff0000(generic(y)+2)", SymbolAddress("y", 2, True, 0xFF0000)),
        (".b8 x = 0xFF00000000000000(y)", SymbolAddress("y", 0, False, 0xFF << 56)),
        (
            ".samplerref x = { addr_mode_0 = wrap, force_unnormalized_coords = 1 }",
            (Property("addr_mode_0", "wrap"), Property("force_unnormalized_coords", 1)),
        ),
        (".b64 x = generic", SymbolAddress("generic")),
    ],
)
def test_initialiser(module: Parse, text: str, expected: Initialiser) -> None:
    (variable,) = module(f".global {text};").variables
    assert variable.initialiser == expected


@pytest.mark.parametrize(
    "text",
    [
        ".global x;",
        ".global .b32 x",
        ".global .b32 x y;",
        ".global .b33 x;",
        ".global .b32 a.b;",
        ".global .b32 .f32 x;",
        ".global .b32 .v2 x;",
        ".global .v2 .align 8 .b32 x;",
        ".global .b32 .align 8 x;",
        ".global .b32 .attribute(.managed) x;",
        ".global .align 3 .b32 x;",
        ".global .b32 x[-1];",
        ".global .b32 x[1.0];",
        ".global .b32 x<>;",
        ".global .b32 x = ;",
        ".global .b32 x[2] = {1,2,};",
        ".global .b32 x[2] = {1 2};",
        ".global .b32 x[2] = {1,{2;",
        ".global .b64 x = y-4;",
        ".global .b64 x = generic(y+4);",
        ".global .b8 x = 0xfff(y);",
        ".shared .b32 x = 1;",
        ".visible .extern .global .b32 x;",
        ".visible .b32 x;",
        ".sreg .b32 x;",
        ".align 8 .b32 x;",
        ".func f(.param .ptr .u64 a);",
        ".func f(.param .u64 .ptr .generic a);",
        ".func f(.param .b32 a,);",
        ".func f(.param .b32 a .param .b32 b);",
        ".func f(.param .b32 a = 3);",
        ".func f(.global .b32 a);",
    ],
)
def test_refused(module: Parse, text: str) -> None:
    with pytest.raises(PtxSyntaxError):
        module(text)


def test_nesting_has_a_limit(module: Parse) -> None:
    with pytest.raises(PtxSyntaxError, match="nested too deep"):
        module(".global .b8 x = " + "{" * 100000 + ";")


def test_only_global_and_const_are_initialised_in_bodies_too(body: Callable[[str], list[Statement]]) -> None:
    (variable,) = body(".global .b32 g = 3;")
    assert isinstance(variable, Variable) and variable.initialiser == Integer(3)
    with pytest.raises(PtxSyntaxError, match="initial value"):
        body(".reg .b32 r = 3;")
