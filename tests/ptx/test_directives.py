"""Module header, functions and the directives at module scope: section 11."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.parser import parse_function, parse_module
from zluda.ptx.source import Source
from zluda.ptx.tree import Linkage, Module, Space

Parse = Callable[[str], Module]


def test_header() -> None:
    text = "// c\n/* d */ .version 8.7\n.target sm_90a,\n debug, texmode_independent .address_size 64\n.target sm_90a\n"
    module = parse_module(text, "a.ptx")
    assert module.version == (8, 7)
    assert module.targets == ("sm_90a", "debug", "texmode_independent")
    assert module.address_size == 64
    assert module.source.name == "a.ptx"


def test_address_size_defaults_to_32() -> None:
    assert parse_module(".version 9.0 .target sm_75").address_size == 32


def test_nuls_behind_the_text_are_passed_over() -> None:
    assert parse_module(".version 9.0 .target sm_75\n\0\0\0").version == (9, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        ".target sm_90 .version 9.0",
        ".version 9 .target sm_90",
        ".version 9.0",
        ".version 9.0 .address_size 64 .target sm_90",
        ".version 9.0; .target sm_90",
        ".version 9.0 .target sm_90 .version 9.0",
        ".version 9.0 .target sm_90 .address_size 48",
        ".version 9.0 .target sm_90 .global .b32 x; .address_size 64",
        ".version 9.0 .target sm_90,",
    ],
)
def test_header_refused(text: str) -> None:
    with pytest.raises(PtxSyntaxError):
        parse_module(text)


def test_entry(module: Parse) -> None:
    (function,) = module(
        ".visible .entry k(.param .u64 a, .param .align 4 .b8 b[12])\n"
        ".maxntid 16, 16, 1 .minnctapersm 2\n.maxnreg 32 .explicitcluster .reqnctapercluster 2\n"
        ".maxclusterrank 8 .blocksareclusters .maxnctapersm 4 .reqntid 0x20\n{ ret; }"
    ).functions
    assert (function.name, function.entry, function.linkage) == ("k", True, Linkage.VISIBLE)
    assert [p.name for p in function.parameters] == ["a", "b"]
    assert function.directives == (
        ("maxntid", (16, 16, 1)),
        ("minnctapersm", (2,)),
        ("maxnreg", (32,)),
        ("explicitcluster", ()),
        ("reqnctapercluster", (2,)),
        ("maxclusterrank", (8,)),
        ("blocksareclusters", ()),
        ("maxnctapersm", (4,)),
        ("reqntid", (32,)),
    )
    assert function.body is not None and len(function.body) == 1


def test_function(module: Parse) -> None:
    (function,) = module(
        ".weak .func .attribute(.unified(1, 2)) (.param .b32 r) f(.reg .b32 a) .noreturn .abi_preserve 10"
        " .abi_preserve_control 3 { ret; }"
    ).functions
    assert (function.name, function.entry, function.linkage) == ("f", False, Linkage.WEAK)
    assert [(v.name, v.space) for v in function.returns] == [("r", Space.PARAM)]
    assert [(v.name, v.space) for v in function.parameters] == [("a", Space.REG)]
    assert function.directives == (
        ("unified", (1, 2)),
        ("noreturn", ()),
        ("abi_preserve", (10,)),
        ("abi_preserve_control", (3,)),
    )


@pytest.mark.parametrize(
    "text", [".func f;", ".func f();", ".extern .func f() .noreturn;", ".entry f;", ".func f .noreturn;"]
)
def test_declarations_have_no_body(module: Parse, text: str) -> None:
    (function,) = module(text).functions
    assert function.name == "f"
    assert function.body is None


def test_span_of_a_function(module: Parse) -> None:
    read = module("  .visible .func f() { ret; /* } */ }\n.extern .func g() ;")
    texts = [read.source.text[f.offset : f.end] for f in read.functions]
    assert texts == [".visible .func f() { ret; /* } */ }", ".extern .func g() ;"]


def test_pragma_in_a_header_stands_first_in_the_body(module: Parse) -> None:
    (function,) = module('.entry k() .pragma "nounroll"; .maxntid 3 { ret; }').functions
    assert function.body is not None
    assert getattr(function.body[0], "texts", None) == ("nounroll",)
    assert function.directives == (("maxntid", (3,)),)


def test_the_rest_of_module_scope(module: Parse) -> None:
    read = module(
        '.file 1 "a.cu"\n.file 2 "b c.cuh", 1234, 56\n.pragma "nounroll", "x";\n'
        ".func f() { ret; }\n.func g();\n.alias g, f;\n"
        '.section .debug_str\n{\nL: .b8 104, 105 // }\n.b8 "}" { .b32 L } }\n.section .debug_abbrev { }\n'
        '@@DWARF .byte 0x01 }\n# 1 "x"\n'
    )
    assert read.files == {1: "a.cu", 2: "b c.cuh"}
    assert [pragma.texts for pragma in read.pragmas] == [("nounroll", "x")]
    assert [(alias.name, alias.target) for alias in read.aliases] == [("g", "f")]
    assert [function.name for function in read.functions] == ["f", "g"]


def test_parse_function_by_span() -> None:
    text = ".version 9.0 .target sm_75\n.func f() { ret; }\n.visible .entry k() { exit; }\n"
    source = Source(text)
    start = text.index(".visible")
    function = parse_function(source, start, text.index("}", start) + 1)
    assert function == parse_module(text).functions[1]
    with pytest.raises(PtxSyntaxError):
        parse_function(source, start, len(text) - 3)
    with pytest.raises(PtxSyntaxError, match="end of the function"):
        parse_function(source, text.index(".func"), len(text))
    with pytest.raises(PtxSyntaxError, match=r"'\.entry' or '\.func'"):
        parse_function(source, 0, len(text))


@pytest.mark.parametrize(
    "text",
    [
        ";",
        "ret;",
        ".loc 1 1 1",
        "#define X",
        ".entry {ret;}",
        ".entry k() {ret;};",
        ".entry k() {ret;",
        ".entry k() .noreturn {ret;}",
        ".entry k() .maxntid {ret;}",
        ".entry k() .maxntid 1,2,3,4 {ret;}",
        ".entry k() .maxntid (1+2) {ret;}",
        ".entry k .maxntid 3 (.param .b32 a) {ret;}",
        ".func f() .maxntid 3 {ret;}",
        ".func .noreturn f(){ret;}",
        ".func f .noreturn () {ret;}",
        ".func f() .attribute(.unified(1,2)) {ret;}",
        ".alias g f;",
        ".alias g, f",
        '.file "x"',
        '.file 1 "x',
        ".section .debug_str { ",
        '.section .debug_str { .b8 "x }',
        ".section .debug_str;",
        ".pragma nounroll;",
        ".visible .file 1 \"x\"",
        ".frobnicate 1;",
    ],
)  # fmt: skip
def test_refused(module: Parse, text: str) -> None:
    with pytest.raises(PtxSyntaxError):
        module(text)
