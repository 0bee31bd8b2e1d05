"""CUDA C++ through NVRTC against Python integers, numpy and mpmath."""

from __future__ import annotations

import ctypes
import hashlib
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import rig
import toolchain

import zluda

Array = np.ndarray[Any, Any]

WAYS = [(arch, flags) for arch in ("compute_75", "compute_80", "compute_90") for flags in toolchain.FLAGS]
SMOKE = [("compute_90", "unfused"), ("compute_75", "debug")]
CHOSEN = WAYS if rig.WHOLE else SMOKE
BLOCKS = [(16, 16), (33, 3), (18,), *([(8, 8, 4), (48, 2), (5, 5), (100,)] if rig.WHOLE else [])]
M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


@cache
def program(name: str, arch: str, flags: str) -> zluda.Program:
    return rig.gpu().load(toolchain.ptx(name, arch, flags))


class Device:
    """Launches kernels of one file; arrays go in and the same arrays come out."""

    def __init__(self, name: str, way: tuple[str, str]) -> None:
        self.way, self.program = way, program(name, *way)

    def run(self, kernel: str, grid: Any, block: Any, *arguments: Any, shared: int = 0) -> None:
        made = [rig.gpu().array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        self.program.function(kernel).launch(grid, block, *made, shared=shared)
        for source, there in zip(arguments, made, strict=True):
            if isinstance(source, np.ndarray):
                source[...] = there.numpy()


def fixture(name: str, ways: list[tuple[str, str]]) -> Callable[..., Device]:
    @pytest.fixture(params=ways, ids="-".join, name=name)
    def device(request: pytest.FixtureRequest) -> Device:
        return Device(name, request.param)

    return device


integers = fixture("integers", CHOSEN if rig.WHOLE else SMOKE[1:])
blocks = fixture("blocks", CHOSEN)
floats = fixture("floats", CHOSEN if rig.WHOLE else SMOKE[:1])


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def words(count: int, seed: int = 7, bits: int = 32) -> Array:
    """Random words with edges among them."""
    made = rng(seed).integers(0, 1 << bits, count, dtype=np.uint64)
    edges = [0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << bits) - 2, 0xFFFF, 0x10000]
    made[: len(edges)] = edges
    made[len(edges) : 2 * len(edges)] >>= np.uint64(bits // 2)
    return made.astype(f"u{bits // 8}")


def s32(v: int) -> int:
    v &= M32
    return v - (1 << 32) if v >> 31 else v


def s64(v: int) -> int:
    v &= M64
    return v - (1 << 64) if v >> 63 else v


def trunc(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def zeros(*shape: int, dtype: Any = np.int32) -> Array:
    return np.zeros(shape, dtype)


# --- integers -----------------------------------------------------------------------------------------------


def test_sha256(integers: Device) -> None:
    messages = [bytes(rng(i).integers(0, 256, i % 56, dtype=np.uint8)) for i in range(70)]
    padded = b"".join(m + b"\x80" + bytes(55 - len(m)) + struct.pack(">Q", 8 * len(m)) for m in messages)
    out = zeros(70, 8, dtype=np.uint32)
    integers.run("sha256_block", 3, 32, np.frombuffer(padded, np.uint32).copy(), out, 70)
    assert [row.astype(">u4").tobytes() for row in out] == [hashlib.sha256(m).digest() for m in messages]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 13, 32])
def test_murmur3(integers: Device, length: int) -> None:
    data = rng().integers(0, 256, (50, max(length, 1)), dtype=np.uint8)
    data = np.ascontiguousarray(data[:, :length]) if length else data
    out = zeros(50, dtype=np.uint32)
    integers.run("murmur3", 2, 32, data, out, length, 50)

    def rotate(x: int, n: int) -> int:
        return (x << n | x >> (32 - n)) & M32

    def murmur(p: bytes, h: int) -> int:
        full = len(p) // 4 * 4
        for i in range(0, full, 4):
            k = int.from_bytes(p[i : i + 4], "little") * 0xCC9E2D51 & M32
            h = (rotate(h ^ rotate(k, 15) * 0x1B873593 & M32, 13) * 5 + 0xE6546B64) & M32
        if len(p) & 3:
            k = int.from_bytes(p[full:], "little") * 0xCC9E2D51 & M32
            h ^= rotate(k, 15) * 0x1B873593 & M32
        h ^= len(p)
        h = (h ^ h >> 16) * 0x85EBCA6B & M32
        h = (h ^ h >> 13) * 0xC2B2AE35 & M32
        return h ^ h >> 16

    assert out.tolist() == [murmur(bytes(row[:length]), t) for t, row in enumerate(data)]


def test_crc32(integers: Device) -> None:
    data = rng().integers(0, 256, (40, 77), dtype=np.uint8)
    out = zeros(40, dtype=np.uint32)
    integers.run("crc_make", 1, 256)
    integers.run("crc32", 2, 32, data, out, 77, 40)
    assert out.tolist() == [zlib.crc32(row.tobytes()) for row in data]


def test_xorshift(integers: Device) -> None:
    state = words(50, bits=64) | np.uint64(1)
    start, out = state.tolist(), zeros(50, dtype=np.uint64)
    integers.run("xorshift", 1, 64, state, out, 20, 50)
    for t, x in enumerate(start):
        total = 0
        for _ in range(21):
            x ^= x >> 12
            x ^= x << 25 & M64
            x ^= x >> 27
            total = (total + x * 2685821657736338717) & M64
            total ^= x * 0x9E3779B97F4A7C15 >> 64
        assert (int(state[t]), int(out[t])) == (x, total)


def test_big_numbers(integers: Device) -> None:
    a, b = words(6 * 40).reshape(40, 6), words(20, seed=9)[12:18].copy()
    out = zeros(40, 12, dtype=np.uint32)
    integers.run("bignum", 2, 32, a, struct_of(b.tobytes()), out, 40)

    def whole(limbs: Array) -> int:
        return int.from_bytes(limbs.tobytes(), "little")

    assert [whole(row) for row in out] == [whole(row) * whole(b) for row in a]


def struct_of(data: bytes) -> Any:
    """A structure by value."""
    return np.frombuffer(data, np.dtype((np.void, len(data))))[0]


def test_carry_chains(integers: Device) -> None:
    a, b = words(400).reshape(100, 4), words(400, seed=3).reshape(100, 4)
    b[50:60] = ~a[50:60]
    b[55:60, 0] += np.uint32(1)
    out = zeros(100, 7, dtype=np.uint32)
    integers.run("carries", 4, 32, a, b, out, 100)
    for x, y, o in zip(a, b, out, strict=True):
        total = int.from_bytes(x.tobytes(), "little") + int.from_bytes(y.tobytes(), "little")
        assert int.from_bytes(o[:5].tobytes(), "little") == total
        product = int(x[0]) * int(y[0]) + (int(y[1]) << 32 | int(x[1])) & M64
        assert int(o[6]) << 32 | int(o[5]) == product


def test_fixed_point(integers: Device) -> None:
    a, b = words(200).view(np.int32), words(200, seed=4).view(np.int32)
    b[:3] = [0, -65536, 3]
    out = zeros(200, 4)
    integers.run("fixed_point", 7, 32, a, b, out, 200)
    for x, y, o in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        assert o[0] == s32(x * y >> 16)
        assert o[1] == (s32(trunc(x << 16, y)) if y else 0)
        high = (x >> 8 & 0xFFFF) - ((x >> 8 & 0x8000) << 1)
        assert o[2] == s32((x * y >> 32) + high)
        p, q = ((v & 0xFFFFFF) - ((v & 0x800000) << 1) for v in (x, y))
        assert o[3] == s32(p * q)


def test_bit_tricks(integers: Device) -> None:
    a, b = words(200), words(200, seed=5)
    out = zeros(200, 16, dtype=np.uint32)
    integers.run("bits", 7, 32, a, b, out, 200)
    for x, y, o in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        n, both = y & 31, x << 32 | y
        octets = [(y << 32 | x) >> 8 * (y >> 7 >> 4 * i & 7) & 255 for i in range(4)]
        signs = [y >> 7 >> 4 * i & 8 for i in range(4)]
        octets = [(255 if v & 128 else 0) if s else v for v, s in zip(octets, signs, strict=True)]
        expected = [x.bit_count(), 32 - x.bit_length(), int(f"{x:032b}"[::-1], 2)]
        expected += [sum(v << 8 * i for i, v in enumerate(octets))]
        expected += [(y << 32 | x) << n >> 32 & M32, (y << 32 | x) >> min(y & 63, 32) & M32, x * y >> 32]
        expected += [s32(x) * s32(y) >> 32 & M32, abs(s32(x) - s32(y)) + 7 & M32, abs(x - y) + 9 & M32]
        expected += [(x & -x).bit_length(), 64 - (both >> n).bit_length(), (x * y & M64).bit_count()]
        expected += [int(f"{both:064b}"[::-1], 2) >> 16 & M32, x + y >> 1, s32(x) + s32(y) + 1 >> 1 & M32]
        for i, (e, g) in enumerate(zip(expected, o, strict=True)):
            if i == 3 and any(signs):
                continue  # __byte_perm documents the low three bits of a selector only
            assert e == g, (i, hex(x), hex(y), hex(e), hex(g))


def test_dot_products(integers: Device) -> None:
    if integers.way[1] == "debug":
        return  # NVRTC cannot compile __dp4a with -G
    a, b = words(100).view(np.int32), words(100, seed=6).view(np.int32)
    out = zeros(100, 2)
    integers.run("dots", 4, 32, a, b, out, 100)
    signed = (a.view(np.int8).astype(int) * b.view(np.int8)).reshape(100, 4).sum(1) + 100
    unsigned = (a.view(np.uint8).astype(int) * b.view(np.uint8)).reshape(100, 4).sum(1) + 100
    assert out.tolist() == np.stack([signed, unsigned], 1).tolist()


def test_divisions(integers: Device) -> None:
    a, b = words(200, bits=64).view(np.int64), words(200, seed=8, bits=64).view(np.int64)
    b[20:120] >>= rng().integers(1, 62, 100)
    b[b == 0] = 5
    b[(a == -(1 << 63)) & (b == -1)] = 3
    out = zeros(200, 8, dtype=np.int64)
    integers.run("divisions", 7, 32, a, b, out, 200)
    for x, y, o in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        p, q = s32(x), s32(y) | 1
        ux, uy = x & M64, y & M64
        expected = [trunc(x, y), x - trunc(x, y) * y, s64(ux // uy), s64(ux % uy)]
        expected += [0 if q == -1 else trunc(p, q), 0 if q == -1 else p - trunc(p, q) * q]
        expected += [trunc(x, 1000003), s64(ux % 4294967291)]
        assert o == expected, (x, y)


def classify(v: int) -> int:
    k = v & 15
    if k == 0:
        return s32(v * 3)
    if k == 1:
        return s32(v - 17)
    if k in (2, 3):
        return s32(v ^ 0x55)
    if k in (4, 5):
        return s32((v + (4 if k == 4 else 0)) << 2)
    if k == 7:
        s = 0
        for i in range((v >> 4 & 7) + 1):
            if i == 5:
                continue
            s = s32(s + i * v)
            if s > 100000:
                break
        return s
    if k == 9:
        return s32(-v)
    if k == 12:
        return trunc(v, 12)
    return -1 if v < 0 else 1


def test_switches(integers: Device) -> None:
    a = rng().integers(-5000, 5000, 300, dtype=np.int32)
    out = zeros(300)
    integers.run("switches", 3, 100, a, out, 300)
    for t in range(300):
        acc = 0
        for i in range(t % 37 + 1):
            acc = classify(s32(acc + int(a[(t + i) % 300])))
        assert acc == out[t], t


def test_local_arrays(integers: Device) -> None:
    a = rng().integers(-100, 100, 131, dtype=np.int32)
    out = zeros(131, 3)
    integers.run("local_arrays", 5, 33, a, out, 131)
    for t in range(131):
        heap = sorted(int(a[(t * 7 + i * 5) % 131]) for i in range(24))
        small = list(range(9, -1, -1))
        small[t % 10] = heap[0]
        assert out[t].tolist() == [heap[t % 24], heap[23], small[(t + (heap[3] & 1)) % 10]]


def test_structures(integers: Device) -> None:
    kind = np.dtype([("c", "i1"), ("s", "i2"), ("i", "i4"), ("l", "i8"), ("f", "f4"), ("d", "f8")], align=True)
    m = np.zeros(1, kind)
    m[0] = (100, -300, -(1 << 31) + 5, 0x1234567, 0.5, -1.25)
    out = zeros(100, dtype=kind)
    out.view(np.uint8)[...] = 0
    raw = np.zeros(100 * kind.itemsize, np.uint8)
    integers.run("structs", 2, 50, struct_of(m.tobytes()), raw, 100)
    out = raw.view(kind)
    # Two blocks of 50 threads.
    for t in range(100):
        c, s, i, wide, f, d = out[t].tolist()
        assert (
            c == ctypes.c_int8(100 + t).value and s == ctypes.c_int16(-300 * t).value and i == s32(-(1 << 31) + 5 - t)
        )
        assert wide == s64(0x1234567 << (t & 63)) and f == 0.5 + t and d == -1.25 * t


def test_narrow_types(integers: Device) -> None:
    a = np.arange(-128, 128, dtype=np.int64).astype(np.int8)
    b = words(256).astype(np.uint16)
    out = zeros(256, 4, dtype=np.int16)
    integers.run("narrow", 8, 32, a, b, out, 256)
    for x, y, o in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        expected = [ctypes.c_int8(x * 3).value, (y + x) & 255, ctypes.c_int16(x << 4).value >> 2]
        expected += [ctypes.c_int16(trunc(y, (x | 1) & 0xFFFF)).value]
        assert o == expected


# --- blocks -------------------------------------------------------------------------------------------------


def threads(block: tuple[int, ...]) -> int:
    return int(np.prod(block))


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_warp_reductions_and_scans(blocks: Device, block: tuple[int, ...]) -> None:
    n = threads(block)
    a = rng().integers(-100, 100, (3, n), dtype=np.int32)
    out = zeros(3, n, 6)
    blocks.run("warp_sums", 3, block, a, out)
    for b in range(3):
        for w in range(0, n, 32):
            v = a[b, w : w + 32].tolist()
            ballot = s32(sum((x & 1) << i for i, x in enumerate(v)))
            votes = any(x > 90 for x in v) * 2 + all(x > -90 for x in v)
            for lane in range(len(v)):
                o = out[b, w + lane].tolist()
                following = v[lane + 1] if (lane & 7) < 7 and lane + 1 < len(v) else 0
                assert o[0] == sum(v[: lane + 1]) and o[2:] == [sum(v), following, ballot, votes]
                if len(v) == 32:
                    assert o[1] == max(v)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_block_scan_with_early_returns(blocks: Device, block: tuple[int, ...]) -> None:
    if blocks.way[1] == "debug":
        # The loop's bound comes out of a call there, so it is not known that all threads take the barrier in the loop.
        with pytest.raises(zluda.CudaError, match="a barrier on a way that not all threads take"):
            blocks.run("block_scan", 1, block, zeros(1), zeros(1), 0)
        return
    for n in (threads(block), threads(block) - 7, 1):
        a, out = rng().integers(-100, 100, (4, n), dtype=np.int32), zeros(4, n)
        blocks.run("block_scan", (2, 2), block, a, out, n, shared=8 * n)
        assert (out == np.cumsum(a, 1)).all(), n


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_block_reduction(blocks: Device, block: tuple[int, ...]) -> None:
    a, out = rng().integers(-100, 100, (5, threads(block)), dtype=np.int32), zeros(5)
    blocks.run("block_reduce", 5, block, a, out)
    assert out.tolist() == a.sum(1).tolist()


@pytest.mark.parametrize("block", [(16, 16), (33, 3), (18,)], ids=str)
def test_histogram(blocks: Device, block: tuple[int, ...]) -> None:
    data, out = rng().integers(0, 256, 5000, dtype=np.uint8), zeros(64, dtype=np.uint32)
    blocks.run("histogram", (3, 2), block, data, out, 5000)
    assert out.tolist() == np.bincount(data & 63, minlength=64).tolist()


def test_atomics(blocks: Device) -> None:
    o, wide = zeros(11), zeros(2, dtype=np.uint64)
    o[4] = -1
    f, d = zeros(1, dtype=np.float32), zeros(1, dtype=np.float64)
    blocks.run("atomics", 4, (33, 3), o, wide, f, d)
    ts = range(4 * 99)
    values = [t * 7 % 101 - 50 for t in ts]
    xor = 0
    for t in ts:
        xor ^= t
    dec = 0
    for _ in ts:
        dec = 9 if dec == 0 or dec > 9 else dec - 1
    expected = [sum(ts), max(values), min(*values, 0), s32(max(v & M32 for v in values))]
    expected += [s32(M32 & ~0xFFFF), -1, xor, len(ts) % 10, dec, -3 * len(ts), sum(2 * t + 1 for t in ts)]
    assert o.tolist() == expected
    assert wide.tolist() == [sum(t << 32 | 1 for t in ts) & M64, max(ts) << 33]
    assert f[0] == sum(ts) and d[0] == 0.5 * sum(ts)


def test_transposition(blocks: Device) -> None:
    a = rng().random((37, 50))
    out = zeros(50, 37, dtype=np.float64)
    blocks.run("transpose", (4, 3), (16, 16), a, out, 50, 37)
    assert (out == a.T).all()


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_uneven_loops(blocks: Device, block: tuple[int, ...]) -> None:
    n, out = threads(block), zeros(2, threads(block))
    blocks.run("uneven", 2, block, out, 6)
    cells, acc = list(range(n)), [0] * n
    for r in range(7):
        v = [sum(cells[(t + i) % n] for i in range((t + r) % 5 + 1)) for t in range(n)]
        cells = [x & 0xFFFF for x in v]
        acc = [x ^ y for x, y in zip(acc, v, strict=True)]
    for t in range(n):
        if t % 3:
            for i in range(t % 7 + 1):
                acc[t] = s32(acc[t] * 31 + i)
    assert out.tolist() == [acc, acc]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_divergent_warps(blocks: Device, block: tuple[int, ...]) -> None:
    n, out = threads(block), zeros(2, threads(block))
    blocks.run("divergent", 2, block, out)
    expected = []
    for t in range(n):
        warp = range(t // 32 * 32, min(n, t // 32 * 32 + 32))
        expected.append(sum(u for u in warp if u & 1) if t & 1 else -sum(u % 3 == 0 for u in warp if not u & 1))
    assert out.tolist() == [expected, expected]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_redux(blocks: Device, block: tuple[int, ...]) -> None:
    if blocks.way[0] == "compute_75":
        return
    n = threads(block)
    a, out = words(n).view(np.int32), zeros(n, 6)
    blocks.run("redux", 1, block, a, out)
    for w in range(0, n, 32):
        v = a[w : w + 32].tolist()
        xor = 0
        for x in v:
            xor ^= x & M32
        most = s32(max(x & M32 for x in v))
        for lane, x in enumerate(v):
            same = s32(sum(1 << i for i, y in enumerate(v) if y & 3 == x & 3))
            assert out[w + lane].tolist() == [s32(sum(v)), min(v), max(v), most, s32(xor), same]


# --- floats -------------------------------------------------------------------------------------------------


def ulps(got: Array, exact: list[Any], dtype: Any) -> float:
    """The greatest distance from the exact values, in units of the last place."""
    worst = 0.0
    for g, e in zip(got.ravel().tolist(), exact, strict=True):
        unit = float(np.spacing(np.abs(dtype(float(e)))))
        worst = max(worst, float(abs(mpmath.mpf(g) - e) / unit))
    return worst


def test_polynomials(floats: Device) -> None:
    a = np.concatenate([rng().normal(size=97), [0.0, 1.0, -1.0]]).astype(np.float32)
    b = rng(3).normal(size=100)
    f, d = zeros(100, 2, dtype=np.float32), zeros(100, 2, dtype=np.float64)
    floats.run("polynomials", 4, 32, a, b, f, d, 100)
    p, q = np.zeros(100, np.float32), np.zeros(100)
    for i in range(8):
        p = p * a + np.float32(i - 3) * np.float32(0.37)
        q = q * b + (i - 3) * 0.37
    if floats.way[1] == "unfused":
        assert (f == np.stack([p, a / (p + np.float32(1.5))], 1)).all()
        assert (d == np.stack([q, np.sqrt(np.abs(q)) / b], 1)).all()
    else:
        assert np.allclose(f[:, 0], p, rtol=1e-4, atol=1e-4)
        assert np.allclose(d[:, 0], q, rtol=1e-12, atol=1e-12)


def test_nbody_step(floats: Device) -> None:
    n = 70
    a, out = rng().normal(size=(n, 4)).astype(np.float32), zeros(n, 4, dtype=np.float32)
    floats.run("nbody", 3, 32, a, out, n)
    acc = np.zeros((n, 3), np.float32)
    for j in range(n):
        delta = a[j, :3] - a[:, :3]
        sq = delta * delta
        r2 = sq[:, 0] + sq[:, 1] + sq[:, 2] + np.float32(0.01)
        s = a[j, 3] / (r2 * np.sqrt(r2))
        acc = acc + delta * s[:, None]
    if floats.way[1] == "unfused":
        assert (out[:, :3] == acc).all() and (out[:, 3] == a[:, 3]).all()
    else:
        assert np.allclose(out[:, :3], acc, rtol=1e-3, atol=1e-3)


def test_mandelbrot(floats: Device) -> None:
    w, h, most = 61, 37, 60
    out = zeros(h, w)
    floats.run("mandelbrot", (4, 5), (16, 8), out, w, h, most)
    different = 0
    for y in range(h):
        for x in range(w):
            cr, ci, zr, zi, i = -2.0 + 3.0 * x / w, -1.0 + 2.0 * y / h, 0.0, 0.0, 0
            while i < most and zr * zr + zi * zi <= 4.0:
                zr, zi, i = zr * zr - zi * zi + cr, 2 * zr * zi + ci, i + 1
            different += out[y, x] != i
    assert different <= (0 if floats.way[1] == "unfused" else 30)


def test_casts(floats: Device) -> None:
    a = (rng().normal(size=100) * 10.0 ** rng().integers(0, 9, 100)).astype(np.float32)
    b = rng(5).normal(size=100) * 10.0 ** rng(6).integers(0, 9, 100)
    a[:8] = [0.5, 1.5, -0.5, -1.5, -2.5, 0.0, 1e9, -1e9]
    b[:8] = [0.5, 1.5, -0.5, -1.5, 2.5, -0.0, 30000.7, -1e8]
    out, f = zeros(100, 10, dtype=np.int64), zeros(100, 4, dtype=np.float32)
    floats.run("casts", 4, 32, a, b, out, f, 100)
    for x, y, o, g in zip(a, b, out.tolist(), f, strict=True):
        s, up = int(x), int(np.ceil(x))
        short = ctypes.c_int16(int(y)).value
        expected = [s, s, int(np.rint(x)), up, int(np.floor(y)), int(abs(x)), short]
        expected += [int(x.view(np.int32)), int(y.view(np.int64)), int(np.rint(y))]
        assert o == expected, (x, y)
        nearest = np.float32(y)
        toward = nearest if abs(float(nearest)) <= abs(y) else np.nextafter(nearest, np.float32(0))
        whole = np.float32(int(y))
        above = whole if float(whole) >= int(y) else np.nextafter(whole, np.float32(np.inf))
        assert g.tolist() == [nearest, toward, whole, above]


def test_roundings(floats: Device) -> None:
    import softfloat as sf

    a = (rng().normal(size=100) * 10.0 ** rng().integers(-6, 6, 100)).astype(np.float32)
    b = (rng(5).normal(size=100) * 10.0 ** rng(6).integers(-6, 6, 100)).astype(np.float32)
    out = zeros(100, 10, dtype=np.float32)
    floats.run("rounded", 4, 32, a, b, out, 100)
    f = sf.F32
    for x, y, o in zip(
        a.view(np.uint32).tolist(), b.view(np.uint32).tolist(), out.view(np.uint32).tolist(), strict=True
    ):
        expected = [sf.add(f, x, y, "rp"), sf.mul(f, x, y, "rm"), sf.div(f, x, y, "rz"), sf.sqrt(f, x & ~f.sign, "rp")]
        expected += [
            sf.div(f, f.one, y, "rm"),
            sf.fma(f, x, y, x, "rz"),
            sf.integral(f, x, "rmi"),
            sf.integral(f, y, "rni"),
        ]
        p, q = f.value(x), f.value(y)
        rest = abs(p) % abs(q)
        expected += [f.round(-rest if p < 0 else rest, "rn", zero=x & f.sign), sf.saturate(f, x)]
        slow = floats.way[1] == "fast"
        for i, (e, g) in enumerate(zip(expected, o, strict=True)):
            if slow and i == 8:
                continue
            assert e == g, (i, hex(x), hex(y), e, hex(g))


def test_math_functions(floats: Device) -> None:
    a = np.concatenate([rng().random(90) * 4, [1e-9, 1.0, 0.5, 2.0, 3.999, 1e-300, 0.1, 0.7, 2.718281828, 3.14159265]])
    out, f = zeros(100, 10, dtype=np.float64), zeros(100, 6, dtype=np.float32)
    floats.run("functions", 4, 32, a, out, f, 100)
    mpmath.mp.prec = 200
    m = mpmath
    exact: list[Callable[[Any], Any]] = [
        m.sqrt, m.exp, m.sin, lambda x: m.power(x, m.mpf(1.7)), m.log, None,
        lambda x: m.atan2(x, m.mpf(2.0 - float(x))), m.cbrt, None, None,
    ]  # fmt: skip
    bounds = [0.5, 1, 2, 2, 1, 2, 2, 1, 10, 2]  # CUDA C++ Programming Guide, mathematical functions appendix
    big = [float(x) for x in a * 1000.0]
    for i, function in enumerate(exact):
        if i == 5:
            values = [m.cos(m.mpf(x)) for x in big]
        elif i == 8:
            values = [m.gamma(m.mpf(float(x) * 0.3 + 1)) for x in a]
        elif i == 9:
            values = [m.erf(m.mpf(float(x) * 0.2)) for x in a]
        else:
            values = [function(m.mpf(float(x))) for x in a]
        worst = ulps(out[:, i], values, np.float64)
        fused = i == 8 and floats.way[1] != "unfused"  # its argument may be fused
        assert worst <= (20 if fused else bounds[i]), (i, worst)
    if floats.way[1] == "fast":
        return
    z = a.astype(np.float32)
    z[z == 0] = 1
    single = [m.sin, m.exp, m.log, lambda x: m.power(x, m.mpf(float(np.float32(1.7)))), m.tanh, None]
    limits = [2, 2, 1, 4, 2, 2]
    keep = a > 1e-30
    for i, function in enumerate(single):
        xs = a.astype(np.float32)[keep]
        if function is None:
            values = [m.cos(m.mpf(float(np.float32(x) * np.float32(50000.0)))) for x in xs]
        else:
            values = [function(m.mpf(float(x))) for x in xs]
        worst = ulps(f[keep, i], values, np.float32)
        assert worst <= limits[i], (i, worst)
