"""Kernels as NVRTC compiles them, against numpy and plain Python."""

from __future__ import annotations

import struct
from typing import Any

import lower_rig as rig
import numpy as np
import pytest

ARCHES = ("compute_75", "compute_120")
"""The oldest and a newest one: their compilers write floats to .f32 and to .b32 registers."""

i32 = np.int32


@pytest.fixture(scope="module", params=ARCHES)
def basic(request: pytest.FixtureRequest) -> rig.Module:
    return rig.Module(rig.cuda_ptx("basic", request.param))


@pytest.fixture(scope="module", params=ARCHES)
def various(request: pytest.FixtureRequest) -> rig.Module:
    return rig.Module(rig.cuda_ptx("various", request.param))


@pytest.fixture(scope="module", params=ARCHES)
def indirect(request: pytest.FixtureRequest) -> rig.Module:
    return rig.Module(rig.cuda_ptx("indirect", request.param))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def signed32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, whose sums are exact in any order."""
    return rig.aligned(rng.integers(-8, 9, shape).astype(np.float32))


# --- basic.cu -------------------------------------------------------------------------------------------


def test_vector_add(basic: rig.Module, rng: np.random.Generator) -> None:
    a, b, c = floats(rng, 1000), floats(rng, 1000), rig.poisoned(1024, dtype=np.float32)
    basic.launch("vadd", (4,), (256,), [a, b, c, i32(1000)])
    assert (c[:1000] == a + b).all()
    assert (c[1000:] == 77).all()


def test_tiled_matrix_product(basic: rig.Module, rng: np.random.Generator) -> None:
    a, b, c = floats(rng, 64, 64), floats(rng, 64, 64), rig.poisoned(64, 64, dtype=np.float32)
    basic.launch("matmul", (4, 4), (16, 16), [a, b, c, i32(64)])
    assert (c == a @ b).all()
    assert not basic.infos["matmul"].flat
    assert basic.infos["matmul"].static_shared_bytes == 2048


def test_reduction_with_shuffles_and_dynamic_shared_memory(basic: rig.Module, rng: np.random.Generator) -> None:
    a, total = floats(rng, 10000), rig.aligned(np.zeros(1, np.float32))
    basic.launch("reduce", (4,), (128,), [a, total, i32(10000)], shared=16)
    assert total[0] == a.sum()
    assert basic.infos["reduce"].flat
    assert basic.infos["reduce"].static_shared_bytes == 0


def test_structure_by_value_to_a_kernel_and_a_function(basic: rig.Module, rng: np.random.Generator) -> None:
    p, o = floats(rng, 32), rig.poisoned(32, dtype=np.float64)
    q, arr = [7, -8, 9], [0.5, 1.5, 2.5, 3.5, 4.5]
    s = struct.pack("<Qi4xd3h2x5f4x", p.ctypes.data, 20, 2.5, *q, *arr)
    basic.launch("structs", (1,), (32,), [s, o])
    assert o[:20].tolist() == [2.5 * float(p[i]) + q[i % 3] + arr[i % 5] for i in range(20)]
    assert (o[20:] == 77).all()


def test_constants_globals_switch_and_functions(basic: rig.Module) -> None:
    o = rig.poisoned(32)
    basic.launch("misc", (1,), (32,), [o, i32(6)])
    assert o[:8].tolist() == [1, 3, 3, 3 * 6, 4 + 2 + 16, 720, 42, 2]
    assert (o[8:] == -1).all()


# --- various.cu -----------------------------------------------------------------------------------------

BLOCKS = [(16, 16), (8, 8, 4), (33, 3), (48, 2), (70,), (5,)]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("kernel", ["ids_of_warp", "ids"])
def test_thread_ids(various: rig.Module, kernel: str, block: tuple[int, ...]) -> None:
    x, y, z = (*block, 1, 1)[:3]
    n, grid = x * y * z, (3, 2)
    o = rig.poisoned(6, n, 6)
    various.launch(kernel, grid, block, [o])
    for b in range(6):
        for t in range(n):
            ids = [t % x, t // x % y, t // (x * y)]
            rest = [t, y, t % 32] if kernel == "ids_of_warp" else [b % 3, b // 3, 2]
            assert o[b, t].tolist() == ids + rest
    assert various.infos[kernel].flat == (kernel == "ids_of_warp")


@pytest.mark.parametrize("n", [256, 200, 64, 33, 1, 0])
def test_return_before_a_barrier(various: rig.Module, rng: np.random.Generator, n: int) -> None:
    a, o = rig.aligned(rng.integers(0, 1000, 256, dtype=i32)), rig.poisoned(256)
    various.launch("early", (1,), (256,), [a, o, i32(n)])
    assert o[:n].tolist() == a[:n][::-1].tolist()
    assert (o[n:] == 77).all()


def test_returns_between_barriers(various: rig.Module, rng: np.random.Generator) -> None:
    a, o = rig.aligned(rng.integers(0, 1000, 256, dtype=i32)), rig.poisoned(256)
    various.launch("early_twice", (1,), (96,), [a, o, i32(96)])
    t = np.arange(96)
    expected = np.full(256, 77)
    expected[:96][t % 3 == 0] = a[:96][t % 3 != 1].sum()
    assert (o == expected).all()


@pytest.mark.parametrize("n", [128, 65, 32, 7])
def test_leaving_with_work_to_do_and_inside_a_loop(various: rig.Module, rng: np.random.Generator, n: int) -> None:
    a, rounds, o = rig.aligned(rng.integers(1, 50, 128, dtype=i32)), rig.aligned(np.array([5], i32)), rig.poisoned(128)
    various.launch("early_loop", (1,), (128,), [a, rounds, o, i32(n)])
    values, alive = a.astype(int), [t < n for t in range(128)]
    expected = [-t if t >= n else None for t in range(128)]
    for r in range(5):
        for t in range(n):
            if alive[t] and values[t] % 7 == r:
                alive[t], expected[t] = False, 1000 + r
        shared = {t: int(values[t]) for t in range(n) if alive[t]}
        total = sum(shared.values())
        for t in range(n):
            if alive[t]:
                values[t] = total % 100 + t
    assert o.tolist() == [int(values[t]) if e is None else e for t, e in enumerate(expected)]


def test_one_function_on_pointers_into_every_space(various: rig.Module, rng: np.random.Generator) -> None:
    a, o = rig.aligned(rng.integers(0, 1000, 64, dtype=i32)), rig.poisoned(32, 8)
    various.launch("spaces", (1,), (32,), [a, o], shared=128)
    first = a[:32]
    constants = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]
    for t in range(32):
        assert o[t].tolist() == [
            2 * first.sum(),
            3 * first[::2].sum(),
            sum(t + i for i in range(8)),
            sum(i * i for i in range(32)),
            sum(constants),
            a[0:12:3].sum(),
            a[3] * 2 if t & 1 else a[3],
            a[3] * 2,
        ]


def test_array_of_pointers(various: rig.Module, rng: np.random.Generator) -> None:
    arrays = [floats(rng, 32) for _ in range(5)]
    before = np.array(arrays)
    pointers = rig.aligned(np.array([x.ctypes.data for x in arrays], np.uint64))
    o = rig.poisoned(32, dtype=np.float32)
    various.launch("pointers", (1,), (32,), [pointers, o, i32(5)])
    assert (np.array(arrays) == np.cumsum(before, 0)).all()
    assert (o == before.sum(0)).all()


@pytest.mark.parametrize(("step", "n"), [(32, 999), (7, 999), (1, 100)])
def test_pointer_that_walks_bytes(various: rig.Module, rng: np.random.Generator, step: int, n: int) -> None:
    p, o = rig.aligned(rng.integers(-128, 128, 1000).astype(np.int8)), rig.poisoned(64)
    various.launch("walk", (1,), (32,), [p, o, i32(n), i32(step)])
    for t in range(32):
        s, q = 0, t
        while q < n:
            s, q = signed32(s * 31 + int(p[q])), q + step
        assert (o[t], o[32 + t]) == (s, q)


def test_pointer_that_walks_backwards(various: rig.Module, rng: np.random.Generator) -> None:
    p, o = rig.aligned(rng.integers(0, 65536, 1000).astype(np.uint16)), rig.poisoned(32, dtype=np.uint32)
    various.launch("walk_back", (1,), (32,), [p, o, np.int64(999)])
    assert o.tolist() == [p[:999][::-1][t::32].astype(np.uint32).sum() for t in range(32)]


def test_comparing_pointers(various: rig.Module) -> None:
    a = rig.aligned(np.arange(100, dtype=i32))
    various.launch("reverse", (1,), (64,), [a, i32(100)])
    assert a.tolist() == list(range(99, -1, -1))


def test_kernel_parameter_indexed_at_run_time(various: rig.Module, rng: np.random.Generator) -> None:
    p, o = floats(rng, 32), rig.poisoned(32)
    a, b = rng.integers(-100, 100, 40), rng.integers(-100, 100, 7)
    s = struct.pack("<40i7h2xdQ", *a, *b, 12.75, p.ctypes.data)
    various.launch("big", (1,), (32,), [s, o])
    assert o.tolist() == [sum(a[i * t % 40] for i in range(40)) + b[t % 7] + 12 + int(p[t]) for t in range(32)]


def test_switch(various: rig.Module) -> None:
    a, o = rig.aligned((np.arange(64) % 13 - 1).astype(i32)), rig.poisoned(128)
    various.launch("switches", (1,), (64,), [a, o])
    results = {0: 10, 1: 77, 2: -998, 3: 96, 4: ~4, 5: 125, 6: 6 ^ 0x55, 7: 1, 8: 4, 9: -9}
    assert o[:64].tolist() == [results.get(int(v), -99) for v in a]
    assert o[64:].tolist() == [5 if v == 7 else 77 for v in a]


def test_structures_returned(various: rig.Module, rng: np.random.Generator) -> None:
    a, b, o = floats(rng, 64, 3), floats(rng, 64, 3), rig.poisoned(64, 3, dtype=np.float32)
    various.launch("crosses", (2,), (32,), [a, b, o])
    assert (o == np.cross(a, b)).all()


def test_recursion(various: rig.Module) -> None:
    def ackermann(m: int, n: int) -> int:
        if m == 0:
            return n + 1
        return ackermann(m - 1, ackermann(m, n - 1) if n else 1)

    o = rig.poisoned(32)
    various.launch("ackermann", (1,), (32,), [o])
    assert o.tolist() == [ackermann(t % 3, t % 4) for t in range(32)]


def test_arguments_of_every_size(various: rig.Module) -> None:
    o, h = rig.poisoned(32, dtype=np.int64), rig.poisoned(32, dtype=np.uint8)
    various.launch("mixes", (1,), (32,), [o, h])
    for t in range(32):
        a, b, g = t - 16, t * 3 - 50, 1000 if t & 1 else 0
        assert o[t] == a * 3 + b * 5 + t * 7000 + (t << 33) * 11 + int(t * 1.5) + int(t * 2.25) + g
        assert h[t] == (a + b) % 256


def test_vectors(various: rig.Module, rng: np.random.Generator) -> None:
    a, o = floats(rng, 32, 4), rig.poisoned(32, 4, dtype=np.float32)
    d, od = rig.aligned(rng.random((32, 2))), rig.poisoned(32, 2, dtype=np.float64)
    u, ou = rig.aligned(rng.integers(0, 256, (32, 4)).astype(np.uint8)), rig.poisoned(32, 4, dtype=np.uint8)
    various.launch("vectors", (1,), (32,), [a, o, d, od, u, ou])
    assert (o == np.stack([a[:, 0] + 1, a[:, 1] * 2, a[:, 2] - 3, -a[:, 3]], 1)).all()
    assert (od == np.stack([d[:, 0] * d[:, 1], d[:, 1]], 1)).all()
    assert (ou == np.stack([u[:, 0] + u[:, 1], u[:, 1], u[:, 2], np.full(32, 7)], 1).astype(np.uint8)).all()


def test_shared_memory_by_name_by_number_and_by_generic_address(various: rig.Module) -> None:
    o = rig.poisoned(5, 32)
    various.launch("shared_mix", (1,), (32,), [o])
    for t in range(32):
        assert o[:, t].tolist() == [
            (t + 1) % 32 * 7,
            (t % 16 + 3) * 7,
            -(31 - t),
            np.array([(t ^ 1) * 9 % 256], np.uint8).view(np.int8)[0],
            (t % 8 + 2) * 7,
        ]


def test_histogram(various: rig.Module, rng: np.random.Generator) -> None:
    d, o = rig.aligned(rng.integers(0, 256, 5000).astype(np.uint8)), rig.aligned(np.zeros(64, np.uint32))
    various.launch("histogram", (3,), (64,), [d, o, i32(5000)])
    assert (o == np.bincount(d & 63, minlength=64)).all()


def test_scan(various: rig.Module, rng: np.random.Generator) -> None:
    a, o = rig.aligned(rng.integers(-9, 9, (2, 128)).astype(i32)), rig.poisoned(2, 128)
    various.launch("scan", (2,), (128,), [a, o])
    assert (o == np.cumsum(a, 1)).all()


def test_transpose(various: rig.Module, rng: np.random.Generator) -> None:
    a, o = floats(rng, 70, 50), rig.poisoned(50, 70, dtype=np.float32)
    various.launch("transpose", (2, 3), (32, 8), [a, o, i32(50), i32(70)])
    assert (o == a.T).all()


def test_nested_loops_with_break_continue_and_goto(various: rig.Module, rng: np.random.Generator) -> None:
    n = 64
    a, o = rig.aligned(rng.integers(-10, 100, n).astype(i32)), rig.poisoned(64)
    various.launch("nested", (1,), (64,), [a, o, i32(n)])
    for t in range(64):
        s = 0
        for i in range(n):
            j = int(a[(t * 7 + i) % n])
            if j < 0:
                continue
            if j > 90:
                break
            while j > 0:
                if j & 1:
                    s += j
                elif j % 3 == 0:
                    s ^= j
                    break
                j //= 2
            else:
                s *= 3
            s = signed32(s)
        assert o[t] == s


def test_matrix_vector_product(various: rig.Module, rng: np.random.Generator) -> None:
    a, x, y = floats(rng, 70, 70), floats(rng, 70), rig.poisoned(128, dtype=np.float32)
    various.launch("matvec", (2,), (64,), [a, x, y, i32(70)])
    assert (y[:70] == a @ x).all()
    assert (y[70:] == 77).all()


def test_trap_that_is_not_reached(various: rig.Module) -> None:
    o = rig.poisoned(32)
    various.launch("traps", (1,), (32,), [o, i32(3)])
    assert (o == 3).all()


# --- indirect.cu ----------------------------------------------------------------------------------------


def test_calls_through_a_table_of_pointers(indirect: rig.Module) -> None:
    o, chosen = rig.poisoned(32), rig.aligned((np.arange(32) * 5 + 2).astype(i32))
    indirect.launch("by_pointer", (1,), (32,), [o, chosen])
    assert o.tolist() == [[t + 5, t * 5 - 1, t ^ 5][(t * 5 + 2) % 3] for t in range(32)]


def test_virtual_functions(indirect: rig.Module) -> None:
    o, chosen = rig.poisoned(32, dtype=np.float32), rig.aligned((np.arange(32) * 5 + 2).astype(i32))
    indirect.launch("virtual_calls", (1,), (32,), [o, chosen])
    assert o.tolist() == [[t * 3.0, t + 7.0, float(t)][(t * 5 + 2) % 3] for t in range(32)]


def test_assertion_that_holds(indirect: rig.Module) -> None:
    o = rig.poisoned(32)
    indirect.launch("asserts", (1,), (32,), [o, i32(50)])
    assert (o == 50).all()
