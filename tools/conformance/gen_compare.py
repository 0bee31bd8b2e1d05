"""setp, set, selp, slct (PTX ISA 9.7.6): expected values from exact comparisons, unordered ones as the manual says."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from _build import CaseFile, elementwise_case, integer_edges, pairs, signed, target
from _ieee import F32, F64, Format, key

ORDERED: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
NEEDS: dict[str, tuple[str, ...]] = {"f32": (), "f64": ("fp64",)}


def float_compare(f: Format, op: str, a: int, b: int) -> bool:
    """Ordered comparisons are false for NaNs, the ones that end in u are true; num and nan ask just that."""
    unordered = f.is_nan(a) or f.is_nan(b)
    if op in ("num", "nan"):
        return unordered == (op == "nan")
    if op in ORDERED:
        return not unordered and ORDERED[op](key(f, a), key(f, b))
    return unordered or ORDERED[op[:-1]](key(f, a), key(f, b))


FLOAT_OPS = (*ORDERED, *(f"{op}u" for op in ORDERED), "num", "nan")


def generate() -> list[CaseFile]:
    file = CaseFile("compare")
    integers(file)
    floats(file)
    combined(file)
    sets(file)
    selects(file)
    return [file]


def bitmap(kind: str, ops: Sequence[str], ftz: str = "") -> str:
    """PTX that sets bit i of %d if comparison i holds."""
    lines = ["mov.u32 %d, 0;"]
    for number, op in enumerate(ops):
        lines += [
            f"setp.{op}{ftz}.{kind} %p2, %a, %b;",
            f"selp.u32 %r6, {1 << number:#x}, 0, %p2;",
            "or.b32 %d, %d, %r6;",
        ]
    return "\n".join(lines)


def integers(file: CaseFile) -> None:
    module = file.module("compare_integer")
    for bits in (16, 32, 64):
        edges = integer_edges(bits)
        a, b = pairs(bits, f"setp{bits}", 60)
        a, b = a + edges, b + edges
        for sign in "sub":
            kind = f"{sign}{bits}"
            ops = ["eq", "ne"] if sign == "b" else list(ORDERED) + (list(UNSIGNED) if sign == "u" else [])

            def result(x: int, y: int, sign: str = sign, bits: int = bits, ops: Sequence[str] = ops) -> int:
                if sign == "s":
                    x, y = signed(x, bits), signed(y, bits)
                return sum(ORDERED[UNSIGNED.get(op, op)](x, y) << number for number, op in enumerate(ops))

            name = f"setp_{kind}"
            kernel = module.elementwise(name, [(f"b{bits}", f"b{bits}")] * 2, [("u32", "u32")], bitmap(kind, ops))
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b)],
                [target("b32", [result(x, y) for x, y in zip(a, b, strict=True)], ", ".join(ops))], section="9.7.6.2",
            )  # fmt: skip


def float_pairs(f: Format) -> tuple[list[int], list[int]]:
    some = [0, f.sign, 1, f.sign | 1, 1 << f.fraction, f.of(1), f.of(-1), f.of(1) + 1, f.largest, f.inf, f.inf | f.sign,
            f.nan, f.nan | f.sign, f.inf + 1]  # fmt: skip
    return [x for x in some for _ in some], [y for _ in some for y in some]


def floats(file: CaseFile) -> None:
    module = file.module("compare_float")
    for f in (F32, F64):
        a, b = float_pairs(f)
        kernel = module.elementwise(
            f"setp_{f.name}", [(f.name, f.name)] * 2, [("u32", "u32")], bitmap(f.name, FLOAT_OPS)
        )

        def result(x: int, y: int, f: Format = f) -> int:
            return sum(float_compare(f, op, x, y) << number for number, op in enumerate(FLOAT_OPS))

        elementwise_case(
            file, f"setp_{f.name}", module, kernel, [(f.name, a), (f.name, b)],
            [target("b32", [result(x, y) for x, y in zip(a, b, strict=True)], ", ".join(FLOAT_OPS))],
            section="9.7.6.2", needs=NEEDS[f.name],
        )  # fmt: skip
    f = F32
    small = [x | s for x in (0, 1, 0x7FFFFF, 0x800000, 0x800001) for s in (0, f.sign)]
    a = [x for x in small for _ in small]
    b = small * len(small)
    kernel = module.elementwise(
        "setp_ftz_f32", [("f32", "f32")] * 2, [("u32", "u32")], bitmap("f32", FLOAT_OPS, ".ftz")
    )

    def flushed(x: int, y: int) -> int:
        return sum(float_compare(f, op, f.flush(x), f.flush(y)) << number for number, op in enumerate(FLOAT_OPS))

    elementwise_case(
        file, "setp_ftz_f32", module, kernel, [("f32", a), ("f32", b)],
        [target("b32", [flushed(x, y) for x, y in zip(a, b, strict=True)])], section="9.7.6.2",
    )  # fmt: skip


def combined(file: CaseFile) -> None:
    """p = cmp BoolOp c, q = !cmp BoolOp c; negated predicates; the sink _."""
    module = file.module("compare_combined")
    kernel = module.elementwise(
        "setp_boolop", [("s32", "s32")] * 3, [("u32", "u32")],
        """setp.gt.s32 %p2, %c, 0;
           setp.lt.and.s32 %p3|%p4, %a, %b, %p2;
           setp.eq.or.s32 %p5|%p6, %a, %b, !%p2;
           setp.ge.xor.u32 %p7|%p1, %a, %b, %p2;
           mov.u32 %d, 0;
           @%p3 or.b32 %d, %d, 1;
           @%p4 or.b32 %d, %d, 2;
           @%p5 or.b32 %d, %d, 4;
           @%p6 or.b32 %d, %d, 8;
           @%p7 or.b32 %d, %d, 16;
           @%p1 or.b32 %d, %d, 32;
           @!%p1 or.b32 %d, %d, 64;
           setp.ne.s32 _|%p3, %a, %b;
           @%p3 or.b32 %d, %d, 128;""",
    )  # fmt: skip
    edges = [0, 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
    rows = [(x, y, z) for x in edges for y in edges for z in (0, 1, 0xFFFFFFFF)]

    def result(x: int, y: int, z: int) -> int:
        c = signed(z, 32) > 0
        less, equal, above = signed(x, 32) < signed(y, 32), x == y, x >= y
        last = (not above) != c
        return (
            (less and c) + 2 * (not less and c) + 4 * (equal or not c) + 8 * (not equal or not c)
            + 16 * (above != c) + 32 * last + 64 * (not last) + 128 * equal
        )  # fmt: skip

    a, b, c = ([row[i] for row in rows] for i in range(3))
    elementwise_case(
        file, "setp_boolop", module, kernel, [("s32", a), ("s32", b), ("s32", c)],
        [target("b32", [result(*row) for row in rows])], section="9.7.6.2",
    )  # fmt: skip


def sets(file: CaseFile) -> None:
    module = file.module("compare_set")
    a, b = float_pairs(F32)
    one = F32.of(1)
    kernel = module.elementwise(
        "set_f32", [("f32", "f32")] * 2, [("u32", "u32"), ("s32", "s32"), ("f32", "f32"), ("u32", "u32")],
        """set.lt.u32.f32 %d, %a, %b;
           set.geu.s32.f32 %e, %a, %b;
           set.eq.f32.f32 %f, %a, %b;
           setp.gt.f32 %p2, %b, 0f00000000;
           set.nan.and.u32.f32 %m, %a, %a, %p2;""",
    )  # fmt: skip
    rows = list(zip(a, b, strict=True))
    full = 0xFFFFFFFF
    elementwise_case(
        file, "set_f32", module, kernel, [("f32", a), ("f32", b)],
        [
            target("b32", [full * float_compare(F32, "lt", x, y) for x, y in rows]),
            target("b32", [full * float_compare(F32, "geu", x, y) for x, y in rows]),
            target("b32", [one * float_compare(F32, "eq", x, y) for x, y in rows]),
            target("b32", [full * (F32.is_nan(x) and float_compare(F32, "gt", y, 0)) for x, y in rows]),
        ],
        section="9.7.6.1",
    )  # fmt: skip
    p, q = pairs(32, "set", 30)
    kernel = module.elementwise(
        "set_s32", [("s32", "s32")] * 2, [("u32", "u32"), ("f32", "f32"), ("s32", "s32")],
        """set.lt.u32.s32 %d, %a, %b;
           set.hi.f32.u32 %e, %a, %b;
           setp.ne.s32 %p2, %a, 0;
           set.eq.xor.s32.b32 %f, %a, %b, %p2;""",
    )  # fmt: skip
    rows = list(zip(p, q, strict=True))
    elementwise_case(
        file, "set_s32", module, kernel, [("s32", p), ("s32", q)],
        [
            target("b32", [full * (signed(x, 32) < signed(y, 32)) for x, y in rows]),
            target("b32", [one * (x > y) for x, y in rows]),
            target("b32", [full * ((x == y) != (x != 0)) for x, y in rows]),
        ],
        section="9.7.6.1",
    )  # fmt: skip


def selects(file: CaseFile) -> None:
    module = file.module("compare_select")
    rng = random.Random("selp")
    for bits, float_kind in ((16, None), (32, "f32"), (64, "f64")):
        kind = f"b{bits}"
        a, b = ([rng.getrandbits(bits) for _ in range(32)] for _ in range(2))
        c = [rng.choice([0, 1, 0xFFFFFFFF, 0x80000000]) for _ in range(32)]
        types = [kind, f"u{bits}", f"s{bits}", *([float_kind] if float_kind else [])]
        body = "setp.lt.s32 %p2, %c, 0;\n" + "\n".join(
            f"selp.{t} %{d}, {'%x, %y' if t == float_kind else '%a, %b'}, %p2;"
            for d, t in zip("defm", types, strict=False)
        )
        kernel = module.elementwise(
            f"selp_{kind}", [(kind, kind), (kind, kind), ("s32", "s32")],
            [(float_kind if t == float_kind and float_kind else kind, kind) for t in types],
            (f"mov.b{bits} %x, %a;\nmov.b{bits} %y, %b;\n" if float_kind else "") + body,
            f".reg .{float_kind} %x, %y;" if float_kind else "",
        )  # fmt: skip
        chosen = [x if signed(z, 32) < 0 else y for x, y, z in zip(a, b, c, strict=True)]
        elementwise_case(
            file, f"selp_{kind}", module, kernel, [(kind, a), (kind, b), ("s32", c)],
            [target(kind, chosen, t) for t in types], section="9.7.6.3", needs=NEEDS.get(float_kind or "", ()),
        )  # fmt: skip
    a, b = ([rng.getrandbits(32) for _ in range(16)] for _ in range(2))
    c = [0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 5, 0xFFFFFF00, 0] * 2
    g = [0, F32.sign, F32.of(1), F32.of(-1), F32.nan, F32.inf, F32.inf | F32.sign, 1, F32.sign | 1] + [F32.of(-2)] * 7
    kernel = module.elementwise(
        "slct_b32", [("b32", "b32"), ("b32", "b32"), ("s32", "s32"), ("f32", "f32")], [("u32", "u32")] * 2,
        "slct.u32.s32 %d, %a, %b, %c;\nslct.b32.f32 %e, %a, %b, %g;",
    )  # fmt: skip
    elementwise_case(
        file, "slct_b32", module, kernel, [("b32", a), ("b32", b), ("s32", c), ("f32", g)],
        [
            target("b32", [x if signed(z, 32) >= 0 else y for x, y, z in zip(a, b, c, strict=True)]),
            target(
                "b32", [x if float_compare(F32, "ge", w, 0) else y for x, y, w in zip(a, b, g, strict=True)]
            ),
        ],
        section="9.7.6.4", note="-0.0 counts as greater than or equal to zero, a NaN does not.",
    )  # fmt: skip
