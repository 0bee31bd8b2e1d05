"""The rewrites before SPIR-V emission: what they turn into is valid, and means the same."""

from __future__ import annotations

import itertools
import re

import pytest

from zluda.compiler import emit, lint, validate
from zluda.compiler.emitter import parsed
from zluda.compiler.legalise import legalise

HEAD = 'target triple = "spirv64-unknown-unknown"\n'


def kernel(*lines: str, parameters: str = "i64 %x, i32 %y, ptr addrspace(1) %p") -> str:
    text = "\n".join("  " + line for line in lines)
    return f"{HEAD}define spir_kernel void @k({parameters}) {{\n{text}\n  ret void\n}}\n"


def check(ir: str) -> str:
    """Legalised IR, which LLVM accepts, the lint passes and spirv-val finds valid."""
    after = legalise(ir)
    with parsed(after):
        pass
    lint.check(after)
    validate.validate(emit.spirv(after))
    return after


COMBINATIONS = [
    (source, narrow, wide)
    for source, narrow, wide in itertools.product((8, 16, 32, 64), (1, 8, 16, 32), (8, 16, 32, 64))
    if narrow < source and narrow < wide
]


def evaluate(ir: str, value: int, width: int) -> int:
    """Runs the trunc, zext and and of straight-line IR on integers, by the language reference's words."""
    values = {"%x": (value, width)}
    for line in ir.splitlines():
        match re.sub(r",|\b(?:nuw|nsw|nneg) |![\w ]*", "", line).split():
            case [name, "=", "trunc" | "zext", _, operand, "to", to]:
                new = int(to[1:])
                values[name] = (values[operand][0] & (1 << new) - 1, new)
            case [name, "=", "and", _, operand, constant]:
                values[name] = (values[operand][0] & int(constant), values[operand][1])
    return values["%z"][0]


@pytest.mark.parametrize(("source", "narrow", "wide"), COMBINATIONS)
def test_a_zero_extended_truncation_keeps_its_meaning(source: int, narrow: int, wide: int) -> None:
    ir = kernel(
        f"%t = trunc i{source} %x to i{narrow}",
        f"%z = zext i{narrow} %t to i{wide}",
        f"store i{wide} %z, ptr addrspace(1) %p",
        parameters=f"i{source} %x, ptr addrspace(1) %p",
    )
    after = check(ir)
    for value in (0, 1, 0x7F, 0x80, 0xFF, 0x1234_5678_9ABC_DEF0, (1 << 64) - 1):
        assert evaluate(after, value & (1 << source) - 1, source) == value & (1 << min(source, narrow)) - 1


def test_chains_and_flags() -> None:
    after = check(
        kernel(
            "%a = trunc nuw nsw i64 %x to i32",
            "%b = trunc i32 %a to i16",
            "%c = trunc i16 %b to i8",
            "%z = zext nneg i8 %c to i16, !tag !0",
            "%w = zext i16 %z to i32",
            "store i32 %w, ptr addrspace(1) %p",
        )
        + "!0 = !{}\n"
    )
    assert "%z.fit = trunc i64 %x to i16" in after and "%z = and i16 %z.fit, 255, !tag !0" in after
    assert evaluate(after, 0xABCD_EF12_3456_789A, 64) == 0x9A


def test_vectors_blocks_in_any_order_and_names_that_are_taken() -> None:
    after = check(
        kernel(
            "br label %late",
            "early:",
            "%v = insertelement <2 x i64> zeroinitializer, i64 %x, i32 0",
            "%s = trunc <2 x i64> %v to <2 x i16>",
            "%t = zext <2 x i16> %s to <2 x i32>",
            "store <2 x i32> %t, ptr addrspace(1) %p",
            "%z = zext i16 %q to i32",
            "%z.fit = add i32 %z, 1",
            "store i32 %z.fit, ptr addrspace(1) %p",
            "ret void",
            "late:",
            "%q = trunc i64 %x to i16",
            "br label %early",
            "unreached:",
        ).replace("  unreached:\n  ret void\n", "")
    )
    assert "%t = and <2 x i32> %t.fit, <i32 65535, i32 65535>" in after
    assert "%z = and i32 %z.fit.fit, 65535" in after


def test_names_of_another_function_do_not_count() -> None:
    other = "define spir_func i16 @f(i64 %x) {\n  %t = trunc i64 %x to i16\n  ret i16 %t\n}\n"
    ir = kernel("%t = add i16 1, 2", "%z = zext i16 %t to i32") + other
    assert legalise(ir) == ir
    assert (
        legalise(HEAD + other + kernel("%t = add i16 1, 2", "%z = zext i16 %t to i32")[len(HEAD) :]).count("and") == 0
    )


def test_sign_extensions_and_plain_code_stay() -> None:
    ir = kernel("%t = trunc i64 %x to i16", "%z = sext i16 %t to i32", "%w = zext i32 %y to i64")
    assert legalise(ir) == ir
