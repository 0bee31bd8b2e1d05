"""Whole kernels on the device against the interpreter: shuffles, votes, atomics, vectors, narrow loads."""

from __future__ import annotations

import random

import forms
import interpreter
import numpy as np
import pytest
import rig

BLOCKS = [(33, 3), (18,), *([(32,), (48,), (16, 16), (8, 8, 4), (48, 2), (5, 5), (100,)] if rig.WHOLE else [])]
LINEAR = """
    .reg .b32 %l, %tx, %ty, %tz, %nx, %ny; .reg .b64 %in, %out, %o;
    mov.u32 %tx, %tid.x; mov.u32 %ty, %tid.y; mov.u32 %tz, %tid.z; mov.u32 %nx, %ntid.x; mov.u32 %ny, %ntid.y;
    mad.lo.u32 %l, %tz, %ny, %ty; mad.lo.u32 %l, %l, %nx, %tx;
    ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out];
"""


def both(body: str, data: bytes, size: int, block: tuple[int, ...] = (1,)) -> tuple[bytes, bytes, bytes, bytes]:
    """Runs a kernel of (p_in, p_out) on the device and here; what the device's two buffers hold, then ours."""
    text = ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n" + LINEAR + body + "\nret;\n}\n"
    there = rig.gpu().array(np.frombuffer(data, np.uint8))
    out = rig.gpu().array(np.full(size, 0xA5, np.uint8))
    rig.gpu().load(rig.HEADER + text).function("k").launch(1, block, there, out)
    memory = interpreter.Memory()
    source, ours = memory.place(data)
    target, result = memory.place(b"\xa5" * size)
    arguments = [source.to_bytes(8, "little"), target.to_bytes(8, "little")]
    interpreter.Run(interpreter.parse(text, "k"), memory, arguments, [1], block).launch()
    return there.numpy().tobytes(), out.numpy().tobytes(), bytes(ours), bytes(result)


def count(block: tuple[int, ...]) -> int:
    return int(np.prod(block))


def members(block: tuple[int, ...]) -> str:
    """Code that leaves the mask of the warp's threads in %m."""
    n = count(block)
    return f"""
    .reg .b32 %m, %rest; .reg .pred %full;
    and.b32 %rest, %l, -32; sub.u32 %rest, {n}, %rest; bmsk.clamp.b32 %m, 0, %rest;
    """


CLAMPS = [0x1F, 0x00, 0x07, 0x181F, 0x1C03, 0x1C00, 0x100F, 0x1E01, 0x1F00, 0x0A15, 0x1800]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_shuffles(block: tuple[int, ...]) -> None:
    """Every mode with many clamps and segments, constant and per lane; lanes that are not there leave d open."""
    n, rng = count(block), random.Random(count(block))
    body, cells = members(block), 0
    body += (
        f".reg .b32 %v, %b, %d, %p; .reg .pred %q; mul.lo.u32 %v, %l, 2654435761; mul.wide.u32 %o, %l, {8 * 11 * 8};"
    )
    body += "add.u64 %out, %out, %o; add.u64 %o, %in, 0; mad.wide.u32 %o, %l, 4, %in; ld.global.u32 %b, [%o];"
    steps = []
    for mode in ("up", "down", "bfly", "idx"):
        for clamp in CLAMPS:
            for lane in ("%b", str(rng.choice([1, 2, 4, 7, 16, 31, 33]))):
                body += f"shfl.sync.{mode}.b32 %d|%q, %v, {lane}, {clamp}, %m; selp.u32 %p, 1, 0, %q;"
                body += f"st.global.v2.u32 [%out+{8 * cells}], {{%d, %p}};"
                steps.append((mode, clamp, lane))
                cells += 1
    data = np.array([rng.choice([0, 1, 2, 3, 8, 31, 40, rng.getrandbits(32)]) for _ in range(n)], np.uint32).tobytes()
    _, device, _, ours = both(body, data, n * 8 * cells, block)
    got = np.frombuffer(device, np.uint32).reshape(n, cells, 2)
    want = np.frombuffer(ours, np.uint32).reshape(n, cells, 2)
    for t in range(n):
        for i in range(cells):
            assert got[t, i, 1] == want[t, i, 1], (t, steps[i])
            assert want[t, i, 0] == interpreter.OPEN or got[t, i, 0] == want[t, i, 0], (t, steps[i])


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_votes_and_matches(block: tuple[int, ...]) -> None:
    n, rng = count(block), random.Random(1)
    body = members(block) + ".reg .b32 %v, %d; .reg .b64 %w; .reg .pred %q, %p, %z; mad.wide.u32 %o, %l, 4, %in;"
    body += "ld.global.u32 %v, [%o]; mul.wide.u32 %o, %l, 64; add.u64 %out, %out, %o; cvt.s64.s32 %w, %v;"
    body += "setp.gt.s32 %q, %v, 2; setp.lt.s32 %p, %v, 100;"
    for i, vote in enumerate(
        ("all.pred %z, %q", "any.pred %z, %q", "uni.pred %z, %p", "any.pred %z, !%p", "all.pred %z, %p")
    ):
        body += f"vote.sync.{vote}, %m; selp.u32 %d, 1, 0, %z; st.global.u32 [%out+{4 * i}], %d;"
    body += "vote.sync.ballot.b32 %d, %q, %m; st.global.u32 [%out+20], %d;"
    body += "vote.sync.ballot.b32 %d, !%q, %m; st.global.u32 [%out+24], %d;"
    body += "match.any.sync.b32 %d, %v, %m; st.global.u32 [%out+28], %d;"
    body += "match.any.sync.b64 %d, %w, %m; st.global.u32 [%out+32], %d;"
    for i, kind in enumerate(("add.s32", "min.s32", "max.u32", "and.b32", "xor.b32")):
        body += f"redux.sync.{kind} %d, %v, %m; st.global.u32 [%out+{36 + 4 * i}], %d;"
    body += "match.all.sync.b32 %d|%z, %v, %m; st.global.u32 [%out+56], %d;"
    body += "selp.u32 %d, 1, 0, %z; st.global.u32 [%out+60], %d;"
    for values in ([5] * n, [rng.choice([-3, 1, 5, 7, 1 << 31]) for _ in range(n)]):
        data = np.array([v & 0xFFFFFFFF for v in values], np.uint32).tobytes()
        _, device, _, ours = both(body, data, n * 64, block)
        assert (
            np.frombuffer(device, np.uint32).reshape(n, 16).tolist()
            == np.frombuffer(ours, np.uint32).reshape(n, 16).tolist()
        )


ATOMICS = (
    [f"{op}.{t}" for op in ("add", "min", "max") for t in ("u32", "s32", "u64", "s64") if (op, t) != ("add", "s64")]
    + [f"{op}.{t}" for op in ("and", "or", "xor", "exch", "cas") for t in ("b32", "b64")]
    + ["inc.u32", "dec.u32", "cas.b16", "add.f32", "add.f64"]
)


@pytest.mark.parametrize("space", ["global", "shared", "generic"] if rig.WHOLE else ["generic"])
def test_what_atomics_return(space: str) -> None:
    """Old value and cell afterwards for each operation over pairs of edges, a cell for each thread."""
    rng = random.Random(3)
    for op in ATOMICS[:: 1 if rig.WHOLE else 2]:
        verb, kind = op.split(".")
        bits = int(kind[1:])
        table = [v for v in forms.edges(kind) if not _open(kind, v)]
        rows = [(a, b) for a in table for b in table] if bits < 64 else []
        rows += [(rng.choice(table), rng.choice(table)) for _ in range(120)]
        rows = [(a, a if verb == "cas" and rng.random() < 0.5 else b) for a, b in rng.sample(rows, 120)]
        if kind[0] == "f":
            rows = [(a, b) for a, b in rows if not _open(kind, a) and not _open(kind, b)]
        n, size = len(rows), bits // 8
        flat = np.array([v for row in rows for v in row], f"u{size}").tobytes()
        reg = {"f32": "f32", "f64": "f64"}.get(kind, f"b{bits}")
        plain = reg if kind[0] == "f" else f"b{bits}"
        body = f".reg .{reg} %a, %b, %d, %e; .reg .b64 %at, %g; .reg .b32 %s;"
        body += f"mad.wide.u32 %o, %l, {2 * size}, %in; ld.global.{plain} %a, [%o]; ld.global.{plain} %b, [%o+{size}];"
        third = ", %a" if verb == "cas" else ""
        if space == "shared":
            body = f".shared .align 8 .b8 cells[{n * 8}];" + body
            body += "shl.b32 %s, %l, 3; mov.u32 %nx, cells; add.u32 %s, %s, %nx;"
            body += f"st.shared.{plain} [%s], %a; atom.shared.{op} %d, [%s], %b{third}; ld.shared.{plain} %e, [%s];"
        else:
            scope = "" if space == "generic" else ".global"
            where = f"atom{scope}.{op}" if rng.random() < 0.5 else f"atom.relaxed.gpu{scope}.{op}"
            body += f"{where} %d, [%o], %b{third}; ld.global.{plain} %e, [%o];"
        body += f"mul.wide.u32 %at, %l, {2 * size}; add.u64 %out, %out, %at;"
        body += f"st.global.{plain} [%out], %d; st.global.{plain} [%out+{size}], %e;"
        _, device, _, ours = both(body, flat, n * 2 * size, (n,))
        got, want = np.frombuffer(device, f"u{size}").tolist(), np.frombuffer(ours, f"u{size}").tolist()
        for i, row in enumerate(rows):
            g, w = got[2 * i : 2 * i + 2], want[2 * i : 2 * i + 2]
            assert g == w or (kind[0] == "f" and _open(kind, w[1]) and _open(kind, g[1])), (
                op,
                list(map(hex, row)),
                g,
                w,
            )


def _open(kind: str, value: int) -> bool:
    """Whether a floating-point atomic leaves the result open: NaN; f32 atomics flush subnormals in some places."""
    f = forms.FORMATS.get(kind)
    return f is not None and (f.is_nan(value) or f.is_subnormal(value))


def test_vectors_and_narrow_loads() -> None:
    """Loads of every type into wider registers, vectors of two and four, stores of the low part."""
    n = 64
    data = bytes(random.Random(5).getrandbits(8) for _ in range(n * 32))
    body = ".reg .b32 %r<4>; .reg .b64 %d<4>; .reg .b16 %s<4>; .reg .f32 %f<4>; .reg .f64 %g<4>;"
    body += "mad.wide.u32 %in, %l, 32, %in; mul.wide.u32 %o, %l, 512; add.u64 %out, %out, %o;"
    at = 0

    def store(kind: str, *registers: str) -> None:
        nonlocal body, at
        vector = f"v{len(registers)}." if len(registers) > 1 else ""
        size = int(kind[1:]) // 8 * len(registers)
        at = -(-at // size) * size
        operand = f"{{{', '.join(registers)}}}" if vector else registers[0]
        body += f"st.global.{vector}{kind} [%out+{at}], {operand};"
        at += size

    for kind in ("u8", "s8", "u16", "s16", "u32", "s32"):
        body += f"ld.global.{kind} %r0, [%in+4]; ld.global.{kind} %d0, [%in+8];"
        store("u32", "%r0")
        store("u64", "%d0")
    for kind in ("u8", "s8"):
        body += f"ld.global.{kind} %s0, [%in+13];"
        store("b16", "%s0")
        body += f"ld.global.v4.{kind} {{%r0, %r1, %r2, %r3}}, [%in+16];"
        store("u32", "%r0", "%r1", "%r2", "%r3")
        store("u8", "%r3", "%r2", "%r1", "%r0")
    for kind in ("u16", "s16"):
        body += f"ld.global.v2.{kind} {{%r0, %d1}}, [%in+20];"
        store("u32", "%r0")
        store("u64", "%d1")
    body += "ld.global.v2.f64 {%g0, %g1}, [%in]; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%in+16];"
    body += "ld.global.v2.u64 {%d0, %d1}, [%in+16];"
    store("f64", "%g1", "%g0")
    store("f32", "%f3", "%f0", "%f2", "%f1")
    store("u64", "%d1", "%d0")
    store("u16", "%r0")
    store("u8", "%d0")
    store("b32", "%d1")
    body += "ld.global.v4.b16 {%s0, %s1, %s2, %s3}, [%in+8];"
    store("b16", "%s3", "%s1")
    assert at <= 512
    _, device, _, ours = both(body, data, n * 512, (n,))
    for t in range(n):
        assert device[512 * t : 512 * t + 512] == ours[512 * t : 512 * t + 512], t
