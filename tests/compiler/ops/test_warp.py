"""Warp instructions in blocks of many shapes; expectations come from a lane-by-lane simulation of the ISA's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest
from ops_rig import HEADER, Module, signed

SHAPES = [(33, 3, 1), (16, 16, 1), (8, 8, 4), (48, 2, 1), (32, 1, 1), (5, 1, 1)]

LINEAR = """
    .reg .b32 %me, %x, %y, %z, %nx, %ny, %t;
    .reg .b64 %out, %in, %step;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    mov.u32 %nx, %ntid.x;
    mov.u32 %ny, %ntid.y;
    mad.lo.u32 %t, %z, %ny, %y;
    mad.lo.u32 %me, %t, %nx, %x;
    ld.param.u64 %in, [pin];
    ld.param.u64 %out, [pout];
    mul.wide.u32 %step, %me, 4;
    add.u64 %in, %in, %step;
    add.u64 %out, %out, %step;
"""

OUTPUT_STEP = 4096
"""Bytes between the arrays of two outputs."""


def kernel(name: str, body: str) -> str:
    """A kernel with the thread's input word in %v, its linear id in %me, and results in %r0, %r1, …."""
    stores = "".join(
        f"    st.global.b32 [%out+{OUTPUT_STEP * i}], %r{i};\n" for i in range(16) if f"%r{i}" in body.replace(" ", "")
    )
    return f"""
.visible .entry {name}(.param .u64 pin, .param .u64 pout)
{{
    .reg .b32 %r<16>, %v, %q<8>;
    .reg .b64 %w<4>;
    .reg .pred %p<8>;
    {LINEAR}
    ld.global.b32 %v, [%in];
{body}
{stores}
    ret;
}}
"""


def launch(module: Module, name: str, shape: tuple[int, int, int], values: np.ndarray[Any, Any], outputs: int) -> Any:
    threads = shape[0] * shape[1] * shape[2]
    result = np.full((outputs, OUTPUT_STEP // 4), 0xA5A5A5A5, np.uint32)
    data = np.zeros(OUTPUT_STEP // 4, np.uint32)
    data[:threads] = values[:threads]
    module.launch(name, [data, result], shape)
    return result[:, :threads]


def warps(count: int) -> list[list[int]]:
    """Threads by warp: 32 successive linear ids each."""
    return [list(range(first, min(first + 32, count))) for first in range(0, count, 32)]


VALUES = np.array([(i * 2654435761) & 0xFFFFFFFF for i in range(1024)], np.uint32)

SHFL = {
    "up0": ("up", 1, 0x0000),
    "up": ("up", 3, 0x1800),
    "down": ("down", 5, 0x001F),
    "down8": ("down", 2, 0x181F),
    "bfly": ("bfly", 16, 0x001F),
    "bfly4": ("bfly", 3, 0x1C1F),
    "idx": ("idx", 7, 0x001F),
    "idx8": ("idx", 13, 0x181F),
    "clamped": ("idx", 9, 0x0005),
}


def shfl(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """(source lane, predicate) as in the ISA's description of shfl.sync."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    most = (lane & segment) | (clamp & ~segment & 31)
    least = lane & segment
    match mode:
        case "up":
            j = lane - b
            valid = j >= most
        case "down":
            j = lane + b
            valid = j <= most
        case "bfly":
            j = lane ^ b
            valid = j <= most
        case _:
            j = least | (b & ~segment & 31)
            valid = j <= most
    return (j if valid else lane), valid


@pytest.fixture(scope="module")
def module() -> Module:
    kernels = [
        kernel(
            f"shfl_{name}",
            f"""
    shfl.sync.{mode}.b32 %r0|%p0, %v, {b}, {c}, 0xffffffff;
    selp.u32 %r1, 1, 0, %p0;
    shfl.sync.{mode}.b32 %r2, %v, {b}, {c}, 0xffffffff;
""",
        )
        for name, (mode, b, c) in SHFL.items()
    ]
    kernels += [
        kernel(
            "shfl_register",
            """
    and.b32 %q0, %v, 31;
    shfl.sync.idx.b32 %r0, %me, %q0, 31, 0xffffffff;
    shfl.idx.b32 %r1, %v, %q0, 31;
""",
        ),
        kernel(
            "vote",
            """
    and.b32 %q0, %v, 3;
    setp.ne.u32 %p0, %q0, 0;
    vote.sync.ballot.b32 %r0, %p0, 0xffffffff;
    vote.sync.any.pred %p1, %p0, 0xffffffff;
    selp.u32 %r1, 1, 0, %p1;
    vote.sync.all.pred %p2, %p0, 0xffffffff;
    selp.u32 %r2, 1, 0, %p2;
    vote.sync.uni.pred %p3, %p0, 0xffffffff;
    selp.u32 %r3, 1, 0, %p3;
    activemask.b32 %r4;
    vote.sync.all.pred %p4, !%p0, 0xffffffff;
    selp.u32 %r5, 1, 0, %p4;
    setp.ge.u32 %p5, %me, 0;
    vote.sync.uni.pred %p6, %p5, 0xffffffff;
    selp.u32 %r6, 1, 0, %p6;
    vote.sync.ballot.b32 %r7, !%p0, 0x0000ffff;
""",
        ),
        kernel(
            "registers",
            """
    mov.u32 %r0, %laneid;
    mov.u32 %r1, %warpid;
    mov.u32 %r2, %lanemask_eq;
    mov.u32 %r3, %lanemask_lt;
    mov.u32 %r4, %lanemask_le;
    mov.u32 %r5, %lanemask_gt;
    mov.u32 %r6, %lanemask_ge;
    mov.u32 %r7, %tid.x;
    mov.u32 %r8, %tid.y;
    mov.u32 %r9, %tid.z;
    mov.u32 %r10, WARP_SZ;
    elect.sync %r11|%p0, 0xffffffff;
    selp.u32 %r12, 1, 0, %p0;
    mov.u32 %r13, %ntid.x;
    mov.u32 %r14, %ntid.z;
""",
        ),
        kernel(
            "match",
            """
    and.b32 %q0, %v, 3;
    match.any.sync.b32 %r0, %q0, 0xffffffff;
    match.all.sync.b32 %r1|%p0, %q0, 0xffffffff;
    selp.u32 %r2, 1, 0, %p0;
    mov.u32 %q1, %warpid;
    match.all.sync.b32 %r3|%p1, %q1, 0xffffffff;
    selp.u32 %r4, 1, 0, %p1;
    mov.b64 %w0, {%q1, %q0};
    match.any.sync.b64 %r5, %w0, 0xffffffff;
""",
        ),
        kernel(
            "redux",
            """
    redux.sync.add.u32 %r0, %v, 0xffffffff;
    redux.sync.min.u32 %r1, %v, 0xffffffff;
    redux.sync.max.u32 %r2, %v, 0xffffffff;
    redux.sync.min.s32 %r3, %v, 0xffffffff;
    redux.sync.max.s32 %r4, %v, 0xffffffff;
    redux.sync.and.b32 %r5, %v, 0xffffffff;
    redux.sync.or.b32 %r6, %v, 0xffffffff;
    redux.sync.xor.b32 %r7, %v, 0xffffffff;
    redux.sync.min.f32 %r8, %v, 0xffffffff;
    redux.sync.max.NaN.f32 %r9, %v, 0xffffffff;
""",
        ),
        kernel(
            "groups",
            """
    and.b32 %q0, %v, 3;
    match.any.sync.b32 %q1, %q0, 0xffffffff;
    redux.sync.add.u32 %r0, %me, %q1;
    elect.sync %r1|%p0, %q1;
    selp.u32 %r2, 1, 0, %p0;
    and.b32 %q2, %v, 4;
    setp.ne.u32 %p1, %q2, 0;
    vote.sync.ballot.b32 %r3, %p1, %q1;
    vote.sync.all.pred %p2, %p1, %q1;
    selp.u32 %r4, 1, 0, %p2;
""",
        ),
        kernel(
            "divergent",
            """
    and.b32 %q0, %me, 1;
    setp.eq.u32 %p0, %q0, 0;
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    @%p0 bra even;
    activemask.b32 %r0;
    vote.sync.ballot.b32 %r1, %p0, 0xaaaaaaaa;
    shfl.sync.bfly.b32 %r2, %v, 2, 31, 0xaaaaaaaa;
    bra.uni join;
even:
    activemask.b32 %r0;
    vote.sync.ballot.b32 %r1, %p0, 0x55555555;
    shfl.sync.bfly.b32 %r2, %v, 4, 31, 0x55555555;
join:
    bar.warp.sync 0xffffffff;
    activemask.b32 %r3;
""",
        ),
        kernel(
            "guarded",
            """
    setp.lt.u32 %p0, %me, 20;
    mov.u32 %r0, 7;
    @%p0 activemask.b32 %r0;
    mov.u32 %r1, 9;
    @!%p0 vote.sync.ballot.b32 %r1, %p0, 0xffffffff;
""",
        ),
        kernel(
            "exited",
            """
    and.b32 %q0, %v, 7;
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    setp.eq.u32 %p0, %q0, 0;
    @%p0 ret;
    activemask.b32 %r0;
    setp.ne.u32 %p1, %q0, 1;
    vote.sync.all.pred %p2, %p1, 0xffffffff;
    selp.u32 %r1, 1, 0, %p2;
    redux.sync.add.u32 %r2, %me, 0xffffffff;
""",
        ),
        kernel(
            "scan",
            """
    mov.u32 %r0, %v;
    mov.u32 %q0, 1;
    mov.u32 %q2, %laneid;
again:
    shfl.sync.up.b32 %q1|%p0, %r0, %q0, 0, 0xffffffff;
    @%p0 add.u32 %r0, %r0, %q1;
    shl.b32 %q0, %q0, 1;
    setp.lt.u32 %p1, %q0, 32;
    @%p1 bra again;
""",
        ),
        kernel(
            "uneven_loop",
            """
    and.b32 %q0, %me, 7;
    mov.u32 %r0, 0;
    mov.u32 %q3, 0;
again:
    activemask.b32 %q1;
    popc.b32 %q2, %q1;
    add.u32 %r0, %r0, %q2;
    add.u32 %q3, %q3, 1;
    setp.le.u32 %p0, %q3, %q0;
    @%p0 bra again;
""",
        ),
    ]
    return Module(HEADER + "".join(kernels))


def expect(
    module: Module,
    name: str,
    shape: tuple[int, int, int],
    outputs: int,
    simulate: Callable[[Sequence[int], Sequence[int], int], Sequence[int | None]],
) -> None:
    """Compares a kernel with `simulate(threads of the warp, their values, lane) -> outputs`; None takes anything."""
    count = shape[0] * shape[1] * shape[2]
    found = launch(module, name, shape, VALUES, outputs)
    for warp in warps(count):
        values = [int(VALUES[t]) for t in warp]
        for lane, thread in enumerate(warp):
            wanted = simulate(warp, values, lane)
            for output, want in enumerate(wanted):
                if want is not None:
                    got = int(found[output, thread])
                    assert got == want & 0xFFFFFFFF, (
                        f"{name} {shape} thread {thread} r{output}: {got:#x}, not {want:#x}"
                    )


shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))


def mask_of(lanes: Sequence[bool]) -> int:
    return sum(1 << i for i, on in enumerate(lanes) if on)


@shapes
def test_shfl(module: Module, shape: tuple[int, int, int]) -> None:
    for name, (mode, b, c) in SHFL.items():

        def simulate(
            warp: Sequence[int], values: Sequence[int], lane: int, m: str = mode, b: int = b, c: int = c
        ) -> Any:
            source, valid = shfl(m, lane, b, c)
            value = values[source] if source < len(warp) else None
            return value, int(valid), value

        expect(module, f"shfl_{name}", shape, 3, simulate)

    def by_register(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        source = values[lane] & 31
        inside = source < len(warp)
        return (warp[source], values[source]) if inside else (None, None)

    expect(module, "shfl_register", shape, 2, by_register)


@shapes
def test_vote(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        votes = [v & 3 != 0 for v in values]
        ballot, active = mask_of(votes), mask_of([True] * len(warp))
        uniform = ballot in (0, active)
        return (
            ballot, int(any(votes)), int(all(votes)), int(uniform), active, int(not any(votes)), 1,
            active & ~ballot & 0xFFFF,
        )  # fmt: skip

    expect(module, "vote", shape, 8, simulate)


@shapes
def test_registers(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        thread = warp[lane]
        nx, ny, nz = shape
        low = (1 << lane) - 1
        return (
            lane, thread // 32, 1 << lane, low, low | 1 << lane, ~(low | 1 << lane), ~low,
            thread % nx, thread // nx % ny, thread // (nx * ny), 32, 0, int(lane == 0), nx, nz,
        )  # fmt: skip

    expect(module, "registers", shape, 15, simulate)


@shapes
def test_match(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        low = [v & 3 for v in values]
        same = mask_of([v == low[lane] for v in low])
        active = mask_of([True] * len(warp))
        equal = len(set(low)) == 1
        return same, active if equal else 0, int(equal), active, 1, same

    expect(module, "match", shape, 6, simulate)


def as_float(bits: int) -> float:
    return float(np.array([bits], np.uint32).view(np.float32)[0])


@shapes
def test_redux(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        numbers = [signed(v, 32) for v in values]
        real = [v for v in values if not np.isnan(as_float(v))]
        smallest = min(real, key=as_float) if real else 0x7FFFFFFF
        largest = 0x7FFFFFFF if len(real) < len(values) else max(real, key=as_float)
        return (
            sum(values), min(values), max(values), min(numbers), max(numbers),
            reduce(lambda a, b: a & b, values), reduce(lambda a, b: a | b, values), reduce(lambda a, b: a ^ b, values),
            smallest, largest,
        )  # fmt: skip

    expect(module, "redux", shape, 10, simulate)


@shapes
def test_groups_with_masks_of_their_own(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        members = [i for i, v in enumerate(values) if v & 3 == values[lane] & 3]
        ballot = sum(1 << i for i in members if values[i] & 4)
        return (
            sum(warp[i] for i in members), members[0], int(lane == members[0]), ballot,
            int(all(values[i] & 4 for i in members)),
        )  # fmt: skip

    expect(module, "groups", shape, 5, simulate)


@shapes
def test_divergent(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        active = mask_of([True] * len(warp))
        side = active & (0xAAAAAAAA if warp[lane] & 1 else 0x55555555)
        source = lane ^ (2 if lane & 1 else 4)
        value = values[source] if source < len(warp) else None
        return side, 0 if lane & 1 else side, value, active

    expect(module, "divergent", shape, 4, simulate)


@shapes
def test_guarded(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        first = mask_of([t < 20 for t in warp])
        return (first, 9) if warp[lane] < 20 else (7, 0)

    expect(module, "guarded", shape, 2, simulate)


@shapes
def test_lanes_that_have_left(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        if values[lane] & 7 == 0:
            return None, None, None
        stay = [i for i, v in enumerate(values) if v & 7]
        return (
            sum(1 << i for i in stay), int(all(values[i] & 7 != 1 for i in stay)), sum(warp[i] for i in stay),
        )  # fmt: skip

    expect(module, "exited", shape, 3, simulate)


@shapes
def test_scan(module: Module, shape: tuple[int, int, int]) -> None:
    expect(module, "scan", shape, 1, lambda warp, values, lane: (sum(values[: lane + 1]),))


@shapes
def test_uneven_loop(module: Module, shape: tuple[int, int, int]) -> None:
    def simulate(warp: Sequence[int], values: Sequence[int], lane: int) -> Any:
        rounds = (warp[lane] & 7) + 1
        return (sum(sum((t & 7) >= i for t in warp) for i in range(rounds)),)

    expect(module, "uneven_loop", shape, 1, simulate)
