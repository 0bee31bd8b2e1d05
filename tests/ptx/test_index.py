"""The index of a module against full parses, and what reaches what."""

from __future__ import annotations

import random

import pytest

from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.index import index_module
from zluda.ptx.parser import parse_module
from zluda.ptx.tree import Linkage

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


class Generated:
    """A random module, with what its functions mention known from how it was made."""

    def __init__(self, seed: int) -> None:
        pick = random.Random(seed)
        functions = [f"f{n}" for n in range(pick.randint(2, 8))]
        kernels = [f"k{n}" for n in range(pick.randint(1, 4))]
        variables = [f"v{n}" for n in range(pick.randint(0, 6))]
        self.kernels = kernels
        self.edges: dict[str, set[str]] = {}
        text = [HEADER]
        declared = [f".extern .func {name}();" for name in functions]
        pieces = []
        for name in variables:
            target = pick.choice([None, *functions, *variables])
            self.edges[name] = {target} if target else set()
            pieces.append(f".global .align 8 .b64 {name}[2] = {{0, {target or 7}}};")
        for name in (*functions, *kernels):
            wanted = pick.sample([*functions, *variables], k=pick.randint(0, min(3, len(functions) + len(variables))))
            self.edges[name] = set(wanted)
            lines = []
            for other in wanted:
                if other in functions:
                    lines.append(
                        pick.choice([f"call {other};", f"mov.u64 %rd1, {other};", f"T: .calltargets {other};"])
                    )
                else:
                    lines.append(pick.choice([f"ld.global.u32 %r1, [{other}+4];", f"mov.u64 %rd1,{other};"]))
            lines += pick.sample(
                [
                    "// call f0; } v0",
                    "/* { f1 \n v1 } */",
                    '.pragma "} f0 {";',
                    "{ { // } \n } }",
                    "mov.b64 {%r1, %r2}, %rd1;",
                    "add.f32 %f0, %f0, 0f00000000;",
                    "{ .reg .b32 t; { ret; } }",
                ],
                k=3,
            )
            pick.shuffle(lines)
            kind = ".visible .entry" if name in kernels else ".visible .func"
            pieces.append(f"{kind} {name}() // {{ }}\n{{\n" + "\n".join(lines) + "\n}")
        pick.shuffle(pieces)
        self.text = "\n".join(text + declared + pieces) + "\n"
        self.functions = {*functions, *kernels}

    def reach(self, start: str) -> set[str]:
        """Everything that can be reached, by repeated union."""
        found = {start}
        while True:
            more = found.union(*(self.edges[name] for name in found))
            if more == found:
                return found
            found = more


@pytest.mark.parametrize("seed", range(40))
def test_index_equals_the_full_parse(seed: int) -> None:
    made = Generated(seed)
    index = index_module(made.text, "m")
    module = parse_module(made.text, "m")
    assert index.module.variables == module.variables
    assert (index.version, index.targets, index.address_size) == (module.version, module.targets, module.address_size)
    definitions = [function for function in module.functions if function.body is not None]
    assert list(index.entries) == [function.name for function in definitions if function.entry]
    for function in definitions:
        assert index.function(function.name) == function
        assert index.text(function.name) == made.text[function.offset : function.end]
        header = index.entry_signature(function.name)
        assert header.body is None
        header.body = function.body
        assert header == function


@pytest.mark.parametrize("seed", range(40))
def test_reachable(seed: int) -> None:
    made = Generated(seed)
    index = index_module(made.text)
    for name in made.kernels:
        expected = made.reach(name)
        functions, variables = index.reachable(name)
        assert functions[0] == name
        assert len(set(functions)) == len(functions)
        assert set(functions) == expected & made.functions
        assert variables == expected - made.functions


def test_aliases_reach_their_target() -> None:
    index = index_module(
        HEADER + ".func f() { ret; } .func g(); .alias g, f;\n.entry k() { call g; ret; } .entry other() { ret; }"
    )
    assert index.aliases == {"g": "f"}
    assert set(index.reachable("k").functions) == {"k", "g", "f"}
    assert index.reachable("other").functions == ("other",)


def test_words_that_only_look_like_names() -> None:
    index = index_module(
        HEADER + ".global .b32 x; .global .b32 u32; .global .b32 f3F800000; .global .b32 %r1;\n"
        ".entry k() { mov.u32 %r2, %tid.x; mov.f32 %f1, 0f3F800000; ret; }\n"
        ".entry l() { mov.u32 %r2, %r1; }"
    )
    assert index.reachable("k").variables == frozenset()
    assert index.reachable("l").variables == {"%r1"}


def test_declarations_and_definitions() -> None:
    index = index_module(
        HEADER + ".extern .func vprintf(.param .b64 a);\n.extern .global .b32 x;\n.visible .global .b32 x = 3;\n"
        ".visible .func (.param .b32 r) f(.param .b32 a);\n.visible .func (.param .b32 r) f(.param .b32 a) { ret; }\n"
        ".func (.param .b32 r) f(.param .b32 a);"
    )
    assert not index.functions["vprintf"].defined
    assert index.functions["f"].defined
    assert index.variables["x"].linkage is Linkage.VISIBLE
    assert [p.name for p in index.entry_signature("f").returns] == ["r"]
    assert index.function("vprintf").body is None
    assert index.entries == ()


def test_bodies_are_not_looked_into() -> None:
    index = index_module(HEADER + ".entry bad() { this is no PTX at all ; }\n.entry good() { ret; }")
    assert index.entries == ("bad", "good")
    assert index.function("good").body is not None
    with pytest.raises(PtxSyntaxError, match="in bad"):
        index.function("bad")


def test_headers_of_every_shape() -> None:
    index = index_module(
        HEADER + '.entry a/* { */() .pragma "{;"; .maxntid 3 { ret; }\n'
        ".func .attribute(.unified(1,2)) (.param .b32 r) b (.param .b32 p) .noreturn { ret; }\n"
        ".func // {\n (.reg .b32 r) // }\n c { ret; }\n.func d .noreturn;"
    )
    assert [(span.name, span.defined) for span in index.functions.values()] == [
        ("a", True),
        ("b", True),
        ("c", True),
        ("d", False),
    ]
    assert index.entry_signature("a").directives == (("maxntid", (3,)),)
    assert index.entry_signature("b").directives == (("unified", (1, 2)), ("noreturn", ()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".entry k() { { ret; }", "in k: this function never ends"),
        ('.entry k() { .pragma "x; }', "in k: this string never ends"),
        (".entry k() { /* }", "in k: this comment never ends"),
        (".entry k() { } }", "expected a directive"),
        (".entry k() { } .entry k() { }", "k is defined twice"),
        (".entry { }", "a kernel's name"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        index_module(HEADER + text)
    assert message in str(caught.value)


def test_unknown_names() -> None:
    index = index_module(HEADER)
    for ask in (index.function, index.entry_signature, index.reachable, index.text):
        with pytest.raises(KeyError):
            ask("missing")
