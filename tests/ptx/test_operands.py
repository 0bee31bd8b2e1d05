"""Every operand form of section 6, in instructions; by the quick way and by the careful one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.tree import (
    Address,
    Component,
    Element,
    Float,
    Group,
    Guard,
    Instruction,
    Integer,
    Name,
    Negative,
    Not,
    Offset,
    Opcode,
    Operand,
    Pair,
    Statement,
    Vector,
)

Body = Callable[[str], list[Statement]]
R1, R2, R3, R4 = (Name(f"%r{n}") for n in range(1, 5))
P, Q = Name("p"), Name("q")

FORMS: list[tuple[str, tuple[Operand, ...]]] = [
    ("ret;", ()),
    ("add.s32 %r1, %r2, -1;", (R1, R2, Integer(-1))),
    ("mov.u32 %r1, %tid.x;", (R1, Component("%tid", "x"))),
    ("mov.u32 %r1, %clock;", (R1, Name("%clock"))),
    ("mov.b32 %r1, 0x1f;", (R1, Integer(31))),
    ("mov.b32 %r1, 007;", (R1, Integer(7))),
    ("mov.b32 %r1, 1<<3|4;", (R1, Integer(12))),
    ("mov.b32 %r1, (1+2)*3;", (R1, Integer(9))),
    ("mov.b32 %r1, WARP_SZ;", (R1, Integer(32))),
    ("mov.b32 %r1, WARP_SZ_;", (R1, Name("WARP_SZ_"))),
    ("mov.b32 %r1, !0;", (R1, Integer(1))),
    ("mov.f32 %r1, 0f3F800000;", (R1, Float(0x3F800000, 32))),
    ("mov.f64 %r1, 0D3ff0000000000000;", (R1, Float(0x3FF0000000000000, 64))),
    ("mov.f64 %r1, .5;", (R1, Float(0x3FE0000000000000, 64))),
    ("mov.u64 %r1, table+8;", (R1, Offset("table", 8))),
    ("mov.u64 %r1, table+-8;", (R1, Offset("table", -8))),
    ("mov.u64 %r1, table[2];", (R1, Element("table", None, 2))),
    ("ld.global.u32 %r1, a[%r2+1];", (R1, Element("a", R2, 1))),
    ("ld.global.u32 %r1, [%r2];", (R1, Address(R2))),
    ("ld.global.u32 %r1, [%r2+4];", (R1, Address(R2, 4))),
    ("ld.global.u32 %r1, [%r2+-4];", (R1, Address(R2, -4))),
    ("ld.global.u32 %r1, [ %r2 + 4*2 ];", (R1, Address(R2, 8))),
    ("ld.local.u32 %r1, [16];", (R1, Address(None, 16))),
    ("ld.local.u32 %r1, [WARP_SZ+4];", (R1, Address(None, 36))),
    ("st.global.v2.f32 [%r1], {%r2, %r3};", (Address(R1), Vector((R2, R3)))),
    ("mov.b64 {%r1, _}, %r2;", (Vector((R1, Name("_"))), R2)),
    ("st.v2.b32 [%r1], {1, 0f00000000};", (Address(R1), Vector((Integer(1), Float(0, 32))))),
    ("setp.lt.s32 p|q, %r1, %r2;", (Pair(P, Q), R1, R2)),
    ("setp.lt.s32 p | q, %r1, %r2;", (Pair(P, Q), R1, R2)),
    ("elect.sync _|p, -1;", (Pair(Name("_"), P), Integer(-1))),
    ("setp.eq.and.s32 p, %r1, %r2, !q;", (P, R1, R2, Not(Q))),
    ("vmad.s32.s32.s32 %r1, %r2.h0, %r3, -%r4;", (R1, Component("%r2", "h0"), R3, Negative(R4))),
    ("vadd2.s32.s32.s32 %r1.h10, %r3, %r4;", (Component("%r1", "h10"), R3, R4)),
    ("vmad.s32.s32.s32 %r1, %r3, -%r2.b0, %r4;", (R1, R3, Negative(Component("%r2", "b0")), R4)),
    (
        "tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}|p, [t, s, {%r1, %r2}], {1, 2}, %r3;",
        (Pair(Vector((R1, R2, R3, R4)), P), Address(Name("t"), 0, (Name("s"), Vector((R1, R2)))),
         Vector((Integer(1), Integer(2))), R3),
    ),
    ("tex.1d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [t, %r1];",
     (Vector((R1, R2, R3, R4)), Address(Name("t"), 0, (R1,)))),
    (
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+8], [m, {%r2, 3}], [%r4];",
        (Address(R1, 8), Address(Name("m"), 0, (Vector((R2, Integer(3))),)), Address(R4)),
    ),
    ("call f;", (Name("f"),)),
    ("call.uni f, (%r1, 2);", (Name("f"), Group((R1, Integer(2))))),
    ("call (%r1), f, ();", (Group((R1,)), Name("f"), Group(()))),
    ("call (%r1), %r2, (%r3), proto;", (Group((R1,)), R2, Group((R3,)), Name("proto"))),
    ("brx.idx %r1, targets;", (R1, Name("targets"))),
    ("bra.uni $L__BB0_1;", (Name("$L__BB0_1"),)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "operands"), FORMS, ids=[text for text, _ in FORMS])
@pytest.mark.parametrize("careful", [False, True])
def test_form(body: Body, text: str, operands: tuple[Operand, ...], careful: bool) -> None:
    if careful:  # a comment inside the statement keeps it off the quick way
        text = text.replace(";", " /* ; */ ;")
    (statement,) = body(text)
    assert isinstance(statement, Instruction)
    assert statement.operands == operands


def test_opcode_keeps_double_colons_in_a_modifier(body: Body) -> None:
    (statement,) = body("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [a], {b, c}, [d];")
    assert isinstance(statement, Instruction)
    modifiers = ("async", "weak", "shared::cluster", "mbarrier::complete_tx::bytes", "v2", "b32")
    assert statement.opcode == Opcode("st", modifiers)
    assert str(statement.opcode) == "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32"


def test_modifiers_apart(body: Body) -> None:
    (statement,) = body("ld .global\n.f32 a, [b];")
    assert isinstance(statement, Instruction)
    assert statement.opcode == Opcode("ld", ("global", "f32"))


@pytest.mark.parametrize(
    ("text", "guard"),
    [
        ("@p bra L;", Guard("p", False)),
        ("@!%p1\tbra L;", Guard("%p1", True)),
        ("@ ! p bra L;", Guard("p", True)),
        ("@p/* */bra L;", Guard("p", False)),
    ],
)
def test_guards(body: Body, text: str, guard: Guard) -> None:
    (statement,) = body(text)
    assert isinstance(statement, Instruction)
    assert statement.guard == guard


@pytest.mark.parametrize(
    "text",
    [
        "mov.b32 %r1, %r2, ;",
        "mov.b32 %r1 %r2;",
        "mov.b32, %r1;",
        "mov.b32 %r1, {};",
        "mov.b32 %r1, {{%r2}};",
        "mov.b32 %r1, {%r2;",
        "mov.b32 %r1, %r2};",
        "mov.b32 %r1|%r2|%r3, 1;",
        "mov.b32 %r1, x.y.z;",
        "mov.b32 %r1, ~%r2;",
        "mov.b32 %r1, !!%r2;",
        'mov.b32 %r1, "a";',
        "mov.b32 (%r1), %r2;",
        "mov.b32 %r1, (%r2);",
        "mov.b32 %r1, 3 4;",
        "mov. %r1;",
        "mov..b32 %r1, 1;",
        "ld.u32 %r1, [];",
        "ld.u32 %r1, [[%r2]];",
        "ld.u32 %r1, [%r2-4];",
        "ld.u32 %r1, [%r2+%r3];",
        "ld.u32 %r1, [-%r2];",
        "ld.u32 %r1, [%tid.x];",
        "ld.u32 %r1, [%r2 %r3];",
        "mov.u64 %r1, a-4;",
        "mov.u64 %r1, a[];",
        "mov.u64 %r1, a[1][2];",
        "call f (%r1);",
        "call (%r1), a{b, (%r2);",
        "mov.b64 {%r1}%r2}, %r3;",
        "mov.b64 {%r1, %r2}[a}, %r3;",
        "call ((%r1)), f;",
        "@5 mov.b32 %r1, 1;",
        "@p;",
        "@p L: ret;",
        "@p { ret; }",
        ";",
        "mov.b32 %r1, %;",
        "5: ret;",
        "L:: ret;",
    ],
)
def test_refused(body: Body, text: str) -> None:
    """All of these are syntax errors for the CUDA 13 assembler too."""
    with pytest.raises(PtxSyntaxError):
        body(text)
