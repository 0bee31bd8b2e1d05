"""Sizes, alignments and the parameter block."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zluda.ptx import layout
from zluda.ptx.layout import Place
from zluda.ptx.tree import Module

Parse = Callable[[str], Module]


@pytest.mark.parametrize(
    ("text", "size", "align"),
    [
        (".b8 x", 1, 1),
        (".f16x2 x", 4, 4),
        (".f64 x", 8, 8),
        (".b128 x", 16, 16),
        (".v4 .f32 x", 16, 16),
        (".v2 .b8 x[3]", 6, 2),
        (".align 4 .b8 x[12]", 12, 4),
        (".align 16 .f32 x[3]", 12, 16),
        (".b32 x[2][3]", 24, 4),
        (".b32 x[] = {1, 2, 3}", 12, 4),
        (".b16 x[][2] = {{1, 2}, {3, 4}, {5, 6}}", 12, 2),
        (".v2 .f32 x[] = {{1.0, 2.0}, {3.0, 4.0}}", 16, 8),
        (".texref x", 8, 8),
    ],
)
def test_sizes(module: Parse, text: str, size: int, align: int) -> None:
    (variable,) = module(f".global {text};").variables
    assert (layout.size_of(variable), layout.align_of(variable)) == (size, align)


def test_dynamic_shared_memory_has_no_size(module: Parse) -> None:
    (variable,) = module(".extern .shared .align 16 .b8 x[];").variables
    assert (layout.size_of(variable), layout.align_of(variable)) == (0, 16)


def test_predicates_cannot_lie_in_memory(module: Parse) -> None:
    (variable,) = module(".global .pred x;").variables
    with pytest.raises(ValueError, match=r"\.pred x"):
        layout.size_of(variable)


def test_parameter_block(module: Parse) -> None:
    (function,) = module(
        ".entry k(.param .u8 a, .param .u64 .ptr .global b, .param .u16 c, .param .align 4 .b8 d[5],"
        " .param .f64 e, .param .align 16 .b8 f[20], .param .b8 g) { ret; }"
    ).functions
    block = layout.parameters(function.parameters)
    assert block.places == (
        Place("a", 0, 1, 1),
        Place("b", 8, 8, 8),
        Place("c", 16, 2, 2),
        Place("d", 20, 5, 4),
        Place("e", 32, 8, 8),
        Place("f", 48, 20, 16),
        Place("g", 68, 1, 1),
    )
    assert (block.size, block.align) == (69, 16)


def test_an_empty_block() -> None:
    assert layout.parameters(()).size == 0
