"""The module's data block: places and initial bytes, worked out by hand from section 5.4 of the PTX ISA."""

from __future__ import annotations

import struct
from itertools import pairwise

import lower_rig as rig
import pytest

from zluda.compiler.lower.data import FUNCTION_ID_STEP, DataLayout, build, layout
from zluda.ptx.errors import PtxUnsupported
from zluda.ptx.index import ModuleIndex, index_module

BASE = 0x6000_0000_0000


def indexed(text: str) -> ModuleIndex:
    return index_module(rig.HEADER + text, "<test>")


def laid_out(index: ModuleIndex) -> DataLayout:
    return layout(index.variables.values(), index.functions)


def bytes_of(index: ModuleIndex, name: str) -> bytes:
    found = laid_out(index)
    place = found.places[name]
    return build(found, BASE, index.source)[place.offset : place.offset + place.size]


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (".global .u32 v = 5;", struct.pack("<I", 5)),
        (".global .s16 v = -2;", struct.pack("<h", -2)),
        (".global .f32 v = 1.5;", struct.pack("<f", 1.5)),
        (".global .f32 v = 0f3FC00000;", struct.pack("<f", 1.5)),
        (".global .f64 v = 0d3FF8000000000000;", struct.pack("<d", 1.5)),
        (".global .f32 v[3] = {1.0, 0.1};", struct.pack("<3f", 1.0, 0.1, 0.0)),
        (".global .u8 v[4] = {1, 255, 3};", bytes([1, 255, 3, 0])),
        (".global .s32 v[2][3] = {{1, 2}, {4, 5, 6}};", struct.pack("<6i", 1, 2, 0, 4, 5, 6)),
        (".global .v4 .f32 v = {1.0, 2.0, 3.0, 4.0};", struct.pack("<4f", 1, 2, 3, 4)),
        (".global .u16 v[] = {7, 8, 9};", struct.pack("<3H", 7, 8, 9)),
        (".const .b64 v = 0xFEDCBA9876543210;", struct.pack("<Q", 0xFEDCBA9876543210)),
        (".global .u32 v;", bytes(4)),
    ],
)
def test_values(declaration: str, expected: bytes) -> None:
    assert bytes_of(indexed(declaration), "v") == expected


def test_addresses() -> None:
    index = indexed(
        ".global .u8 first[3] = {1, 2, 3};\n.global .u32 a[4];\n.const .u32 c = 9;\n.func f() { ret; }\n"
        ".global .u64 v[5] = {a, a+8, generic(c), f, 0};"
    )
    found = laid_out(index)
    a, c = BASE + found.places["a"].offset, BASE + found.places["c"].offset
    assert bytes_of(index, "v") == struct.pack("<5Q", a, a + 8, c, found.functions["f"], 0)
    assert found.functions["f"] == FUNCTION_ID_STEP


def test_bytes_of_an_address() -> None:
    """Section 5.4.4.1: a mask chooses one byte of an address."""
    index = indexed(
        ".global .u32 a[4];\n.global .u8 v[8] = {0xFF(a), 0xFF00(a), 0xFF0000(a), 0xFF000000(a), 0xFF00000000(a), "
        "0xFF0000000000(a), 0xFF000000000000(a), 0xFF00000000000000(a)};"
    )
    assert bytes_of(index, "v") == struct.pack("<Q", BASE + laid_out(index).places["a"].offset)


def test_alignment_and_order_do_not_depend_on_what_is_lowered() -> None:
    index = indexed(".global .u8 x;\n.global .align 64 .b8 y[3];\n.global .u64 z;\n.extern .global .u32 elsewhere;")
    found = laid_out(index)
    assert found.places["y"].offset % 64 == 0
    assert found.places["z"].offset % 8 == 0
    assert found.align == 64
    assert "elsewhere" not in found.places
    spans = sorted((p.offset, p.offset + p.size) for p in found.places.values())
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert spans[-1][1] <= found.size


def test_address_of_a_variable_that_nothing_defines() -> None:
    index = indexed(".extern .global .u32 elsewhere;\n.global .u64 v = elsewhere;")
    with pytest.raises(PtxUnsupported, match="elsewhere, which this module does not define") as error:
        build(laid_out(index), BASE, index.source)
    assert error.value.line == 5


def test_more_values_than_elements() -> None:
    index = indexed(".global .u32 v[2] = {1, 2, 3};")
    with pytest.raises(PtxUnsupported, match="more values"):
        build(laid_out(index), BASE, index.source)
