"""Barriers, fences, atomics, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops_rig import HEADER, Module, compile_ptx, signed

from zluda.compiler.errors import CompileError

PROLOGUE = """
    .reg .b32 %me, %t0, %t1, %t2;
    .reg .b64 %out, %in, %at;
    mov.u32 %t0, %tid.x;
    mov.u32 %t1, %ctaid.x;
    mov.u32 %t2, %ntid.x;
    mad.lo.u32 %me, %t1, %t2, %t0;
    ld.param.u64 %in, [pin];
    ld.param.u64 %out, [pout];
"""


def kernel(name: str, body: str, variables: str = "") -> str:
    return f"""
.visible .entry {name}(.param .u64 pin, .param .u64 pout)
{{
    .reg .b16 %h<8>;
    .reg .b32 %r<16>;
    .reg .f32 %f<8>;
    .reg .f64 %d<8>;
    .reg .b64 %w<8>;
    .reg .pred %p<8>;
    {variables}
    {PROLOGUE}
{body}
    ret;
}}
"""


# --- barriers ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def barriers() -> Module:
    rotate = """
    mov.u32 %r0, buffer;
    shl.b32 %r1, %t0, 2;
    add.u32 %r0, %r0, %r1;
    mul.lo.u32 %r2, %t0, 3;
    st.shared.u32 [%r0], %r2;
    {barrier}
    add.u32 %r3, %t0, {step};
    rem.u32 %r3, %r3, %t2;
    shl.b32 %r3, %r3, 2;
    mov.u32 %r4, buffer;
    add.u32 %r4, %r4, %r3;
    ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %at, %me, 4;
    add.u64 %at, %out, %at;
    st.global.u32 [%at], %r5;
"""
    shared = ".shared .align 4 .b8 buffer[4096];"
    return Module(
        HEADER
        + kernel("bar_sync", rotate.format(barrier="bar.sync 0;", step=7), shared)
        + kernel("barrier_sync", rotate.format(barrier="barrier.cta.sync.aligned 1;", step=31), shared)
        + kernel(
            "bar_red",
            """
    mul.wide.u32 %at, %me, 16;
    add.u64 %at, %out, %at;
    and.b32 %r0, %t0, 3;
    setp.eq.u32 %p0, %r0, 1;
    bar.red.popc.u32 %r1, 0, %p0;
    bar.red.or.pred %p1, 0, !%p0;
    selp.u32 %r2, 1, 0, %p1;
    setp.lt.u32 %p2, %t0, 2000;
    bar.red.and.pred %p3, 0, %p2;
    selp.u32 %r3, 1, 0, %p3;
    bar.red.and.pred %p4, 0, %p0;
    selp.u32 %r4, 1, 0, %p4;
    st.global.v4.u32 [%at], {%r1, %r2, %r3, %r4};
""",
        )
        + kernel(
            "warp_sync",
            """
    mov.u32 %r0, buffer;
    shl.b32 %r1, %t0, 2;
    add.u32 %r2, %r0, %r1;
    mov.u32 %r5, 0;
    and.b32 %r3, %t0, 1;
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra even;
    st.shared.u32 [%r2], %t0;
    bar.warp.sync 0xaaaaaaaa;
    xor.b32 %r4, %r1, 8;
    add.u32 %r4, %r4, %r0;
    ld.shared.u32 %r5, [%r4];
    bra.uni join;
even:
    add.u32 %r6, %t0, 1000;
    st.shared.u32 [%r2], %r6;
    bar.warp.sync 0x55555555;
    xor.b32 %r4, %r1, 16;
    add.u32 %r4, %r4, %r0;
    ld.shared.u32 %r5, [%r4];
join:
    mul.wide.u32 %at, %me, 4;
    add.u64 %at, %out, %at;
    st.global.u32 [%at], %r5;
""",
            shared,
        )
        + kernel(
            "exit_before",
            """
    mov.u32 %r0, buffer;
    shl.b32 %r1, %t0, 2;
    add.u32 %r0, %r0, %r1;
    st.shared.u32 [%r0], %t0;
    sub.u32 %r2, %t2, 5;
    setp.ge.u32 %p0, %t0, %r2;
    @%p0 ret;
    bar.sync 0;
    ld.shared.u32 %r3, [buffer+4];
    add.u32 %r3, %r3, %t0;
    mul.wide.u32 %at, %me, 4;
    add.u64 %at, %out, %at;
    st.global.u32 [%at], %r3;
""",
            shared,
        )
        + kernel(
            "fences",
            """
    mul.wide.u32 %at, %me, 4;
    add.u64 %at, %out, %at;
    st.global.u32 [%at], %me;
    membar.cta;
    membar.gl;
    membar.sys;
    fence.sc.gpu;
    fence.acq_rel.sys;
    fence.acq_rel.cta;
    fence.acq_rel.cluster;
    griddepcontrol.wait;
    griddepcontrol.launch_dependents;
    nanosleep.u32 100;
""",
        )
    )


@pytest.mark.parametrize("threads", [1, 33, 64, 100, 256])
def test_barriers(barriers: Module, threads: int) -> None:
    for name, step in (("bar_sync", 7), ("barrier_sync", 31)):
        out = np.full(threads * 3, 0xA5A5A5A5, np.uint32)
        barriers.launch(name, [0, out], (threads, 1, 1), (3, 1, 1))
        assert out.tolist() == [(t + step) % threads * 3 for _ in range(3) for t in range(threads)], name


@pytest.mark.parametrize("threads", [1, 33, 64, 100, 256])
def test_barrier_reductions(barriers: Module, threads: int) -> None:
    out = np.full((threads * 2, 4), 0xA5A5A5A5, np.uint32)
    barriers.launch("bar_red", [0, out], (threads, 1, 1), (2, 1, 1))
    count = sum(t & 3 == 1 for t in range(threads))
    assert out.tolist() == [[count, int(count < threads), 1, int(count == threads)]] * (2 * threads)


def test_warp_barrier_in_both_arms(barriers: Module) -> None:
    out = np.full(128, 0xA5A5A5A5, np.uint32)
    barriers.launch("warp_sync", [0, out], (128, 1, 1))
    assert out.tolist() == [t ^ 2 if t & 1 else (t ^ 4) + 1000 for t in range(128)]


@pytest.mark.parametrize("threads", [33, 64, 100])
def test_threads_that_leave_before_a_barrier(barriers: Module, threads: int) -> None:
    out = np.full(threads, 0xA5A5A5A5, np.uint32)
    barriers.launch("exit_before", [0, out], (threads, 1, 1))
    assert out.tolist() == [t + 1 if t < threads - 5 else 0xA5A5A5A5 for t in range(threads)]


def test_fences(barriers: Module) -> None:
    out = np.full(64, 0xA5A5A5A5, np.uint32)
    barriers.launch("fences", [0, out], (64, 1, 1))
    assert out.tolist() == list(range(64))


# --- atomics ----------------------------------------------------------------------------------------


def total(bits: int, start: int, values: list[int], step: Callable[[int, int], int]) -> int:
    for value in values:
        start = step(start, value) & (1 << bits) - 1
    return start


THREADS, BLOCKS = 96, 4
N = THREADS * BLOCKS
OPERANDS = [(i * 2654435761 + 12345) & 0xFFFFFFFF for i in range(N)]
WIDE = [(i * 0x9E3779B97F4A7C15 + 99) & (1 << 64) - 1 for i in range(N)]

REDUCTIONS: dict[str, tuple[int, int, Callable[[int, int], int]]] = {
    "add.u32": (32, 5, lambda a, b: a + b),
    "add.s32": (32, 5, lambda a, b: a + b),
    "add.u64": (64, 1 << 40, lambda a, b: a + b),
    "min.u32": (32, 0xFFFFFFF0, min),
    "max.u32": (32, 3, max),
    "min.s32": (32, 7, lambda a, b: min(a, b, key=lambda v: signed(v, 32))),
    "max.s32": (32, 0x80000001, lambda a, b: max(a, b, key=lambda v: signed(v, 32))),
    "min.u64": (64, (1 << 64) - 9, min),
    "max.u64": (64, 4, max),
    "min.s64": (64, 7, lambda a, b: min(a, b, key=lambda v: signed(v, 64))),
    "max.s64": (64, 1 << 63, lambda a, b: max(a, b, key=lambda v: signed(v, 64))),
    "and.b32": (32, 0xFFFFFFFF, lambda a, b: a & (b | 0xFF)),
    "or.b32": (32, 0, lambda a, b: a | b),
    "xor.b32": (32, 0x5A5A5A5A, lambda a, b: a ^ b),
    "and.b64": (64, (1 << 64) - 1, lambda a, b: a & (b | 0xFF)),
    "or.b64": (64, 0, lambda a, b: a | b),
    "xor.b64": (64, 77, lambda a, b: a ^ b),
    "inc.u32": (32, 0, lambda a, b: 0 if a >= 99 else a + 1),
    "dec.u32": (32, 5, lambda a, b: 99 if a == 0 or a > 99 else a - 1),
}


def reduction(name: str, operation: str, space: str, instruction: str = "red") -> str:
    """One block-wide or grid-wide reduction; in shared memory each block reduces into [%out + 8 * block]."""
    bits = REDUCTIONS[operation][0]
    register = "%r1" if bits == 32 else "%w1"
    load = f"""
    mul.wide.u32 %at, %me, 8;
    add.u64 %at, %in, %at;
    ld.global.b{bits} {register}, [%at];
"""
    if operation[:3] == "and":
        load += f"    or.b{bits} {register}, {register}, 255;\n"
    if operation[:3] in ("inc", "dec"):
        load += "    mov.u32 %r1, 99;\n"
    old = f"{'%r2' if bits == 32 else '%w2'}, " if instruction == "atom" else ""
    if space == "shared":
        return kernel(
            name,
            f"""
    mul.wide.u32 %w3, %t1, 8;
    add.u64 %w3, %out, %w3;
    setp.ne.u32 %p0, %t0, 0;
    @%p0 bra ready;
    ld.global.b64 %w4, [%w3];
    st.shared.b64 [cell], %w4;
ready:
    bar.sync 0;
    {load}
    mov.u32 %r0, cell;
    {instruction}.shared.{operation} {old}[%r0], {register};
    bar.sync 0;
    @%p0 ret;
    ld.shared.b64 %w4, [cell];
    st.global.b64 [%w3], %w4;
""",
            ".shared .align 8 .b8 cell[8];",
        )
    where = "" if space == "generic" else ".global"
    return kernel(name, f"{load}    {instruction}{where}.{operation} {old}[%out], {register};")


@pytest.fixture(scope="module")
def atomics() -> Module:
    kernels = []
    for operation in REDUCTIONS:
        safe = operation.replace(".", "_")
        kernels += [
            reduction(f"{safe}_global", operation, "global"),
            reduction(f"{safe}_shared", operation, "shared"),
            reduction(f"{safe}_generic", operation, "generic", "atom"),
        ]
    return Module(HEADER + "".join(kernels))


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_reductions(atomics: Module, operation: str) -> None:
    bits, start, step = REDUCTIONS[operation]
    values = OPERANDS if bits == 32 else WIDE
    data = np.array(values, np.uint64)
    safe = operation.replace(".", "_")
    for space in ("global", "generic"):
        cell = np.array([start, 0xA5], np.uint64)
        atomics.launch(f"{safe}_{space}", [data, cell], (THREADS, 1, 1), (BLOCKS, 1, 1))
        assert int(cell[0]) == total(bits, start, values, step), space
        assert cell[1] == 0xA5
    cells = np.full(BLOCKS, start, np.uint64)
    atomics.launch(f"{safe}_shared", [data, cells], (THREADS, 1, 1), (BLOCKS, 1, 1))
    for block, found in enumerate(cells.tolist()):
        assert found == total(bits, start, values[block * THREADS : (block + 1) * THREADS], step), block


@pytest.fixture(scope="module")
def olds() -> Module:
    """Kernels whose threads keep what their atomic returned."""

    def each(name: str, body: str, bytes_each: int, variables: str = "") -> str:
        return kernel(name, f"    mul.wide.u32 %at, %me, {bytes_each};\n    add.u64 %at, %in, %at;\n{body}", variables)

    return Module(
        HEADER
        + each("ticket", "    atom.global.add.u32 %r1, [%out], 1;\n    st.global.u32 [%at], %r1;", 4)
        + each("inc", "    atom.global.inc.u32 %r1, [%out], 99;\n    st.global.u32 [%at], %r1;", 4)
        + each("dec", "    atom.global.dec.u32 %r1, [%out], 99;\n    st.global.u32 [%at], %r1;", 4)
        + each("exch", "    atom.global.exch.b32 %r1, [%out], %me;\n    st.global.u32 [%at], %r1;", 4)
        + each(
            "exch64",
            "    cvt.u64.u32 %w1, %me;\n    atom.global.exch.b64 %w2, [%out], %w1;\n    st.global.u64 [%at], %w2;",
            8,
        )
        + each("cas", "    atom.global.cas.b32 %r1, [%out], 7, %me;\n    st.global.u32 [%at], %r1;", 4)
        + each(
            "cas64",
            """
    cvt.u64.u32 %w1, %me;
    add.u64 %w1, %w1, 4294967296;
    atom.acq_rel.gpu.global.cas.b64 %w2, [%out], 7, %w1;
    st.global.u64 [%at], %w2;
""",
            8,
        )
        + each(
            "spin_add",
            """
    ld.global.u32 %r1, [%out];
again:
    mov.u32 %r2, %r1;
    add.u32 %r3, %r2, 3;
    atom.global.cas.b32 %r1, [%out], %r2, %r3;
    setp.ne.u32 %p0, %r1, %r2;
    @%p0 bra again;
""",
            4,
        )
        + each("add_f32", "    cvt.rn.f32.u32 %f1, %me;\n    atom.global.add.f32 %f2, [%out], %f1;", 4)
        + each("generic_f32", "    cvt.rn.f32.u32 %f1, %me;\n    red.add.f32 [%out], %f1;", 4)
        + each("generic_f64", "    cvt.rn.f64.u32 %d1, %me;\n    atom.add.f64 %d2, [%out], %d1;", 4)
        + each("add_f64", "    cvt.rn.f64.u32 %d1, %me;\n    atom.global.add.f64 %d2, [%out], %d1;", 4)
        + each("red_f32", "    cvt.rn.f32.u32 %f1, %me;\n    red.relaxed.gpu.global.add.f32 [%out], %f1;", 4)
        + each(
            "shared_f32",
            """
    setp.ne.u32 %p0, %t0, 0;
    mov.u32 %r1, 0;
    @!%p0 st.shared.u32 [cell], %r1;
    bar.sync 0;
    cvt.rn.f32.u32 %f1, %me;
    red.shared.add.f32 [cell], %f1;
    bar.sync 0;
    @%p0 ret;
    ld.shared.f32 %f2, [cell];
    atom.global.add.f32 %f3, [%out], %f2;
""",
            4,
            ".shared .align 4 .b8 cell[4];",
        )
        + each("add_f16", "    mov.b16 %h1, 0x3c00;\n    atom.global.add.noftz.f16 %h2, [%out+2], %h1;", 4)
        + each("add_f16x2", "    mov.b32 %r1, 0x40003c00;\n    atom.global.add.noftz.f16x2 %r2, [%out], %r1;", 4)
        + each("add_bf16", "    mov.b16 %h1, 0x3f80;\n    atom.global.add.noftz.bf16 %h2, [%out], %h1;", 4)
        + each(
            "cas16",
            "    cvt.u16.u32 %h1, %me;\n    atom.global.cas.b16 %h2, [%out+2], 7, %h1;\n    st.global.u16 [%at], %h2;",
            2,
        )
    )


def run(module: Module, name: str, cell: np.ndarray[Any, Any], dtype: type) -> Any:
    olds = np.zeros(N, dtype)
    module.launch(name, [olds, cell], (THREADS, 1, 1), (BLOCKS, 1, 1))
    return olds


def test_tickets_are_handed_out_once(olds: Module) -> None:
    cell = np.array([10, 0], np.uint32)
    assert sorted(run(olds, "ticket", cell, np.uint32)) == list(range(10, 10 + N))
    assert cell.tolist() == [10 + N, 0]


def test_inc_and_dec_wrap(olds: Module) -> None:
    for name, sequence in (("inc", [i % 100 for i in range(N)]), ("dec", [-i % 100 for i in range(N)])):
        cell = np.zeros(2, np.uint32)
        found = run(olds, name, cell, np.uint32)
        assert sorted(found) == sorted(sequence), name
        assert cell[0] == (N % 100 if name == "inc" else -N % 100), name
    cell = np.array([1000, 0], np.uint32)
    found = run(olds, "dec", cell, np.uint32)
    assert 1000 in found
    assert sorted(found)[-2] == 99


def test_exchange_is_a_permutation(olds: Module) -> None:
    for name, dtype in (("exch", np.uint32), ("exch64", np.uint64)):
        cell = np.array([0xFFFF, 0], dtype)
        found = run(olds, name, cell, dtype)
        assert sorted([*found.tolist(), int(cell[0])]) == sorted([*range(N), 0xFFFF]), name


def test_compare_and_swap(olds: Module) -> None:
    for name, dtype, base in (("cas", np.uint32, 0), ("cas64", np.uint64, 1 << 32)):
        cell = np.array([7, 0], dtype)
        found = run(olds, name, cell, dtype).tolist()
        winner = int(cell[0]) - base
        # One thread saw 7 and won, unless its own number is 7, which keeps the cell open.
        assert 0 <= winner < N and found[winner] == 7, name
        assert all(value in (7, int(cell[0])) for value in found), name
        cell[0] = 8
        assert run(olds, name, cell, dtype).tolist() == [8] * N
        assert cell[0] == 8
    cell = np.zeros(2, np.uint32)
    run(olds, "spin_add", cell, np.uint32)
    assert cell[0] == 3 * N


def test_floating_point_sums(olds: Module) -> None:
    """Sums of whole numbers are exact in any order."""
    for name, dtype in (
        ("add_f32", np.float32),
        ("red_f32", np.float32),
        ("generic_f32", np.float32),
        ("add_f64", np.float64),
        ("generic_f64", np.float64),
        ("shared_f32", np.float32),
    ):
        cell = np.array([0.5, 9], dtype)
        run(olds, name, cell, np.uint32)
        assert cell.tolist() == [0.5 + N * (N - 1) // 2, 9], name
    cell = np.array([3, 0.5], np.float16)
    run(olds, "add_f16", cell, np.uint32)
    assert cell.tolist() == [3, 0.5 + N]
    cell = np.array([0, 1], np.float16)
    run(olds, "add_f16x2", cell, np.uint32)
    assert cell.tolist() == [N, 2 * N + 1]
    words = np.array([0, 0x1234], np.uint16)
    run(olds, "add_bf16", words, np.uint32)
    # 256 + 1 is 256 again in eight bits.
    assert words.tolist() == [0x4380, 0x1234]


def test_halfword_compare_and_swap(olds: Module) -> None:
    cell = np.array([0xBEEF, 7], np.uint16)
    found = run(olds, "cas16", cell, np.uint16).tolist()
    assert cell[0] == 0xBEEF
    assert found[int(cell[1])] == 7 and all(value in (7, int(cell[1])) for value in found)


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bar.sync 0, 64;", "barrier.partial"),
        ("bar.arrive 0, 64;", "barrier.partial"),
        ("fence.proxy.async;", "not lowered"),
        ("mov.u32 %r0, %smid;", "%smid"),
        ("mov.u64 %w0, %globaltimer;", "%globaltimer"),
        ("cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;", "not lowered"),
        ("red.global.add.v2.f32 [%out], {%f0, %f1};", "not lowered"),
    ],
)
def test_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_ptx(HEADER + kernel("k", f"    {text}"))
    assert caught.value.kind == "unsupported"
    assert reason in str(caught.value)
    assert text.split()[0] in str(caught.value)
