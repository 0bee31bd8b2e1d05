"""Linking of PTX modules: what meets, what stays apart, what does not fit."""

from __future__ import annotations

import pytest

from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.index import ModuleIndex, index_module
from zluda.ptx.link import LinkError, link
from zluda.ptx.parser import parse_module
from zluda.ptx.tree import Integer, Linkage, Variable

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def linked(*texts: str) -> ModuleIndex:
    """The index of the result, which is one whole module."""
    text = link([(f"file{n}", text if text.startswith(".version") else HEADER + text) for n, text in enumerate(texts)])
    parse_module(text)
    return index_module(text)


def reasons(*texts: str) -> tuple[str, ...]:
    with pytest.raises(LinkError) as caught:
        linked(*texts)
    return caught.value.reasons


def initial(index: ModuleIndex, name: str) -> object:
    return index.variables[name].initialiser


def test_one_module_stays_as_it_is() -> None:
    text = HEADER + '.file 1 "a.cu"\n.visible .entry k() {\n.loc 1 2 3\nret; }\n\0'
    assert link([("a", text)]) == text


def test_a_function_of_another_module() -> None:
    index = linked(
        ".extern .func (.param .b32 r) twice (.param .b32 x);\n"
        ".visible .entry k(.param .u64 out) { .param .b32 a; .param .b32 b; call (b), twice, (a); ret; }",
        ".visible .func (.param .b32 r) twice(.param .b32 x) { ret; }",
    )
    assert index.entries == ("k",)
    assert index.functions["twice"].defined
    assert index.reachable("k").functions == ("k", "twice")


def test_variables_of_another_module() -> None:
    index = linked(
        ".extern .global .u32 a, b[4];\n.extern .const .align 8 .f64 c;\n"
        ".visible .entry k() { .reg .b32 %r<2>; ld.global.u32 %r0, [a]; ld.global.u32 %r1, [b+4]; ret; }",
        ".visible .global .u32 a = 5, /* x, y */ b[4] = {1, 2, 3, 4};\n"
        ".visible .const .align 8 .f64 c = 0d4000000000000000;",
    )
    assert initial(index, "a") == Integer(5)
    assert initial(index, "b") == (Integer(1), Integer(2), Integer(3), Integer(4))
    assert index.variables["c"].linkage is Linkage.VISIBLE
    assert {v.name for v in index.module.variables} == {"a", "b", "c"}


def test_what_is_a_files_own_stays_apart() -> None:
    body = (
        ".global .u32 state = {n};\n.func helper();\n"
        ".func helper() {{ .reg .b32 %r<3>; ld.global.u32 %r1, [state]; // state helper\nret; }}\n"
        ".visible .entry k{n}() {{ call helper; ret; }}"
    )
    index = linked(body.format(n=1), body.format(n=2))
    assert index.entries == ("k1", "k2")
    for kernel, number in (("k1", 1), ("k2", 2)):
        found = index.reachable(kernel)
        (variable,) = found.variables
        assert initial(index, variable) == Integer(number)
        assert len(found.functions) == 2
    assert index.reachable("k1").functions[1] != index.reachable("k2").functions[1]


def test_a_new_name_is_nobodys() -> None:
    index = linked(
        ".visible .global .u32 x = 1;\n.visible .global .u32 x__2 = 2;",
        ".global .u32 x = 3;\n.visible .entry k() { .reg .b32 %r; ld.global.u32 %r, [x]; ret; }",
    )
    (variable,) = index.reachable("k").variables
    assert initial(index, variable) == Integer(3)
    assert initial(index, "x") == Integer(1)
    assert initial(index, "x__2") == Integer(2)


def test_weak_gives_way() -> None:
    weak = ".weak .func f() { .reg .b32 %r; mov.u32 %r, 1; ret; }\n"
    strong = ".visible .func f() { .reg .b32 %r; mov.u32 %r, 2; ret; }\n"
    assert "mov.u32 %r, 2" in linked(weak, strong, weak).text("f")
    assert "mov.u32 %r, 2" in linked(strong, weak).text("f")
    third = ".weak .func f() { .reg .b32 %r; mov.u32 %r, 3; ret; }\n"
    assert "mov.u32 %r, 1" in linked(weak, third).text("f")
    assert linked(".weak .entry t() { ret; }", ".weak .entry t() { ret; }").entries == ("t",)


def test_common_is_as_large_as_the_largest() -> None:
    index = linked(".common .global .u32 c;", ".common .global .u32 c[8];", ".common .global .u32 c[2];")
    assert index.variables["c"].shape == (8,)
    index = linked(".common .global .u32 c;", ".common .global .u32 c[2] = {1, 2};")
    assert initial(index, "c") == (Integer(1), Integer(2))
    assert "larger elsewhere" in reasons(".common .global .u32 c = 1;", ".common .global .u32 c[2];")[0]
    assert "only one file" in reasons(".common .global .u32 c = 1;", ".common .global .u32 c = 1;")[0]


def test_dynamic_shared_memory_is_declared_once_with_the_largest_alignment() -> None:
    index = linked(
        ".extern .shared .align 4 .b8 pool[];\n.visible .entry a() { .reg .b32 %r; mov.u32 %r, pool; ret; }",
        ".extern .shared .align 16 .b8 pool[];\n.visible .entry b() { .reg .b32 %r; mov.u32 %r, pool; ret; }",
    )
    pools: list[Variable] = [v for v in index.module.variables if v.name == "pool"]
    assert [(v.align, v.linkage) for v in pools] == [(16, Linkage.EXTERN)]


def test_undefined() -> None:
    text = ".extern .func gone();\n.extern .global .u32 lost;\n.extern .func unused();\n"
    user = "{ .reg .b32 %r; call gone; ld.global.u32 %r, [lost]; ret; }"
    expected = ("Undefined reference to 'gone' in 'file0'", "Undefined reference to 'lost' in 'file0'")
    assert reasons(f"{text}.visible .entry k() {user}") == expected
    assert reasons(f"{text}.visible .entry k() {user}", ".func gone() { ret; }\n.global .u32 lost;") == expected


def test_system_calls_need_no_definition() -> None:
    index = linked(
        ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
        ".visible .entry k() { .param .b32 r; .param .b64 x; call (r), vprintf, (x, x); ret; }",
        ".visible .entry l() { ret; }",
    )
    assert index.functions["vprintf"].linkage is Linkage.EXTERN


def test_twice_defined() -> None:
    assert reasons(".visible .func f() { ret; }", ".visible .func f() { ret; }") == (
        "Multiple definition of 'f' in 'file0' and 'file1'",
    )
    assert reasons(".visible .entry k() { ret; }", ".visible .entry k() { ret; }") == (
        "Multiple definition of 'k' in 'file0' and 'file1'",
    )
    assert reasons(".visible .global .u32 v;", ".visible .global .u32 v = 1;") == (
        "Multiple definition of 'v' in 'file0' and 'file1'",
    )


@pytest.mark.parametrize(
    ("declared", "defined", "reason"),
    [
        (
            ".extern .global .u32 x;",
            ".visible .const .u32 x = 1;",
            "declared as a .global variable, defined as a .const",
        ),
        (".extern .func x();", ".visible .global .u32 x;", "declared as a function, defined as a .global variable"),
        (".extern .func x(.param .b32 a);", ".visible .func x(.param .b64 a) { ret; }", "different parameters"),
    ],
)
def test_declarations_that_do_not_fit(declared: str, defined: str, reason: str) -> None:
    (found,) = reasons(declared, defined)
    assert reason in found


def test_headers() -> None:
    index = linked(
        ".version 7.1\n.target sm_90, debug\n.address_size 64\n.visible .entry a() { ret; }",
        ".version 8.3\n.target sm_75\n.address_size 64\n.visible .entry b() { ret; }",
    )
    assert (index.version, index.targets, index.address_size) == ((8, 3), ("sm_90",), 64)
    assert "32 bits" in reasons("", ".version 7.1\n.target sm_75\n.address_size 32\n")[0]


def test_debug_information_is_left_out() -> None:
    text = (
        '.file 1 "a.cu"\n.section .debug_str { $L: .b8 65, 0 }\n'
        ".visible .entry {}() {{\n.loc 1 5 3, function_name $L, inlined_at 1 7 0\nret; }}\n"
    )
    first, second = (text.split("{}")[0] + name + text.split("{}")[1].format() for name in "ab")
    index = linked(first, second)
    assert index.entries == ("a", "b")
    assert not index.module.files
    assert ".loc" not in index.text("a")


def test_aliases() -> None:
    index = linked(
        ".visible .func real() { ret; }\n.visible .func other();\n.alias other, real;",
        ".extern .func other();\n.visible .entry k() { call other; ret; }",
    )
    assert index.reachable("k").functions == ("k", "other", "real")


def test_no_ptx() -> None:
    with pytest.raises(PtxSyntaxError, match="file1:4"):
        linked("", "nonsense")
