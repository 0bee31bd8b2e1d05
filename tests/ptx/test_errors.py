"""What a syntax error says: place, reason, the line with a caret."""

from __future__ import annotations

import pytest

from zluda.ptx.errors import PtxSyntaxError
from zluda.ptx.parser import parse_module
from zluda.ptx.source import Position, Source


def error(text: str) -> PtxSyntaxError:
    with pytest.raises(PtxSyntaxError) as caught:
        parse_module(text, "kernel.ptx")
    return caught.value


def test_whole_message() -> None:
    text = (
        ".version 9.0\n.target sm_75\n.visible .entry scale(.param .u64 a)\n{\n\tadd.s32 \t%r1, %r2 %r3;\n\tret;\n}\n"
    )
    assert str(error(text)) == (
        "kernel.ptx:5:20 in scale: expected ',' or ';' behind an operand, found '%r3'\n"
        "     add.s32  %r1, %r2 %r3;\n"
        "                       ^"
    )


def test_a_missing_semicolon_is_found_at_the_next_line() -> None:
    caught = error(".version 9.0\n.target sm_75\n.entry k()\n{\n  add.s32 %r1, %r2, %r3\n  ret;\n}\n")
    assert (caught.line, caught.column, caught.function) == (6, 3, "k")


def test_header_errors_name_the_function() -> None:
    caught = error(".version 9.0\n.target sm_75\n.entry k(.param .b32 a) .bogus {ret;}")
    assert (caught.line, caught.column, caught.function) == (3, 25, "k")
    assert "found '.bogus'" in str(caught)


def test_hint() -> None:
    caught = error(".version 9.0\n.target sm_75\n.entry k() { ld.u32 %r1, [%r2-4]; }")
    assert caught.hint == "a negative offset is written [r+-4]"
    assert str(caught).endswith("\n    a negative offset is written [r+-4]")


def test_unterminated_things_point_at_their_start() -> None:
    assert (error(".version 9.0\n  /* abc\n").line, error(".version 9.0\n  /* abc\n").column) == (2, 3)
    caught = error(".version 9.0\n.target sm_75\n.section .debug_x\n {\n")
    assert (caught.line, caught.column) == (4, 2)
    caught = error('.version 9.0\n.target sm_75\n.pragma "abc\n";')
    assert (caught.line, caught.column) == (3, 9)


def test_end_of_text() -> None:
    caught = error(".version 9.0\n.target sm_75\n.entry k() {\n  ret;\n")
    assert "the end of the text" in str(caught)
    assert caught.line == 4


def test_long_lines_are_cut_around_the_caret() -> None:
    caught = error(".version 9.0 .target sm_75 .global .b8 x[9] = {" + "1, " * 5000 + "?" + ", 1" * 5000 + "};")
    where, excerpt, caret = str(caught).split("\n")
    assert len(excerpt) < 200
    assert excerpt[caret.index("^")] == "?"
    assert "found '?'" in where


def test_unprintable_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in str(error(".version 9.0\n.target sm_75\n\x1b[31m")).split("\n")[1]


def test_source_positions() -> None:
    source = Source("ab\n\ncd")
    assert [source.position(offset) for offset in (0, 2, 3, 4, 6)] == [
        Position(1, 1),
        Position(1, 3),
        Position(2, 1),
        Position(3, 1),
        Position(3, 3),
    ]
    assert [source.line_text(line) for line in (1, 2, 3)] == ["ab", "", "cd"]
