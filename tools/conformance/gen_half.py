"""f16, f16x2 and bf16 arithmetic (PTX ISA 9.7.4, 9.7.7): expected values from exact fractions, rounded once."""

from __future__ import annotations

import random
from collections.abc import Callable

import _ieee as ieee
from _build import CaseFile, elementwise_case, target
from _ieee import BF16, F16, Format, key

NEEDS = {"f16": ("fp16",), "bf16": ()}


def generate() -> list[CaseFile]:
    file = CaseFile("half")
    two_operands(file)
    fused(file)
    one_operand(file)
    extremes(file)
    compares(file)
    flushed(file)
    return [file]


def values(f: Format, seed: str, count: int) -> list[int]:
    rng = random.Random(f"{seed}.{f.name}")
    ends = [0, 1, (1 << f.fraction) - 1, 1 << f.fraction, f.of(1), f.of(1) + 1, f.of(3), f.largest, f.inf]
    return [x | s for x in ends for s in (0, f.sign)] + [f.nan] + [rng.getrandbits(f.bits) for _ in range(count)]


def pairs(f: Format, seed: str) -> tuple[list[int], list[int]]:
    some = values(f, seed, 0)
    rng = random.Random(f"{seed}.pairs")
    a = [x for x in some for _ in some[::2]] + [rng.getrandbits(16) for _ in range(60)]
    b = [y for _ in some for y in some[::2]] + [rng.getrandbits(16) for _ in range(60)]
    return a, b


def joined(low: list[int], high: list[int]) -> list[int]:
    return [y << 16 | x for x, y in zip(low, high, strict=True)]


TWO: dict[str, tuple[str, Callable[[Format, int, int, str], int]]] = {
    "add": ("9.7.4.1", ieee.add),
    "sub": ("9.7.4.2", ieee.sub),
    "mul": ("9.7.4.3", ieee.mul),
}


def two_operands(file: CaseFile) -> None:
    module = file.module("half_f16")
    for op, (section, exact) in TWO.items():
        a, b = pairs(F16, op)
        expected = [exact(F16, x, y, "rn") for x, y in zip(a, b, strict=True)]
        name = f"{op}_f16"
        kernel = module.elementwise(name, [("b16", "b16")] * 2, [("b16", "b16")] * 2,
                                    f"{op}.rn.f16 %d, %a, %b;\n{op}.f16 %e, %a, %b;")  # fmt: skip
        elementwise_case(file, name, module, kernel, [("f16", a), ("f16", b)],
                         [target("f16", expected), target("f16", expected)], section=section,
                         needs=NEEDS["f16"])  # fmt: skip
        high_a, high_b = a[5:] + a[:5], b[9:] + b[:9]
        # The halves of a packed result are told apart by type f16: two elements for each word.
        both = [v for x, y, p, q in zip(a, b, high_a, high_b, strict=True)
                for v in (exact(F16, x, y, "rn"), exact(F16, p, q, "rn"))]  # fmt: skip
        packed(file, f"{op}_f16x2", f"{op}.rn.f16x2 %d, %a, %b;", F16,
               [joined(a, high_a), joined(b, high_b)], both, section)  # fmt: skip


def packed(
    file: CaseFile, name: str, body: str, f: Format, inputs: list[list[int]], halves: list[int], section: str
) -> None:
    """A case whose 32-bit results are looked at as pairs of halves, so that any NaN will do in each."""
    module = file.module("half_packed")
    kernel = module.elementwise(name, [("b32", "b32")] * len(inputs), [("b32", "b32")], body)
    out = target(f.name, [0] * len(inputs[0]))
    elementwise_case(file, name, module, kernel, [("b32", column) for column in inputs], [out], section=section,
                     needs=NEEDS[f.name])  # fmt: skip
    out.expected = halves


def fused(file: CaseFile) -> None:
    module = file.module("half_fma")
    for f in (F16, BF16):
        a, b = pairs(f, "fma")
        rng = random.Random(f"fma.c.{f.name}")
        c = []
        for x, y in zip(a, b, strict=True):
            product = ieee.mul(f, x, y)
            c.append(rng.choice([rng.getrandbits(16), f.of(1), product ^ f.sign if not f.is_nan(product) else 0]))
        expected = [ieee.fma(f, x, y, z) for x, y, z in zip(a, b, c, strict=True)]
        name = f"fma_{f.name}"
        kernel = module.elementwise(name, [("b16", "b16")] * 3, [("b16", "b16")], f"fma.rn.{f.name} %d, %a, %b, %c;")
        elementwise_case(file, name, module, kernel, [(f.name, a), (f.name, b), (f.name, c)],
                         [target(f.name, expected)], section="9.7.4.4", needs=NEEDS[f.name])  # fmt: skip
        shifted = [column[3:] + column[:3] for column in (a, b, c)]
        both = [v for x, y in zip(expected, expected[3:] + expected[:3], strict=True) for v in (x, y)]
        packed(file, f"fma_{f.name}x2", f"fma.rn.{f.name}x2 %d, %a, %b, %c;", f,
               [joined(low, high) for low, high in zip((a, b, c), shifted, strict=True)], both, "9.7.4.4")  # fmt: skip


def one_operand(file: CaseFile) -> None:
    module = file.module("half_sign")
    for f in (F16, BF16):
        a = values(f, "sign", 40)
        name = f"abs_neg_{f.name}"
        kernel = module.elementwise(name, [("b16", "b16")], [("b16", "b16")] * 2,
                                    f"abs.{f.name} %d, %a;\nneg.{f.name} %e, %a;")  # fmt: skip
        elementwise_case(file, name, module, kernel, [(f.name, a)],
                         [target(f.name, [x & ~f.sign for x in a]), target(f.name, [x ^ f.sign for x in a])],
                         section="9.7.4.5", needs=NEEDS[f.name])  # fmt: skip


def extremes(file: CaseFile) -> None:
    module = file.module("half_minmax")
    for f in (F16, BF16):
        a, b = pairs(f, "minmax")
        name = f"min_max_{f.name}"
        kernel = module.elementwise(
            name, [("b16", "b16")] * 2, [("b16", "b16")] * 4,
            f"min.{f.name} %d, %a, %b;\nmax.{f.name} %e, %a, %b;\n"
            f"min.NaN.{f.name} %f, %a, %b;\nmax.NaN.{f.name} %m, %a, %b;",
        )  # fmt: skip
        rows = list(zip(a, b, strict=True))
        elementwise_case(file, name, module, kernel, [(f.name, a), (f.name, b)],
                         [target(f.name, [exact(f, x, y, nan) for x, y in rows])
                          for nan in (False, True) for exact in (ieee.minimum, ieee.maximum)],
                         section="9.7.4.7", needs=NEEDS[f.name])  # fmt: skip


def compares(file: CaseFile) -> None:
    module = file.module("half_compare")
    a, b = pairs(F16, "compare")
    ops = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "num", "nan")
    body = ["mov.u32 %d, 0;"]
    for number, op in enumerate(ops):
        body += [f"setp.{op}.f16 %p2, %a, %b;", f"selp.u32 %r6, {1 << number}, 0, %p2;", "or.b32 %d, %d, %r6;"]
    kernel = module.elementwise("setp_f16", [("b16", "b16")] * 2, [("u32", "u32")], "\n".join(body))

    def result(x: int, y: int) -> int:
        loose = F16.is_nan(x) or F16.is_nan(y)
        p, q = key(F16, x), key(F16, y)
        holds = [
            not loose and p == q, not loose and p != q, not loose and p < q, not loose and p <= q, not loose and p > q,
            not loose and p >= q, loose or p == q, loose or p != q, loose or p < q, not loose, loose,
        ]  # fmt: skip
        return sum(h << number for number, h in enumerate(holds))

    elementwise_case(file, "setp_f16", module, kernel, [("f16", a), ("f16", b)],
                     [target("b32", [result(x, y) for x, y in zip(a, b, strict=True)])], section="9.7.7.2",
                     needs=NEEDS["f16"])  # fmt: skip


def flushed(file: CaseFile) -> None:
    """.ftz and .sat, on numbers whose results do not lie where rounding and flushing meet."""
    module = file.module("half_ftz")
    a = [0, 1, 0x3FF, 0x400, 0x401, 0x3C00, 0x8001, 0x83FF, 0xBC00, 0x4200, 0x3800, 0x7BFF]
    b = a[4:] + a[:4]
    kernel = module.elementwise("ftz_f16", [("b16", "b16")] * 2, [("b16", "b16")] * 2,
                                "add.rn.ftz.f16 %d, %a, %b;\nadd.rn.sat.f16 %e, %a, %b;")  # fmt: skip
    sums = [F16.flush(ieee.add(F16, F16.flush(x), F16.flush(y))) for x, y in zip(a, b, strict=True)]
    clamped = [ieee.saturate(F16, ieee.add(F16, x, y)) for x, y in zip(a, b, strict=True)]
    elementwise_case(file, "ftz_f16", module, kernel, [("f16", a), ("f16", b)],
                     [target("f16", sums), target("f16", clamped)], section="9.7.4.1", needs=NEEDS["f16"])  # fmt: skip
