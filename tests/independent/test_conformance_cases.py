"""The expected values in spec/conformance, against this folder's interpreter and oracle."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import interpreter
import oracle
import pytest
import rig
from oracle import TYPES

from zluda.spec import conformance


def elements(text: str, data: dict[str, str], width: int) -> list[int | None]:
    """Hexadecimal elements; `x*n` repeats, `-` is anything."""
    if text.startswith("$"):
        text = data[text[1:]]
    out: list[int | None] = []
    for token in text.split():
        value, _, times = token.partition("*")
        if value.startswith("&"):
            raise interpreter.Unsupported("addresses in the data")
        out += [None if value == "-" else int(value, 16)] * int(times or 1)
    return out


def width(kind: str) -> int:
    return TYPES[kind] // 8


def packed(values: list[int | None], size: int) -> bytes:
    return b"".join((v or 0).to_bytes(size, "little") for v in values)


def check(case: conformance.CaseSpec, data: dict[str, str]) -> list[str]:
    """What differs from what the interpreter makes of the kernel."""
    text = case.text if case.text is not None else (conformance.folder() / str(case.ptx)).read_text()
    kernel = interpreter.parse(text, case.kernel)
    memory = interpreter.Memory()
    arguments, outputs = [], []
    for spec in case.argument:
        if not spec.passed:
            raise interpreter.Unsupported("a buffer that is no parameter")
        size = width(spec.type)
        values = elements(spec.bits, data, size) if spec.bits else []
        expected = elements(spec.expected, data, size) if spec.expected else []
        if spec.kind == "value":
            arguments.append(packed(values, size))
            continue
        start = packed(values, size) if values else b"\xa5" * (len(expected) * size)
        address, block = memory.place(start)
        arguments.append(address.to_bytes(8, "little"))
        if expected:
            outputs.append((spec, expected, block))
    interpreter.Run(kernel, memory, arguments, case.grid, case.block, case.shared).launch()
    wrong = []
    for spec, expected, block in outputs:
        size = width(spec.type)
        got = [int.from_bytes(block[i : i + size], "little") for i in range(0, len(block), size)]
        masks = elements(spec.mask, data, size) if spec.mask else [(1 << 8 * size) - 1] * len(expected)
        if spec.order == "any":
            if Counter(got) != Counter(expected):
                wrong.append(f"{case.id} {spec.name}: other elements")
            continue
        for i, (e, g, m) in enumerate(zip(expected, got, masks, strict=True)):
            if e is None or (e ^ g) & int(m or 0) == 0:
                continue
            f = oracle.FORMATS.get(spec.type)
            if f is not None and f.is_nan(e) and f.is_nan(g):
                continue
            if "f16x2" in case.kernel and size == 4 and _halves_agree(e, g):
                continue
            wrong.append(f"{case.id} {spec.name}[{i}]: the case has {e:#x}, the interpreter {g:#x}")
    return wrong


def _halves_agree(e: int, g: int) -> bool:
    return all(
        (e ^ g) >> s & 0xFFFF == 0 or (oracle.F16.is_nan(e >> s & 0xFFFF) and oracle.F16.is_nan(g >> s & 0xFFFF))
        for s in (0, 16)
    )


def sweep(path: Path, step: int = 1) -> tuple[int, dict[str, str], list[str]]:
    """How many cases of a file were compared, which were not and why, and what differs."""
    file = conformance.read(path)
    compared, passed_over, wrong = 0, {}, []
    for case in file.case[::step]:
        if any(a.ulp or a.absolute or a.relative for a in case.argument):
            passed_over[case.id] = "a tolerance"
            continue
        try:
            wrong += check(case, file.data)[:4]
            compared += 1
        except interpreter.Unsupported as why:
            passed_over[case.id] = str(why)
    return compared, passed_over, wrong


LEAST = {"integer": 60, "warp": 50, "atomics": 60, "float": 40, "convert": 60, "bits": 30, "compare": 10, "half": 10}
"""At least so many cases of a file this interpreter must be able to judge."""


@pytest.mark.parametrize("path", conformance.files(), ids=lambda p: p.stem)
def test_expected_values(path: Path) -> None:
    compared, passed_over, wrong = sweep(path, 1 if rig.WHOLE else 12)
    assert not wrong, "\n".join(wrong)
    assert compared >= LEAST.get(path.stem, 0) // (1 if rig.WHOLE else 12), passed_over
