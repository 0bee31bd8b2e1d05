"""The generators' own arithmetic, against other implementations of IEEE-754: numpy and libm's fma."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import random
import struct
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "conformance"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


ieee = load("_ieee")
TYPES: dict[str, tuple[Any, Any]] = {
    "f16": (np.uint16, np.float16), "f32": (np.uint32, np.float32), "f64": (np.uint64, np.float64),
}  # fmt: skip


def values(f: Any, count: int) -> list[int]:
    rng = random.Random(f.name)
    ends = [0, 1, (1 << f.fraction) - 1, 1 << f.fraction, f.of(1) - 1, f.of(1), f.of(1) + 1, f.largest, f.inf, f.nan]
    return [x | s for x in ends for s in (0, f.sign)] + [rng.getrandbits(f.bits) for _ in range(count)]


def same(f: Any, exact: int, other: int) -> bool:
    return exact == other or (f.is_nan(exact) and f.is_nan(other))


@pytest.mark.parametrize("kind", TYPES)
def test_arithmetic_agrees_with_numpy(kind: str) -> None:
    f = ieee.FORMATS[kind]
    raw, number = TYPES[kind]
    some = values(f, 60)

    def bits(x: Any) -> int:
        return int(np.array([x], number).view(raw)[0])

    with np.errstate(all="ignore"):
        for a in some:
            x = np.array([a], raw).view(number)[0]
            assert same(f, ieee.sqrt(f, a), bits(np.sqrt(x)))
            for b in some:
                y = np.array([b], raw).view(number)[0]
                assert same(f, ieee.add(f, a, b), bits(x + y)), (hex(a), hex(b))
                assert same(f, ieee.sub(f, a, b), bits(x - y)), (hex(a), hex(b))
                assert same(f, ieee.mul(f, a, b), bits(x * y)), (hex(a), hex(b))
                assert same(f, ieee.div(f, a, b), bits(x / y)), (hex(a), hex(b))


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_conversions_agree_with_numpy(source: str, target: str) -> None:
    f, g = ieee.FORMATS[source], ieee.FORMATS[target]
    with np.errstate(all="ignore"):
        for a in values(f, 300):
            x = np.array([a], TYPES[source][0]).view(TYPES[source][1]).astype(TYPES[target][1])
            assert same(g, ieee.convert(f, g, a), int(x.view(TYPES[target][0])[0])), hex(a)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_fma_agrees_with_libm(kind: str) -> None:
    f = ieee.FORMATS[kind]
    libm = ctypes.CDLL("libm.so.6")
    function, c_type, code, word = (
        (libm.fmaf, ctypes.c_float, "<f", "<I") if kind == "f32" else (libm.fma, ctypes.c_double, "<d", "<Q")
    )
    function.restype, function.argtypes = c_type, [c_type] * 3
    rng = random.Random(kind)
    some = [x for x in values(f, 80) if not f.is_nan(x)]  # a signalling NaN would not survive the way through Python
    for _ in range(4000):
        a, b, c = (rng.choice(some) for _ in range(3))
        numbers = [struct.unpack(code, struct.pack(word, x))[0] for x in (a, b, c)]
        other = struct.unpack(word, struct.pack(code, function(*numbers)))[0]
        assert same(f, ieee.fma(f, a, b, c), other), (hex(a), hex(b), hex(c))


def test_directed_rounding_encloses() -> None:
    f = ieee.F32
    rng = random.Random("directed")
    for _ in range(2000):
        x = Fraction(rng.getrandbits(60) - (1 << 59), 1 << rng.randint(1, 180))
        low, high, cut, near = (f.value(f.round(x, mode)) for mode in ("rm", "rp", "rz", "rn"))
        assert low <= x <= high
        assert cut == (low if x >= 0 else high)
        assert near in (low, high) and abs(near - x) == min(abs(low - x), abs(high - x))


@pytest.mark.parametrize(
    "mode, function", [("rmi", math.floor), ("rpi", math.ceil), ("rzi", math.trunc), ("rni", round)]
)
def test_rounding_to_integers(mode: str, function: Any) -> None:
    for n in range(-41, 42):
        assert ieee.to_integer(Fraction(n, 8), mode) == function(Fraction(n, 8))
