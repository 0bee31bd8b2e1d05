"""Logic, shifts and bit operations (PTX ISA 9.7.1.14-22, 9.7.8, 9.7.9.7): expected bits one by one, from the manual."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence

from _build import CaseFile, column, elementwise_case, integer_edges, pairs, signed, target, varied

AMOUNTS = [0, 1, 5, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 128, 255, 256, 257, 0x80000000, 0xFFFFFFFF]


def mask(bits: int) -> int:
    return (1 << bits) - 1


def generate() -> list[CaseFile]:
    file = CaseFile("bits")
    logic(file)
    shifts(file)
    fields(file)
    counts(file)
    permute(file)
    lookup(file)
    funnel(file)
    masks(file)
    return [file]


def values(bits: int, seed: str, extra: int = 40) -> list[int]:
    rng = random.Random(seed)
    return integer_edges(bits) + [varied(rng, bits) for _ in range(extra)] + [1 << i for i in range(0, bits, 3)]


def logic(file: CaseFile) -> None:
    module = file.module("bits_logic")
    operations: dict[str, tuple[str, Callable[[int, int], int]]] = {
        "and": ("9.7.8.1", lambda a, b: a & b),
        "or": ("9.7.8.2", lambda a, b: a | b),
        "xor": ("9.7.8.3", lambda a, b: a ^ b),
    }
    for bits in (16, 32, 64):
        kind = f"b{bits}"
        a, b = pairs(bits, f"logic{bits}", 20)
        for op, (section, exact) in operations.items():
            name = f"{op}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)] * 2, [(kind, kind)], f"{op}.{kind} %d, %a, %b;")
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b)], [target(kind, column(exact, a, b))], section=section
            )
        a = values(bits, f"not{bits}")
        kernel = module.elementwise(
            f"not_{kind}", [(kind, kind)], [(kind, kind)] * 2, f"not.{kind} %d, %a;\ncnot.{kind} %e, %a;"
        )
        elementwise_case(
            file, f"not_{kind}", module, kernel, [(kind, a)],
            [target(kind, [x ^ mask(bits) for x in a]), target(kind, [int(x == 0) for x in a])], section="9.7.8.4",
        )  # fmt: skip
    kernel = module.elementwise(
        "logic_pred", [("u32", "u32")] * 2, [("u32", "u32")],
        """setp.lt.u32 %p2, %a, 100;
           setp.gt.s32 %p3, %b, -5;
           and.pred %p4, %p2, %p3;
           or.pred %p5, %p2, %p3;
           xor.pred %p6, %p2, %p3;
           not.pred %p7, %p2;
           selp.u32 %r6, 1, 0, %p4;
           selp.u32 %r7, 2, 0, %p5;
           add.u32 %r6, %r6, %r7;
           selp.u32 %r7, 4, 0, %p6;
           add.u32 %r6, %r6, %r7;
           selp.u32 %r7, 8, 0, %p7;
           add.u32 %r6, %r6, %r7;
           mov.pred %p2, %p3;
           mov.pred %p3, 1;
           and.pred %p2, %p2, %p3;
           selp.u32 %r7, 16, 0, %p2;
           add.u32 %d, %r6, %r7;""",
    )  # fmt: skip

    def predicates(x: int, y: int) -> int:
        p, q = x < 100, signed(y, 32) > -5
        return (p and q) + 2 * (p or q) + 4 * (p != q) + 8 * (not p) + 16 * q

    a, b = pairs(32, "pred", 40)
    b = [y if i % 3 else [0xFFFFFFFA, 0xFFFFFFFB, 0xFFFFFFFC][i // 3 % 3] for i, y in enumerate(b)]
    elementwise_case(
        file, "logic_pred", module, kernel, [("u32", a), ("u32", b)], [target("u32", column(predicates, a, b))],
        section="9.7.8",
    )  # fmt: skip


def shifts(file: CaseFile) -> None:
    module = file.module("bits_shift")
    for bits in (16, 32, 64):
        base = [0, 1, mask(bits), 1 << (bits - 1), mask(bits - 1), 0x5A5A5A5A5A5A5A5A & mask(bits)]
        a = [x for x in base for _ in AMOUNTS]
        amounts = AMOUNTS * len(base)
        for op, kind, section in (
            ("shl", f"b{bits}", "9.7.8.8"),
            ("shr", f"b{bits}", "9.7.8.9"),
            ("shr", f"u{bits}", "9.7.8.9"),
            ("shr", f"s{bits}", "9.7.8.9"),
        ):

            def exact(x: int, n: int, op: str = op, kind: str = kind, bits: int = bits) -> int:
                n = min(n, bits)
                if op == "shl":
                    return x << n & mask(bits)
                return (signed(x, bits) >> n) & mask(bits) if kind[0] == "s" else x >> n

            name = f"{op}_{kind}"
            kernel = module.elementwise(
                name, [(kind, kind), ("u32", "u32")], [(kind, kind)], f"{op}.{kind} %d, %a, %b;"
            )
            elementwise_case(
                file, name, module, kernel, [(kind, a), ("u32", amounts)], [target(kind, column(exact, a, amounts))],
                section=section, note="Amounts beyond the width count as the width.",
            )  # fmt: skip
    kernel = module.elementwise(
        "shift_immediate", [("b32", "b32"), ("b64", "b64")], [("b32", "b32"), ("b64", "b64"), ("b32", "b32")],
        """shl.b32 %d, %a, 3;
           shr.s32 %d, %d, 40;
           shl.b64 %e, %b, 33;
           shr.u64 %e, %e, 1;
           shr.u64 %e, %e, 0;
           shl.b32 %f, 1, %a;
           shr.u32 %r6, 0x80000000, %a;
           or.b32 %f, %f, %r6;""",
    )  # fmt: skip
    a = [*AMOUNTS, 0x10000000, 0x0FFFFFFF]
    b = [mask(64) >> (i % 64) for i in range(len(a))]
    elementwise_case(
        file, "shift_immediate", module, kernel, [("b32", a), ("b64", b)],
        [
            target("b32", [mask(32) if x << 3 & 0x80000000 else 0 for x in a]),
            target("b64", [(y << 33 & mask(64)) >> 1 for y in b]),
            target("b32", [(1 << x) | (0x80000000 >> x) if x < 32 else 0 for x in a]),
        ],
        section="9.7.8.8",
    )  # fmt: skip


def fields(file: CaseFile) -> None:
    module = file.module("bits_field")
    places = [0, 1, 4, 15, 16, 31, 32, 33, 63, 64, 200, 255, 256, 0x101, 0xFFFFFF1F]
    lengths = [0, 1, 3, 8, 16, 31, 32, 33, 63, 64, 255, 256, 0xFFFFFF08]
    for bits in (32, 64):
        words = [0x8421C3F7A5965A69 & mask(bits), 0xFFFFFFFFFFFFFFFF & mask(bits), 0x123456789ABCDEF0 & mask(bits)]
        rows = [(w, p, n) for w in words[:1] for p in places for n in lengths]
        rows += [(words[1 + (i & 1)], p, n) for i, p in enumerate(places) for n in lengths[::2]]
        a, b, c = ([row[i] for row in rows] for i in range(3))
        for sign in "us":
            kind = f"{sign}{bits}"

            def extract(x: int, start: int, length: int, sign: str = sign, bits: int = bits) -> int:
                start, length, msb = start & 0xFF, length & 0xFF, bits - 1
                fill = 0 if sign == "u" or length == 0 else x >> min(start + length - 1, msb) & 1
                return sum(
                    (x >> (start + i) & 1 if i < length and start + i <= msb else fill) << i for i in range(bits)
                )

            name = f"bfe_{kind}"
            kernel = module.elementwise(
                name, [(kind, kind), ("u32", "u32"), ("u32", "u32")], [(kind, kind)], f"bfe.{kind} %d, %a, %b, %c;"
            )
            elementwise_case(
                file, name, module, kernel, [(kind, a), ("u32", b), ("u32", c)],
                [target(kind, column(extract, a, b, c))], section="9.7.1.19",
            )  # fmt: skip

        def insert(x: int, y: int, start: int, length: int, bits: int = bits) -> int:
            start, length = start & 0xFF, length & 0xFF
            for i in range(length):
                if start + i < bits:
                    y = y & ~(1 << (start + i)) | (x >> i & 1) << (start + i) if i < bits else y
            return y

        kind = f"b{bits}"
        under = [words[2] if i & 1 else 0x0F0F0F0F0F0F0F0F & mask(bits) for i in range(len(a))]
        name = f"bfi_{kind}"
        kernel = module.elementwise(
            name, [(kind, kind), (kind, kind), ("u32", "u32"), ("u32", "u32")], [(kind, kind)],
            f"bfi.{kind} %d, %a, %b, %c, %g;",
        )  # fmt: skip
        elementwise_case(
            file, name, module, kernel, [(kind, a), (kind, under), ("u32", b), ("u32", c)],
            [target(kind, column(insert, a, under, b, c))], section="9.7.1.20",
        )  # fmt: skip


def leading_zeros(x: int, bits: int) -> int:
    return bits - x.bit_length()


def counts(file: CaseFile) -> None:
    module = file.module("bits_count")
    for bits in (32, 64):
        kind = f"b{bits}"
        a = values(bits, f"count{bits}")
        for op, section, exact in (
            ("popc", "9.7.1.14", int.bit_count),
            ("clz", "9.7.1.15", functools.partial(leading_zeros, bits=bits)),
        ):
            name = f"{op}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)], [("u32", "u32")], f"{op}.{kind} %d, %a;")
            elementwise_case(
                file, name, module, kernel, [(kind, a)], [target("u32", [exact(x) for x in a])], section=section
            )
        name = f"brev_{kind}"
        kernel = module.elementwise(name, [(kind, kind)], [(kind, kind)], f"brev.{kind} %d, %a;")
        expected = [int(f"{x:0{bits}b}"[::-1], 2) for x in a]
        elementwise_case(file, name, module, kernel, [(kind, a)], [target(kind, expected)], section="9.7.1.18")
        for sign in "us":
            kind = f"{sign}{bits}"

            def find(x: int, sign: str = sign, bits: int = bits) -> int:
                if sign == "s" and x >> (bits - 1):
                    x ^= mask(bits)
                return x.bit_length() - 1 if x else 0xFFFFFFFF

            def shift(x: int, find: Callable[[int], int] = find, bits: int = bits) -> int:
                place = find(x)
                return place if place == 0xFFFFFFFF else bits - 1 - place

            name = f"bfind_{kind}"
            kernel = module.elementwise(
                name, [(kind, kind)], [("u32", "u32")] * 2, f"bfind.{kind} %d, %a;\nbfind.shiftamt.{kind} %e, %a;"
            )
            elementwise_case(
                file, name, module, kernel, [(kind, a)],
                [target("u32", [find(x) for x in a]), target("u32", [shift(x) for x in a])], section="9.7.1.16",
            )  # fmt: skip
    rng = random.Random("fns")
    rows = [
        (0xAAAAAAAA, 3, 1),
        (0xAAAAAAAA, 3, -1),
        (0xAAAAAAAA, 2, 1),
        (0xAAAAAAAA, 2, -1),
        (0, 0, 1),
        (mask(32), 31, 1),
    ]
    rows += [(rng.getrandbits(32), rng.randrange(32), rng.randrange(-8, 9)) for _ in range(60)]

    def nth(word: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if word >> base & 1 else 0xFFFFFFFF
        step = 1 if offset > 0 else -1
        found = [i for i in (range(base, 32) if step > 0 else range(base, -1, -1)) if word >> i & 1]
        return found[abs(offset) - 1] if len(found) >= abs(offset) else 0xFFFFFFFF

    kernel = module.elementwise(
        "fns_b32", [("b32", "b32"), ("u32", "u32"), ("s32", "s32")], [("b32", "b32")], "fns.b32 %d, %a, %b, %c;"
    )
    elementwise_case(
        file, "fns_b32", module, kernel,
        [("b32", [r[0] for r in rows]), ("u32", [r[1] for r in rows]), ("s32", [r[2] & mask(32) for r in rows])],
        [target("b32", [nth(*r) for r in rows])], section="9.7.1.17", tier="verify",
    )  # fmt: skip


def permute(file: CaseFile) -> None:
    module = file.module("bits_prmt")
    rng = random.Random("prmt")
    a = [0x83828180, 0x03020100, 0x7F80FF00] + [rng.getrandbits(32) for _ in range(61)]
    b = [0x87868584, 0x07060504, 0x00FF807F] + [rng.getrandbits(32) for _ in range(61)]
    c = [0x3210, 0x7654, 0xFEDC, 0x0123, 0x8888, 0x4440, 0xB3A2, 0xFFFF3210] + [rng.getrandbits(16) for _ in range(56)]

    def source(x: int, y: int) -> list[int]:
        both = x | y << 32
        return [both >> (8 * i) & 0xFF for i in range(8)]

    def default(x: int, y: int, control: int) -> int:
        pool, result = source(x, y), 0
        for i in range(4):
            selector = control >> (4 * i) & 0xF
            byte = pool[selector & 7]
            if selector & 8:
                byte = 0xFF if byte & 0x80 else 0
            result |= byte << (8 * i)
        return result

    kernel = module.elementwise("prmt_b32", [("b32", "b32")] * 3, [("b32", "b32")], "prmt.b32 %d, %a, %b, %c;")
    elementwise_case(
        file, "prmt_b32", module, kernel, [("b32", a), ("b32", b), ("b32", c)],
        [target("b32", column(default, a, b, c))], section="9.7.9.7",
    )  # fmt: skip
    kernel = module.elementwise(
        "prmt_immediate", [("b32", "b32")] * 2, [("b32", "b32")] * 3,
        """prmt.b32 %d, %a, %b, 0x5410;
           prmt.b32 %e, %a, 0, 30292;
           prmt.b32 %f, %a, %b, 0xBA98;""",
    )  # fmt: skip
    elementwise_case(
        file, "prmt_immediate", module, kernel, [("b32", a), ("b32", b)],
        [
            target("b32", [default(x, y, 0x5410) for x, y in zip(a, b, strict=True)]),
            target("b32", [default(x, 0, 30292) for x in a]),
            target("b32", [default(x, y, 0xBA98) for x, y in zip(a, b, strict=True)]),
        ],
        section="9.7.9.7",
    )  # fmt: skip
    modes: dict[str, Sequence[Sequence[int]]] = {  # the manual's table, most significant byte first
        "f4e": ((3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)),
        "b4e": ((5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)),
        "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
        "ecl": ((3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)),
        "ecr": ((0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)),
        "rc16": ((1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)),
    }
    control = [i & 7 if i < 16 else x for i, x in enumerate(c)]
    for mode, table in modes.items():

        def special(x: int, y: int, n: int, table: Sequence[Sequence[int]] = table) -> int:
            pool = source(x, y)
            return int.from_bytes(bytes(pool[i] for i in table[n & 3]), "big")

        name = f"prmt_b32_{mode}"
        kernel = module.elementwise(name, [("b32", "b32")] * 3, [("b32", "b32")], f"prmt.b32.{mode} %d, %a, %b, %c;")
        elementwise_case(
            file, name, module, kernel, [("b32", a), ("b32", b), ("b32", control)],
            [target("b32", column(special, a, b, control))], section="9.7.9.7", tier="verify",
        )  # fmt: skip


def lookup(file: CaseFile) -> None:
    module = file.module("bits_lop3")
    rng = random.Random("lop3")
    a, b, c = ([rng.getrandbits(32) for _ in range(48)] for _ in range(3))
    a[:3], b[:3], c[:3] = [0xF0F0F0F0, 0, mask(32)], [0xCCCCCCCC, mask(32), 0], [0xAAAAAAAA, 0, mask(32)]
    tables = (0x00, 0x80, 0xFE, 0x96, 0xCA, 0xE8, 0x1A, 0x6A, 0xD8, 0x3C, 0xFF, 0x2B)

    def look(x: int, y: int, z: int, table: int) -> int:
        return sum((table >> (4 * (x >> i & 1) + 2 * (y >> i & 1) + (z >> i & 1)) & 1) << i for i in range(32))

    rows = list(zip(a, b, c, strict=True))
    for part in range(0, len(tables), 6):
        chosen = tables[part : part + 6]
        name = f"lop3_b32_{part // 6}"
        body = "\n".join(f"lop3.b32 %{d}, %a, %b, %c, {t:#x};" for d, t in zip("defmno", chosen, strict=True))
        kernel = module.elementwise(name, [("b32", "b32")] * 3, [("b32", "b32")] * 6, body)
        elementwise_case(
            file, name, module, kernel, [("b32", a), ("b32", b), ("b32", c)],
            [target("b32", [look(*row, t) for row in rows]) for t in chosen], section="9.7.8.6",
        )  # fmt: skip


def funnel(file: CaseFile) -> None:
    module = file.module("bits_shf")
    amounts = [0, 1, 7, 16, 31, 32, 33, 63, 64, 255, 0xFFFFFFFF]
    words = [(0x01234567, 0x89ABCDEF), (0, mask(32)), (mask(32), 0), (0x80000001, 0x40000002)]
    rows = [(x, y, n) for x, y in words for n in amounts]
    a, b, c = ([row[i] for row in rows] for i in range(3))
    for side in "lr":
        for mode in ("wrap", "clamp"):

            def exact(x: int, y: int, n: int, side: str = side, mode: str = mode) -> int:
                n = n & 31 if mode == "wrap" else min(n, 32)
                both = y << 32 | x
                return (both << n >> 32 if side == "l" else both >> n) & mask(32)

            name = f"shf_{side}_{mode}_b32"
            kernel = module.elementwise(
                name, [("b32", "b32"), ("b32", "b32"), ("u32", "u32")], [("b32", "b32")],
                f"shf.{side}.{mode}.b32 %d, %a, %b, %c;",
            )  # fmt: skip
            elementwise_case(
                file, name, module, kernel, [("b32", a), ("b32", b), ("u32", c)],
                [target("b32", column(exact, a, b, c))], section="9.7.8.7",
            )  # fmt: skip


def masks(file: CaseFile) -> None:
    module = file.module("bits_mask")
    numbers = [0, 1, 5, 16, 31, 32, 33, 64, 0xFFFFFFFF]
    a = [x for x in numbers for _ in numbers]
    b = numbers * len(numbers)

    def bit_mask(x: int, y: int, mode: str) -> int:
        start, width = x & 31, y & 31
        if mode == "clamp" and x >= 32:
            return 0
        if mode == "clamp" and y >= 32:
            width = 32
        return sum(1 << i for i in range(start, min(32, start + width)))

    def extend(x: int, y: int, mode: str, sign: str) -> int:
        if y >= 32 and mode == "clamp":
            return x
        width = y & 31
        if width == 0:
            return 0
        return (signed(x, width) if sign == "s" else x & mask(width)) & mask(32)

    words = [0x89ABCDEF, 0x7FFFFFFF, 0x00000010, 0xFFFF8001]
    x = [w for w in words for _ in numbers]
    y = numbers * len(words)
    for mode in ("clamp", "wrap"):
        kernel = module.elementwise(
            f"bmsk_{mode}", [("b32", "b32")] * 2, [("b32", "b32")], f"bmsk.{mode}.b32 %d, %a, %b;"
        )
        elementwise_case(
            file, f"bmsk_{mode}_b32", module, kernel, [("b32", a), ("b32", b)],
            [target("b32", [bit_mask(p, q, mode) for p, q in zip(a, b, strict=True)])], section="9.7.1.22",
            tier="verify",
        )  # fmt: skip
        kernel = module.elementwise(
            f"szext_{mode}", [("u32", "u32")] * 2, [("s32", "s32"), ("u32", "u32")],
            f"szext.{mode}.s32 %d, %a, %b;\nszext.{mode}.u32 %e, %a, %b;",
        )  # fmt: skip
        elementwise_case(
            file, f"szext_{mode}", module, kernel, [("u32", x), ("u32", y)],
            [target(f"{s}32", [extend(p, q, mode, s) for p, q in zip(x, y, strict=True)]) for s in "su"],
            section="9.7.1.21", tier="verify",
        )  # fmt: skip
