"""Hostile text: only PtxSyntaxError comes out, and no shape of text takes more than linear time."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zluda.ptx import declarations, statements
from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.index import index_module
from zluda.ptx.parser import parse_module
from zluda.ptx.tree import Module

WELL_FORMED = r"""// a comment
.version 9.0
.target sm_90a, debug
.address_size 64
.file 1 "a.cu", 12, 34
.visible .global .align 8 .u64 table[2] = {f, generic(x)+8};
.global .b8 x[4] = {1, 0xff(table), -3, 1<<4};
.extern .shared .align 16 .b8 dyn[];
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.func (.param .b32 r) f(.param .b32 a) .noreturn { ret; }
.alias g, f;
.visible .entry k(.param .u64 .ptr .global .align 4 a, .param .align 4 .b8 s[12])
.maxntid 16, 16, 1
{
	.reg .pred %p<3>; .reg .b32 %r<9>, t;
	.loc 1 2 3, function_name $L__s, inlined_at 1 2 3
	ld.param.u64 %rd1, [a+4];
	@!%p1 bra $L__BB0_2;
	setp.lt.and.s32 %p1|%p2, %r1, 0x10U, !%p2;
	mov.b64 {%r1, _}, %rd2; /* } */
	tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, s, {%f1, 0f3F800000}];
$L__BB0_2:
	{ // callseq
	.param .b64 param0; .param .align 8 .b8 p1[16]; .pragma "nounroll";
	call.uni (retval0), vprintf, (param0, 1);
	P: .callprototype (.param .b32 _) _ (.param .b64 _);
	T: .branchtargets A, B; brx.idx %r1, T;
	mov.u32 %r1, (WARP_SZ ? 1 : 2);
	}
	ret;
}
.section .debug_str { L: .b8 104, "x" }
"""

SCRAPS = [
    *"{}()[]<>;:,.@!%$_|+-*/\\\"'#=&^~? \n\t\0\x7fé☃\ud800",
    *("//", "/*", "*/", "::", "<<", "&&", "||", "0f", "0x", "0b", "1e", ".5", "WARP_SZ", "generic(", "(.s64)"),
    *(".entry", ".func", ".reg", ".global", ".align", ".loc", ".section", "call", "ret;", "{{", "}}", "9" * 20),
    *("@@DWARF", "# 1 ", "#line 2 "),
]  # fmt: skip


def outcome(text: str) -> Module | None:
    """Parse and index; both must agree on what either can see."""
    try:
        module = parse_module(text)
    except PtxSyntaxError as error:
        assert str(error)
        module = None
    try:
        index = index_module(text)
    except PtxSyntaxError as error:
        assert str(error)
        assert module is None or "defined twice" in error.message
    else:
        if module is not None:
            names = {function.name for function in module.functions if function.body is not None}
            assert names == {span.name for span in index.functions.values() if span.defined}
        for name in index.functions:
            try:
                index.entry_signature(name)
                index.reachable(name)
                index.function(name)
            except PtxSyntaxError as error:
                assert module is None, error
    return module


def parsed(text: str) -> tuple[object, ...]:
    """What a parse gives, in a form that can be compared; the message when it fails."""
    try:
        module = parse_module(text)
    except PtxSyntaxError as error:
        return (str(error),)
    return (module.functions, module.variables, module.aliases, module.files, module.pragmas)


def mutate(pick: random.Random, text: str) -> str:
    for _ in range(pick.randint(1, 3)):
        at = pick.randrange(len(text) + 1)
        length = pick.choice([0, 0, 1, 1, 2, 5, 20])
        kind = pick.random()
        if kind < 0.6:
            piece = pick.choice(SCRAPS)
        elif kind < 0.8:
            start = pick.randrange(len(text) + 1)
            piece = text[start : start + pick.randint(1, 30)]
        else:
            piece = ""
        text = text[:at] + piece + text[at + length :]
    return text


def test_the_seed_is_well_formed() -> None:
    assert outcome(WELL_FORMED) is not None


@pytest.mark.parametrize("seed", range(8))
def test_mutations(seed: int) -> None:
    pick = random.Random(seed)
    survived = 0
    for _ in range(250):
        survived += outcome(mutate(pick, WELL_FORMED)) is not None
    assert survived  # some must still parse, or the mutations test only the first error


@pytest.mark.parametrize("seed", range(4))
def test_the_quick_way_reads_what_the_careful_way_reads(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pick = random.Random(1000 + seed)
    texts = [mutate(pick, WELL_FORMED) for _ in range(250)]
    quick = [parsed(text) for text in texts]
    never = re.compile(r"(?!)")
    monkeypatch.setattr(statements, "_common", never)
    monkeypatch.setattr(declarations, "_flat", never)
    for text, found in zip(texts, quick, strict=True):
        assert parsed(text) == found, text


def test_every_prefix() -> None:
    for end in range(0, len(WELL_FORMED), 3):
        outcome(WELL_FORMED[:end])


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=80),
    st.sampled_from(["", ".version 9.0 .target sm_90 ", ".version 9.0 .target sm_90 .entry k() { "]),
)
def test_any_text(text: str, lead: str) -> None:
    outcome(lead + text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(SCRAPS), max_size=25).map("".join))
def test_any_scraps_in_a_body(text: str) -> None:
    outcome(".version 9.0\n.target sm_90\n.entry k()\n{ " + text + "\nret; }")


BODY = ".version 9.0\n.target sm_90\n.entry k()\n{ "
TOP = ".version 9.0\n.target sm_90\n"


@pytest.mark.parametrize(
    ("lead", "unit", "tail"),
    [
        (BODY, "{", ""),
        (BODY, "}", ""),
        (BODY, "a ", ""),
        (BODY, "a b ", ";"),
        (BODY, "a,", ""),
        (BODY, "L:", "}"),
        (BODY, "L : ", "}"),
        (BODY, "/", ""),
        (BODY, "/**/", "}"),
        (BODY, "/* * ", ""),
        (BODY, "// x\n", "}"),
        (BODY, "@", ""),
        (BODY, "@p ", ""),
        (BODY, ".loc 1 2 3\n", "}"),
        (BODY, ".loc 1 2 3,", "}"),
        (BODY, ".reg .b32 a;", "}"),
        (BODY, ".reg ", "}"),
        (BODY, '"', ""),
        (BODY + "mov.b32 a, ", "(", ""),
        (BODY + "mov.b32 a, ", "-", "1; }"),
        (BODY + "mov.b32 a, ", "(1+", ""),
        (BODY + "mov.b32 a, ", "1+", "1; }"),
        (BODY + "mov.b32 a, ", "1?", ""),
        (BODY + "mov.b32 a, ", "1?1:", "1; }"),
        (BODY + "mov.b32 a, ", "1", "; }"),
        (BODY + "mov.b32 a, 0x", "1", "; }"),
        (BODY + "mov.b32 a, ", "{", ""),
        (BODY + "mov.b32 a, ", "{b", ""),
        (BODY + "mov.b32 a, ", "[b,", ""),
        (BODY + "mov.b32 a, ", "[", ""),
        (BODY + "mov.b32 a, {", "b,", "b}; }"),
        (BODY + "mov.b32 a", "|b", "; }"),
        (BODY + "call ", "(", ""),
        (BODY + "call (", "a,", "a), f; }"),
        (BODY, "add.s32 a, b, /* c */ d;\n", "}"),
        (BODY, "add.s32 a, b, c\n", "}"),
        (BODY + "a", ".b", "; }"),
        (BODY + "a", "::b", "; }"),
        (TOP, "/", ""),
        (TOP, ".", ""),
        (TOP, ".func f();", ""),
        (TOP, ".entry ", ""),
        (TOP, ".func (", ""),
        (TOP, ".visible ", ""),
        (TOP, "@@DWARF x\n", ""),
        (TOP + ".section .x {", "{", ""),
        (TOP + ".section .x {", '"a" ', "}"),
        (TOP + ".global .b8 x = ", "{", ""),
        (TOP + ".global .b8 x = {", "1,", "1};"),
        (TOP + ".global .b8 x = {", "{1},", "1};"),
        (TOP + ".global .b8 x = {", "{1", ""),
        (TOP + ".global .b8 x = {", "/* */1,", "1};"),
        (TOP + ".global .b8 x", "[1]", ";"),
        (TOP + ".func f(", ".param .b32 a,", ".param .b32 a);"),
        ("", " ", ""),
        ("", "\0", ""),
    ],
)
def test_long_runs_take_linear_time(lead: str, unit: str, tail: str) -> None:
    """A quadratic step over this much text takes ten seconds or more, a linear one well under two."""
    text = lead + unit * (100_000 // len(unit)) + tail
    started = time.process_time()
    for read in (parse_module, index_module):
        try:
            read(text)
        except PtxSyntaxError as error:
            assert str(error)
    assert time.process_time() - started < 6
