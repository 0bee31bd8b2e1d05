"""What a lowered kernel says of itself: arguments, hidden ones, shared memory, directives."""

from __future__ import annotations

import re

import lower_rig as rig
import pytest

from zluda.backend.info import Argument, ArgumentKind
from zluda.compiler.kernel import KernelInfo
from zluda.ptx.errors import PtxError, PtxUnsupported


def info(text: str) -> KernelInfo:
    (found,) = rig.lowered(rig.HEADER + text, "k").kernels
    return found


def test_arguments_are_what_is_read() -> None:
    found = info(
        """.visible .entry k(.param .u64 p, .param .u32 unused, .param .align 8 .b8 s[24], .param .u16 h)
        { .reg .u64 %p, %n; .reg .u32 %a; .reg .u16 %h;
          ld.param.u64 %p, [p]; ld.param.u64 %n, [s+16]; ld.param.u32 %a, [s+4]; ld.param.u16 %h, [h];
          cvta.to.global.u64 %p, %p; st.global.u64 [%p], %n; st.global.u32 [%p+8], %a; st.global.u16 [%p+12], %h; ret; }
        """
    )
    assert [(p.offset, p.size) for p in found.parameters] == [(0, 8), (8, 4), (16, 24), (40, 2)]
    assert found.parameter_bytes == 42
    assert found.signature.arguments == (
        Argument(kind=ArgumentKind.POINTER, offset=0, size=8),
        Argument(kind=ArgumentKind.VALUE, offset=20, size=4),
        Argument(kind=ArgumentKind.VALUE, offset=32, size=8),
        Argument(kind=ArgumentKind.VALUE, offset=40, size=2),
    )
    assert found.hidden == ()


def test_parameter_read_at_run_time_is_passed_in_words() -> None:
    found = info(
        """.visible .entry k(.param .u64 p, .param .align 4 .b8 s[14])
        { .reg .u64 %p, %s; .reg .u32 %a;
          ld.param.u64 %p, [p]; mov.b64 %s, s; cvta.param.u64 %s, %s; ld.u32 %a, [%s+4]; st.global.u32 [%p], %a; ret; }
        """
    )
    offsets = [(a.offset, a.size) for a in found.signature.arguments]
    assert offsets == [(0, 8), (8, 8), (16, 4), (20, 2)]


def test_hidden_arguments() -> None:
    found = info(
        """.global .u32 g; .extern .shared .b8 d[]; .shared .align 4 .b8 s[20];
        .visible .entry k(.param .u32 n)
        { .reg .u32 %a, %b; mov.u32 %a, %tid.x; shfl.sync.idx.b32 %a, %a, 0, 31, -1; st.global.u32 [g], %a;
          mov.u32 %b, d; st.shared.u32 [%b], %a; st.shared.u32 [s+4], %a; ret; }
        """
    )
    assert found.flat
    assert found.signature.required_subgroup_size == 32
    assert found.hidden == ("module", "block")
    kinds = [(a.kind, a.offset, a.size) for a in found.signature.arguments]
    assert kinds == [
        (ArgumentKind.POINTER, 8, 8),
        (ArgumentKind.VALUE, 16, 4),
        (ArgumentKind.VALUE, 20, 4),
        (ArgumentKind.VALUE, 24, 4),
        (ArgumentKind.SHARED, 0, 0),
    ]
    assert found.signature.packed_size == 32
    # 20 bytes, then the dynamic part at a multiple of 16.
    assert found.static_shared_bytes == 32
    assert "warp" in found.uses


def test_only_what_is_called_counts() -> None:
    text = """.func warps() { .reg .u32 a; activemask.b32 a; ret; } .func plain() { ret; }
    .visible .entry k() { call plain; ret; } .visible .entry l() { call warps; ret; }
    """
    kernels = rig.lowered(rig.HEADER + text, "k", "l").kernels
    assert [kernel.flat for kernel in kernels] == [False, True]


def test_directives() -> None:
    found = info(".visible .entry k() .reqntid 8, 4 .minnctapersm 2 { ret; }")
    assert (found.max_threads, found.required_block) == (32, (8, 4, 1))
    assert info(".visible .entry k() .maxntid 256, 1, 1 { ret; }").max_threads == 256
    assert (found.ptx_version, found.sm) == ((8, 7), 90)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("wibble.u32 %a, %a;", "wibble.u32: this instruction is not lowered"),
        ("mov.u32 %a, nothing;", "nothing here is called nothing"),
        ("mov.u32 %a, %nonsense;", "%nonsense is not a register declared here"),
        ("ld.global.u32 %a, [elsewhere];", "elsewhere is extern and this module does not define it"),
        ("call (%a), undefined, (%a);", "undefined has no body in this module"),
        ("bra %a;", "there is no label %a here"),
        ("ld.global.u32 %a, [%a];", "a 32-bit address outside of shared memory"),
    ],
)
def test_errors_name_the_place(body: str, reason: str) -> None:
    text = (
        ".extern .global .u32 elsewhere;\n.extern .func (.param .u32 r) undefined(.param .u32 a);\n"
        f".visible .entry k()\n{{\n    .reg .u32 %a;\n      {body}\n}}"
    )
    with pytest.raises(PtxError, match=re.escape(reason)) as error:
        rig.lowered(rig.HEADER + text, "k")
    assert (error.value.line, error.value.column) == (9, 7)
    assert "in k" in str(error.value)
    assert body in str(error.value)


def test_kernel_that_is_not_asked_for_is_not_looked_at() -> None:
    text = ".visible .entry broken() { wibble.u32; } .visible .entry k() { ret; }"
    assert "broken" not in rig.lowered(rig.HEADER + text, "k").ir
    with pytest.raises(PtxUnsupported, match="in broken"):
        rig.lowered(rig.HEADER + text, "broken")


def test_a_device_function_error_names_the_kernel_too() -> None:
    text = ".func f() { .reg .u32 a; wibble.u32 a, a; ret; } .visible .entry k() { call f; ret; }"
    with pytest.raises(PtxUnsupported, match=r"in f \(reached from k\)"):
        rig.lowered(rig.HEADER + text, "k")
