"""Integer arithmetic (PTX ISA 9.7.1, 9.7.2): expected values from Python's unbounded integers."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterable

from _build import CaseFile, column, elementwise_case, integer_edges, pairs, signed, target, varied

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")


def bits_of(kind: str) -> int:
    return int(kind[1:])


def number(kind: str, x: int) -> int:
    """The number that the bits `x` spell in type `kind`."""
    return signed(x, bits_of(kind)) if kind[0] == "s" else x


def mask(bits: int) -> int:
    return (1 << bits) - 1


def clamp(kind: str, x: int) -> int:
    bits = bits_of(kind)
    low, high = (-(1 << (bits - 1)), mask(bits - 1)) if kind[0] == "s" else (0, mask(bits))
    return max(low, min(high, x))


def truncated(a: int, b: int) -> int:
    """Division toward zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def overflows(kind: str, a: int, b: int) -> bool:
    """MININT / -1, whose value the ISA leaves open."""
    return kind[0] == "s" and b == -1 and a == -(1 << (bits_of(kind) - 1))


Exact = Callable[[str, int, int], "int | None"]

BINARY: dict[str, tuple[str, Exact]] = {
    "add": ("9.7.1.1", lambda _, a, b: a + b),
    "sub": ("9.7.1.2", lambda _, a, b: a - b),
    "mul.lo": ("9.7.1.3", lambda _, a, b: a * b),
    "mul.hi": ("9.7.1.3", lambda kind, a, b: (a * b) >> bits_of(kind)),
    "div": ("9.7.1.8", lambda kind, a, b: None if b == 0 or overflows(kind, a, b) else truncated(a, b)),
    "rem": ("9.7.1.9", lambda kind, a, b: None if b == 0 or overflows(kind, a, b) else a - b * truncated(a, b)),
    "min": ("9.7.1.12", lambda _, a, b: min(a, b)),
    "max": ("9.7.1.13", lambda _, a, b: max(a, b)),
}


def generate() -> list[CaseFile]:
    file = CaseFile("integer")
    binary(file)
    wide(file)
    multiply_add(file)
    unary(file)
    saturating(file)
    carry(file)
    dot(file)
    immediates(file)
    return [file]


def binary(file: CaseFile) -> None:
    for op, (section, exact) in BINARY.items():
        module = file.module(f"integer_{op.replace('.', '_')}")
        for kind in TYPES:
            bits = bits_of(kind)
            a, b = pairs(bits, f"{op}.{kind}")

            def result(x: int, y: int, kind: str = kind, exact: Exact = exact, bits: int = bits) -> int | None:
                value = exact(kind, number(kind, x), number(kind, y))
                return None if value is None else value & mask(bits)

            name = f"{op.replace('.', '_')}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)] * 2, [(kind, kind)], f"{op}.{kind} %d, %a, %b;")
            note = (
                "What the ISA leaves open is not looked at, but must not end the program."
                if op in ("div", "rem")
                else ""
            )
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b)], [target(kind, column(result, a, b))],
                section=section, note=note,
            )  # fmt: skip


def wide(file: CaseFile) -> None:
    module = file.module("integer_mul_wide")
    for kind in ("u16", "s16", "u32", "s32"):
        bits = bits_of(kind)
        double = f"{kind[0]}{2 * bits}"
        a, b = pairs(bits, f"wide.{kind}")
        name = f"mul_wide_{kind}"
        kernel = module.elementwise(name, [(kind, kind)] * 2, [(double, double)], f"mul.wide.{kind} %d, %a, %b;")
        expected = [number(kind, x) * number(kind, y) & mask(2 * bits) for x, y in zip(a, b, strict=True)]
        elementwise_case(
            file, name, module, kernel, [(kind, a), (kind, b)], [target(double, expected)], section="9.7.1.3"
        )


def multiply_add(file: CaseFile) -> None:
    module = file.module("integer_mad")
    rng = random.Random("mad")
    for kind in TYPES:
        bits = bits_of(kind)
        a, b = pairs(bits, f"mad.{kind}")
        c = [rng.choice([rng.choice(integer_edges(bits)), varied(rng, bits)]) for _ in a]
        rows = list(zip(a, b, c, strict=True))
        for mode in ("lo", "hi"):
            name = f"mad_{mode}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)] * 3, [(kind, kind)], f"mad.{mode}.{kind} %d, %a, %b, %c;")
            shift = bits if mode == "hi" else 0
            expected = [((number(kind, x) * number(kind, y) >> shift) + z) & mask(bits) for x, y, z in rows]
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b), (kind, c)], [target(kind, expected)],
                section="9.7.1.4",
            )  # fmt: skip
        name = f"sad_{kind}"
        kernel = module.elementwise(name, [(kind, kind)] * 3, [(kind, kind)], f"sad.{kind} %d, %a, %b, %c;")
        expected = [(abs(number(kind, x) - number(kind, y)) + z) & mask(bits) for x, y, z in rows]
        elementwise_case(
            file, name, module, kernel, [(kind, a), (kind, b), (kind, c)], [target(kind, expected)], section="9.7.1.7"
        )
        if bits == 64:
            continue
        double = f"{kind[0]}{2 * bits}"
        wider = [rng.choice([rng.choice(integer_edges(2 * bits)), varied(rng, 2 * bits)]) for _ in a]
        name = f"mad_wide_{kind}"
        kernel = module.elementwise(
            name, [(kind, kind), (kind, kind), (double, double)], [(double, double)],
            f"mad.wide.{kind} %d, %a, %b, %c;",
        )  # fmt: skip
        expected = [
            (number(kind, x) * number(kind, y) + z) & mask(2 * bits) for x, y, z in zip(a, b, wider, strict=True)
        ]
        elementwise_case(
            file, name, module, kernel, [(kind, a), (kind, b), (double, wider)], [target(double, expected)],
            section="9.7.1.4",
        )  # fmt: skip
    for kind in ("u32", "s32"):
        a, b = pairs(32, f"mul24.{kind}")
        c = [varied(rng, 32) for _ in a]

        def product(x: int, y: int, kind: str = kind) -> int:
            return (signed(x, 24) * signed(y, 24)) if kind == "s32" else (x & mask(24)) * (y & mask(24))

        for mode, shift in (("lo", 0), ("hi", 16)):
            name = f"mul24_{mode}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)] * 2, [(kind, kind)], f"mul24.{mode}.{kind} %d, %a, %b;")
            expected = [product(x, y) >> shift & mask(32) for x, y in zip(a, b, strict=True)]
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b)], [target(kind, expected)], section="9.7.1.5"
            )
            name = f"mad24_{mode}_{kind}"
            kernel = module.elementwise(
                name, [(kind, kind)] * 3, [(kind, kind)], f"mad24.{mode}.{kind} %d, %a, %b, %c;"
            )
            expected = [(product(x, y) >> shift) + z & mask(32) for x, y, z in zip(a, b, c, strict=True)]
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b), (kind, c)], [target(kind, expected)],
                section="9.7.1.6",
            )  # fmt: skip


def unary(file: CaseFile) -> None:
    module = file.module("integer_unary")
    rng = random.Random("unary")
    for kind in ("s16", "s32", "s64"):
        bits = bits_of(kind)
        a = [x for x in integer_edges(bits) if x != 1 << (bits - 1)] + [varied(rng, bits) for _ in range(30)]
        name = f"abs_{kind}"
        kernel = module.elementwise(name, [(kind, kind)], [(kind, kind)], f"abs.{kind} %d, %a;")
        expected = [abs(number(kind, x)) & mask(bits) for x in a]
        elementwise_case(file, name, module, kernel, [(kind, a)], [target(kind, expected)], section="9.7.1.10")
        a = integer_edges(bits) + [varied(rng, bits) for _ in range(30)]
        name = f"neg_{kind}"
        kernel = module.elementwise(name, [(kind, kind)], [(kind, kind)], f"neg.{kind} %d, %a;")
        elementwise_case(
            file, name, module, kernel, [(kind, a)], [target(kind, [-x & mask(bits) for x in a])], section="9.7.1.11"
        )


def saturating(file: CaseFile) -> None:
    module = file.module("integer_sat")
    a, b = pairs(32, "sat")
    rng = random.Random("sat")
    c = [rng.choice(integer_edges(32)) for _ in a]
    rows = list(zip(a, b, c, strict=True))
    s32: Callable[[int], int] = lambda x: signed(x, 32)  # noqa: E731
    add = [clamp("s32", s32(x) + s32(y)) & mask(32) for x, y, _ in rows]
    sub = [clamp("s32", s32(x) - s32(y)) & mask(32) for x, y, _ in rows]
    mad = [clamp("s32", (s32(x) * s32(y) >> 32) + s32(z)) & mask(32) for x, y, z in rows]
    two = [("s32", "s32")] * 2
    kernel = module.elementwise("add_sat_s32", two, [("s32", "s32")], "add.sat.s32 %d, %a, %b;")
    elementwise_case(file, kernel, module, kernel, [("s32", a), ("s32", b)], [target("s32", add)], section="9.7.1.1")
    kernel = module.elementwise("sub_sat_s32", two, [("s32", "s32")], "sub.sat.s32 %d, %a, %b;")
    elementwise_case(file, kernel, module, kernel, [("s32", a), ("s32", b)], [target("s32", sub)], section="9.7.1.2")
    kernel = module.elementwise(
        "mad_hi_sat_s32", [("s32", "s32")] * 3, [("s32", "s32")], "mad.hi.sat.s32 %d, %a, %b, %c;"
    )
    elementwise_case(
        file, kernel, module, kernel, [("s32", a), ("s32", b), ("s32", c)], [target("s32", mad)], section="9.7.1.4"
    )


def split(values: Iterable[int]) -> tuple[list[int], list[int]]:
    """Low and high words of 128-bit numbers."""
    numbers = list(values)
    return [v & mask(64) for v in numbers], [v >> 64 & mask(64) for v in numbers]


def carry(file: CaseFile) -> None:
    """Chains through CC.CF: sums and differences of several words, and products of 64-bit numbers."""
    module = file.module("integer_carry")
    rng = random.Random("carry")

    def numbers(bits: int) -> list[int]:
        edges = [
            0,
            1,
            mask(bits),
            mask(bits) - 1,
            1 << (bits - 1),
            mask(bits // 2),
            1 << (bits // 2),
            mask(bits) ^ mask(32),
        ]
        return edges

    # 64 bits from two 32-bit words, the carry out of the top made visible.
    edges = numbers(64)
    a = [x for x in edges for _ in edges] + [rng.getrandbits(64) for _ in range(32)]
    b = [y for _ in edges for y in edges] + [rng.getrandbits(64) for _ in range(32)]
    for name, section, first, then, op in (
        ("add_cc_addc_u32", "9.7.2.2", "add.cc.u32", "addc.cc.u32", operator.add),
        ("sub_cc_subc_u32", "9.7.2.4", "sub.cc.u32", "subc.cc.u32", operator.sub),
        ("add_cc_addc_s32", "9.7.2.2", "add.cc.s32", "addc.cc.s32", operator.add),
    ):
        end = "addc.u32 %e, 0, 0;" if first.startswith("add") else "subc.u32 %e, 0, 0;"
        kernel = module.elementwise(
            name, [("b64", "b64")] * 2, [("b64", "b64"), ("b32", "b32")],
            f"""mov.b64 {{%x0, %x1}}, %a;
                mov.b64 {{%y0, %y1}}, %b;
                {first} %x0, %x0, %y0;
                {then} %x1, %x1, %y1;
                {end}
                mov.b64 %d, {{%x0, %x1}};""",
            ".reg .b32 %x<2>, %y<2>;",
        )  # fmt: skip
        low = [op(x, y) & mask(64) for x, y in zip(a, b, strict=True)]
        high = [op(x, y) >> 64 & mask(32) for x, y in zip(a, b, strict=True)]
        elementwise_case(
            file, name, module, kernel, [("b64", a), ("b64", b)], [target("b64", low), target("b32", high)],
            section=section, note="The last output is the carry (0 or 1) or the borrow (0 or -1) out of the top.",
        )  # fmt: skip

    # 128 bits from two 64-bit words.
    edges = numbers(128)
    x = [p for p in edges for _ in edges] + [rng.getrandbits(128) for _ in range(20)]
    y = [q for _ in edges for q in edges] + [rng.getrandbits(128) for _ in range(20)]
    (x0, x1), (y0, y1) = split(x), split(y)
    for name, section, body, op in (
        ("add_cc_addc_u64", "9.7.2.2", "add.cc.u64 %d, %a, %c;\naddc.u64 %e, %b, %g;", operator.add),
        ("sub_cc_subc_u64", "9.7.2.4", "sub.cc.u64 %d, %a, %c;\nsubc.u64 %e, %b, %g;", operator.sub),
    ):
        kernel = module.elementwise(name, [("u64", "u64")] * 4, [("u64", "u64")] * 2, body)
        low, high = split([op(p, q) & mask(128) for p, q in zip(x, y, strict=True)])
        elementwise_case(
            file, name, module, kernel, [("u64", x0), ("u64", x1), ("u64", y0), ("u64", y1)],
            [target("u64", low), target("u64", high)], section=section,
        )  # fmt: skip

    # The full 128-bit product of 64-bit numbers out of 32-bit multiply-adds, as compilers write it.
    kernel = module.elementwise(
        "mad_cc_madc_u32", [("b64", "b64")] * 2, [("b64", "b64")] * 2,
        """mov.b64 {%x0, %x1}, %a;
           mov.b64 {%y0, %y1}, %b;
           mul.lo.u32     %z0, %x0, %y0;
           mul.hi.u32     %z1, %x0, %y0;
           mad.lo.cc.u32  %z1, %x0, %y1, %z1;
           madc.hi.u32    %z2, %x0, %y1, 0;
           mad.lo.cc.u32  %z1, %x1, %y0, %z1;
           madc.hi.cc.u32 %z2, %x1, %y0, %z2;
           addc.u32       %z3, 0, 0;
           mad.lo.cc.u32  %z2, %x1, %y1, %z2;
           madc.hi.u32    %z3, %x1, %y1, %z3;
           mov.b64 %d, {%z0, %z1};
           mov.b64 %e, {%z2, %z3};""",
        ".reg .b32 %x<2>, %y<2>, %z<4>;",
    )  # fmt: skip
    low, high = split([p * q for p, q in zip(a, b, strict=True)])
    elementwise_case(
        file, "mad_cc_madc_u32", module, kernel, [("b64", a), ("b64", b)], [target("b64", low), target("b64", high)],
        section="9.7.2.6",
    )  # fmt: skip
    kernel = module.elementwise(
        "mad_cc_madc_u64", [("u64", "u64")] * 4, [("u64", "u64")] * 2,
        """mad.lo.cc.u64 %d, %a, %b, %c;
           madc.hi.u64   %e, %a, %b, %g;""",
    )  # fmt: skip
    c = [rng.choice([0, mask(64), rng.getrandbits(64)]) for _ in a]
    g = [rng.choice([0, mask(64), rng.getrandbits(64)]) for _ in a]
    low, high = split([p * q + r + (s << 64) for p, q, r, s in zip(a, b, c, g, strict=True)])
    elementwise_case(
        file, "mad_cc_madc_u64", module, kernel, [("u64", a), ("u64", b), ("u64", c), ("u64", g)],
        [target("u64", low), target("u64", high)], section="9.7.2.6",
    )  # fmt: skip

    # The flag survives instructions in between that do not touch it.
    kernel = module.elementwise(
        "carry_survives", [("u32", "u32")] * 2, [("u32", "u32")] * 2,
        """add.cc.u32 %d, %a, %b;
           mul.lo.u32 %r6, %a, %b;
           xor.b32 %r7, %r6, 0x5a5a5a5a;
           setp.gt.u32 %p2, %r7, %a;
           selp.u32 %r6, %r6, %r7, %p2;
           addc.u32 %e, %r6, 0;""",
    )  # fmt: skip
    p, q = pairs(32, "survives")

    def between(x: int, y: int) -> int:
        product = x * y & mask(32)
        other = product ^ 0x5A5A5A5A
        return (product if other > x else other) + (x + y >> 32) & mask(32)

    elementwise_case(
        file, "carry_survives", module, kernel, [("u32", p), ("u32", q)],
        [target("u32", [x + y & mask(32) for x, y in zip(p, q, strict=True)]), target("u32", column(between, p, q))],
        section="9.7.2",
    )  # fmt: skip


def dot(file: CaseFile) -> None:
    module = file.module("integer_dot")
    rng = random.Random("dot")
    words = [0, mask(32), 0x80808080, 0x7F7F7F7F, 0x01020304, 0xFF00FF00, 0x80007FFF]
    a = [x for x in words for _ in words] + [rng.getrandbits(32) for _ in range(30)]
    b = [y for _ in words for y in words] + [rng.getrandbits(32) for _ in range(30)]
    c = [rng.choice([0, 1, mask(32), 1 << 31, rng.getrandbits(32)]) for _ in a]
    rows = list(zip(a, b, c, strict=True))

    def parts(kind: str, x: int, bits: int) -> list[int]:
        pieces = [x >> shift & mask(bits) for shift in range(0, 32, bits)]
        return [signed(piece, bits) for piece in pieces] if kind == "s32" else pieces

    for left in ("u32", "s32"):
        for right in ("u32", "s32"):
            kind = "u32" if left == right == "u32" else "s32"
            name = f"dp4a_{left}_{right}"
            kernel = module.elementwise(
                name, [("b32", "b32"), ("b32", "b32"), (kind, kind)], [(kind, kind)],
                f"dp4a.{left}.{right} %d, %a, %b, %c;",
            )  # fmt: skip
            expected = [
                z + sum(p * q for p, q in zip(parts(left, x, 8), parts(right, y, 8), strict=True)) & mask(32)
                for x, y, z in rows
            ]
            elementwise_case(
                file, name, module, kernel, [("b32", a), ("b32", b), (kind, c)], [target(kind, expected)],
                section="9.7.1.23",
            )  # fmt: skip
            for mode, start in (("lo", 0), ("hi", 2)):
                name = f"dp2a_{mode}_{left}_{right}"
                kernel = module.elementwise(
                    name, [("b32", "b32"), ("b32", "b32"), (kind, kind)], [(kind, kind)],
                    f"dp2a.{mode}.{left}.{right} %d, %a, %b, %c;",
                )  # fmt: skip
                expected = [
                    z
                    + sum(p * q for p, q in zip(parts(left, x, 16), parts(right, y, 8)[start : start + 2], strict=True))
                    & mask(32)
                    for x, y, z in rows
                ]
                elementwise_case(
                    file, name, module, kernel, [("b32", a), ("b32", b), (kind, c)], [target(kind, expected)],
                    section="9.7.1.24", tier="verify",
                )  # fmt: skip


def immediates(file: CaseFile) -> None:
    """Constants in every notation (section 4.5), operands that are the same register, wider registers."""
    module = file.module("integer_immediate")
    a = integer_edges(32)
    kernel = module.elementwise(
        "immediate_forms", [("u32", "u32")], [("u32", "u32"), ("s64", "s64")],
        """add.u32 %d, %a, 0x10;
           sub.u32 %d, %d, 020;
           xor.b32 %d, %d, 0b1010;
           add.u32 %d, %d, 42U;
           add.u32 %d, %d, -1;
           mad.lo.u32 %d, %d, 3, 0xffffffff;
           add.u32 %d, %d, (5 * 4 - 0x3) << 2;
           sub.u32 %d, %d, !0 + ~0;
           cvt.s64.s32 %e, %a;
           add.s64 %e, %e, 0x7fffffffffffffff;
           sub.s64 %e, %e, -9223372036854775807;
           mul.lo.s64 %e, %e, %e;""",
    )  # fmt: skip

    def first(x: int) -> int:
        y = ((x + 16 - 16) ^ 10) + 42 - 1
        return (y * 3 - 1 + (17 << 2) - (1 + -1)) & mask(32)

    def second(x: int) -> int:
        y = signed(x, 32) + mask(63) + mask(63)
        return y * y & mask(64)

    elementwise_case(
        file, "immediate_forms", module, kernel, [("u32", a)],
        [target("u32", [first(x) for x in a]), target("s64", [second(x) for x in a])], section="4.5",
    )  # fmt: skip
    kernel = module.elementwise(
        "narrow_in_wide", [("b64", "b64")], [("b64", "b64"), ("b32", "b32"), ("b64", "b64")],
        """cvt.s64.s8 %d, %a;
           cvt.u32.u16 %e, %a;
           cvt.u16.u64 %rs1, %a;
           cvt.s64.s16 %f, %rs1;""",
        ".reg .b16 %rs<2>;",
    )  # fmt: skip
    b = integer_edges(64) + integer_edges(16) + integer_edges(8)
    elementwise_case(
        file, "narrow_in_wide", module, kernel, [("b64", b)],
        [
            target("b64", [signed(x, 8) & mask(64) for x in b]),
            target("b32", [x & mask(16) for x in b]),
            target("b64", [signed(x, 16) & mask(64) for x in b]),
        ],
        section="9.4.1", note="Registers wider than the instruction's type: the low bits count.",
    )  # fmt: skip
