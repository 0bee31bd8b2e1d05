"""Runs forms on the device through `zluda.open()`: many forms in a kernel, many kernels in a module."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from forms import Form, inputs
from oracle import TYPES, Halves, matches

import zluda

HEADER = ".version 8.7\n.target sm_90\n.address_size 64\n"
POISON = 0xA5
WHOLE = os.environ.get("ZLUDA_INDEPENDENT") == "all"
"""Everything (ten minutes), not the part that every run of the tests does."""


@cache
def gpu() -> zluda.Gpu:
    """The OpenCL device, opened once."""
    return zluda.open("opencl")


def register(kind: str) -> str:
    if kind == "pred":
        return "pred"
    return {8: "b16", 16: "b16", 32: "f32" if kind == "f32" else "b32", 64: "f64" if kind == "f64" else "b64"}[
        TYPES[kind]
    ]


def memory(kind: str) -> str:
    if kind in ("f32", "f64"):
        return kind
    if kind == "pred":
        return "u32"
    return f"{kind[0] if kind[0] in 'us' and TYPES[kind] == 8 else 'b'}{TYPES[kind]}"


def kernel(name: str, forms: Sequence[Form]) -> str:
    """A kernel that applies each form to its thread's operands; results go to 8-byte cells, form by form."""
    ins = forms[0].ins
    params = [f".param .u64 p{i}" for i in range(len(ins))] + [".param .u64 po", ".param .u32 pn"]
    lines = [f".visible .entry {name}({', '.join(params)})", "{"]
    body = [
        "ld.param.u32 %n, [pn];",
        "mov.u32 %i, %ctaid.x; mov.u32 %j, %ntid.x; mov.u32 %k, %tid.x;",
        "mad.lo.u32 %i, %i, %j, %k;",
        "setp.ge.u32 %out, %i, %n;",
        "@%out bra $done;",
    ]
    lines += [".reg .u32 %n, %i, %j, %k, %sel;", ".reg .u64 %base, %at, %step;", ".reg .pred %out;"]
    names = {}
    for i, kind in enumerate(ins):
        letter = "abcq"[i]
        names[letter] = f"%{letter}"
        lines.append(f".reg .{register(kind)} %{letter};")
        size = 4 if kind == "pred" else TYPES[kind] // 8
        body += [f"ld.param.u64 %base, [p{i}];", f"mad.wide.u32 %at, %i, {size}, %base;"]
        if kind == "pred":
            body += ["ld.global.u32 %sel, [%at];", "setp.ne.u32 %" + letter + ", %sel, 0;"]
        else:
            body += [f"ld.global.{memory(kind)} %{letter}, [%at];"]
    body += ["ld.param.u64 %base, [po];", "mad.wide.u32 %at, %i, 8, %base;", "mul.wide.u32 %step, %n, 8;"]
    for i, each in enumerate(forms):
        lines.append(f".reg .{register(each.out)} %d{i}, %t{i};")
        body.append(each.text.format(d=f"%d{i}", t=f"%t{i}", **names))
        if each.out == "pred":
            body += [f"selp.u32 %sel, 1, 0, %d{i};", "st.global.u32 [%at], %sel;"]
        else:
            body.append(f"st.global.{memory(each.out)} [%at], %d{i};")
        body.append("add.u64 %at, %at, %step;")
    return "\n".join([*lines, *body, "$done: ret;", "}"]) + "\n"


def array(kind: str, values: Sequence[int]) -> np.ndarray[Any, Any]:
    width = 32 if kind == "pred" else TYPES[kind]
    return np.array(values, dtype=f"u{width // 8}")


def grouped(forms: Sequence[Form], most: int) -> Iterator[list[Form]]:
    by_operands: dict[tuple[tuple[str, ...], str], list[Form]] = {}
    for each in forms:
        size = register(each.out) if "{t}" in each.text else ""
        by_operands.setdefault((each.ins, size), []).append(each)
    for group in by_operands.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def run(forms: Sequence[Form], rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """What the device makes of the rows, form by form."""
    text = HEADER + kernel("k", forms)
    function = gpu().load(text).function("k")
    count = len(rows)
    buffers = [gpu().array(array(kind, [row[i] for row in rows])) for i, kind in enumerate(forms[0].ins)]
    out = gpu().array(np.full(len(forms) * count * 8, POISON, np.uint8))
    function.launch(-(-count // 64), 64, *buffers, out, count)
    cells = out.numpy().reshape(len(forms), count, 8)
    results = []
    for i, each in enumerate(forms):
        size = 4 if each.out == "pred" else TYPES[each.out] // 8
        if (cells[i, :, size:] != POISON).any():
            raise AssertionError(f"{each.name}: wrote more than {size} bytes")
        results.append([int.from_bytes(cell[:size].tobytes(), "little") for cell in cells[i]])
    return results


def show(value: object) -> str:
    if isinstance(value, Halves):
        return "|".join(show(p) for p in reversed(value.parts))
    return hex(value) if isinstance(value, int) else str(value)


def compare(forms: Sequence[Form], count: int, seed: int, most: int = 12) -> Iterator[str]:
    """One line for every form that differs, with the first operands where it does."""
    rng = random.Random(seed)
    for group in grouped(forms, most):
        rows = inputs(group[0].ins, count, rng)
        try:
            results = run(group, rows)
        except zluda.CudaError as error:
            if len(group) == 1:
                yield f"{group[0].name}: {str(error).splitlines()[0]}"
                continue
            yield from (line for each in group for line in compare([each], count, seed))
            continue
        for each, got in zip(group, results, strict=True):
            bad = []
            for row, value in zip(rows, got, strict=True):
                expected = each.expect(row)
                if not matches(expected, value, each.out):
                    bad.append(f"({', '.join(map(hex, row))}) -> {hex(value)}, expected {show(expected)}")
            if bad:
                yield f"{each.name}: {len(bad)} of {len(rows)} differ: " + "; ".join(bad[:4])
