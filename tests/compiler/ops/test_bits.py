"""Logic, shifts and bit fields, by the semantics the ISA spells out bit by bit."""

from __future__ import annotations

from itertools import product

from ops_rig import Form, check, integers, pairs, signed, together

AMOUNTS = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def ones(bits: int) -> int:
    return (1 << bits) - 1


def test_logic() -> None:
    forms = []
    for bits in (16, 32, 64):
        type, values = f"b{bits}", integers(bits)
        two = pairs(values, values)
        forms += [
            Form(f"and.{type} %x, %a, %b;", (type, type), (type,), lambda a, b: a & b, two),
            Form(f"or.{type} %x, %a, %b;", (type, type), (type,), lambda a, b: a | b, two),
            Form(f"xor.{type} %x, %a, %b;", (type, type), (type,), lambda a, b: a ^ b, two),
            Form(f"not.{type} %x, %a;", (type,), (type,), lambda a: ~a, pairs(values)),
            Form(f"cnot.{type} %x, %a;", (type,), (type,), lambda a: int(a == 0), pairs(values)),
        ]
    truth = pairs((0, 1), (0, 1))
    forms += [
        Form("and.pred %x, %a, %b;", ("pred", "pred"), ("pred",), lambda a, b: a & b, truth),
        Form("or.pred %x, %a, %b;", ("pred", "pred"), ("pred",), lambda a, b: a | b, truth),
        Form("xor.pred %x, %a, %b;", ("pred", "pred"), ("pred",), lambda a, b: a ^ b, truth),
        Form("not.pred %x, %a;", ("pred",), ("pred",), lambda a: 1 - a, pairs((0, 1))),
    ]
    check(together(forms))


def table(a: int, b: int, c: int, lut: int) -> int:
    result = 0
    for bit in range(32):
        index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1
        result |= (lut >> index & 1) << bit
    return result


def test_lop3() -> None:
    values = [(0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA), (0, 0xFFFFFFFF, 0x12345678), (0x89ABCDEF, 0x0F1E2D3C, 0xFFFF0000)]
    three = ("b32",) * 3
    forms = [
        Form(f"lop3.b32 %x, %a, %b, %c, {lut};", three, ("b32",), lambda a, b, c, t=lut: table(a, b, c, t), values)
        for lut in [*range(0, 256, 7), 0x80, 0xFE, 0x96, 0xE8, 0xCA, 255]
    ]
    for name in ("or", "and"):
        forms.append(
            Form(
                f"lop3.{name}.b32 %x|%y, %a, %b, %c, 0x80, %d;",
                (*three, "pred"),
                ("b32", "pred"),
                lambda a, b, c, q, n=name: (
                    a & b & c,
                    (bool(a & b & c) or q) if n == "or" else (bool(a & b & c) and q),
                ),
                [(*row, q) for row in [*values, (3, 5, 7)] for q in (0, 1)],
            )
        )
    check(forms)


def test_shifts() -> None:
    forms = []
    for bits in (16, 32, 64):
        values = pairs(integers(bits), AMOUNTS)
        for kind in "bus":
            type = f"{kind}{bits}"
            forms.append(
                Form(
                    f"shr.{type} %x, %a, %b;",
                    (type, "u32"),
                    (type,),
                    lambda a, n, k=kind, w=bits: (signed(a, w) if k == "s" else a) >> min(n, 127),
                    values,
                )
            )
        forms.append(
            Form(
                f"shl.b{bits} %x, %a, %b;",
                (f"b{bits}", "u32"),
                (f"b{bits}",),
                lambda a, n, w=bits: a << n if n < w else 0,
                values,
            )
        )
        for amount in (0, 5, bits - 1, bits, 200):
            forms += [
                Form(
                    f"shr.s{bits} %x, %a, {amount};",
                    (f"s{bits}",),
                    (f"s{bits}",),
                    lambda a, w=bits, n=amount: signed(a, w) >> n,
                    pairs(integers(bits)),
                ),
                Form(
                    f"shl.b{bits} %x, %a, {amount};",
                    (f"b{bits}",),
                    (f"b{bits}",),
                    lambda a, n=amount: a << n,
                    pairs(integers(bits)),
                ),
            ]
    for side, mode in product("lr", ("clamp", "wrap")):

        def funnel(a: int, b: int, c: int, side: str = side, mode: str = mode) -> int:
            n = min(c, 32) if mode == "clamp" else c & 31
            return ((b << 32 | a) << n) >> 32 if side == "l" else (b << 32 | a) >> n

        forms.append(
            Form(
                f"shf.{side}.{mode}.b32 %x, %a, %b, %c;",
                ("b32", "b32", "u32"),
                ("b32",),
                funnel,
                pairs(integers(32)[::2], integers(32)[::2], AMOUNTS),
            )
        )
    check(together(forms))


def find(value: int, bits: int, sign: bool, shift: bool) -> int:
    if sign and value >> bits - 1:
        value ^= ones(bits)
    if not value:
        return 0xFFFFFFFF
    found = value.bit_length() - 1
    return bits - 1 - found if shift else found


def nth(mask: int, base: int, offset: int) -> int:
    offset = signed(offset, 32)
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return 0xFFFFFFFF


def test_counting() -> None:
    forms = []
    for bits in (32, 64):
        values = pairs([*integers(bits), 0x00F0, 1 << 20])
        forms += [
            Form(f"popc.b{bits} %x, %a;", (f"b{bits}",), ("u32",), lambda a: a.bit_count(), values),
            Form(f"clz.b{bits} %x, %a;", (f"b{bits}",), ("u32",), lambda a, w=bits: w - a.bit_length(), values),
            Form(
                f"brev.b{bits} %x, %a;",
                (f"b{bits}",),
                (f"b{bits}",),
                lambda a, w=bits: int(f"{a:0{w}b}"[::-1], 2),
                values,
            ),
        ]
        for kind, shift in product("us", ("", ".shiftamt")):
            forms.append(
                Form(
                    f"bfind{shift}.{kind}{bits} %x, %a;",
                    (f"{kind}{bits}",),
                    ("u32",),
                    lambda a, w=bits, k=kind, s=shift: find(a, w, k == "s", bool(s)),
                    values,
                )
            )
    offsets = [
        0,
        1,
        2,
        3,
        5,
        16,
        31,
        32,
        33,
        0x7FFFFFFF,
        0x80000000,
        *(0xFFFFFFFF - n for n in (0, 1, 2, 4, 15, 31, 32)),
    ]
    masks = [0, 1, 0x80000000, 0xAAAAAAAA, 0xFFFFFFFF, 0x00F0, 0x80000001, 0x12345678]
    forms.append(
        Form(
            "fns.b32 %x, %a, %b, %c;",
            ("b32", "b32", "s32"),
            ("b32",),
            nth,
            pairs(masks, (0, 1, 2, 3, 15, 30, 31), offsets),
        )
    )
    check(forms)


def extract(a: int, b: int, c: int, bits: int, sign: bool) -> int:
    msb, position, length = bits - 1, b & 255, c & 255
    fill = a >> min(position + length - 1, msb) & 1 if sign and length else 0
    result = 0
    for i in range(bits):
        bit = a >> position + i & 1 if i < length and position + i <= msb else fill
        result |= bit << i
    return result


def insert(a: int, b: int, c: int, d: int, bits: int) -> int:
    position, length, result = c & 255, d & 255, b
    for i in range(bits):
        if i < length and position + i < bits:
            result = result & ~(1 << position + i) | (a >> i & 1) << position + i
    return result


FIELD = [0, 1, 5, 8, 31, 32, 33, 63, 64, 65, 255, 256, 257]


def test_fields() -> None:
    forms = []
    for bits in (32, 64):
        values = integers(bits)[::2]
        for kind in "us":
            forms.append(
                Form(
                    f"bfe.{kind}{bits} %x, %a, %b, %c;",
                    (f"{kind}{bits}", "u32", "u32"),
                    (f"{kind}{bits}",),
                    lambda a, b, c, w=bits, k=kind: extract(a, b, c, w, k == "s"),
                    pairs(integers(bits), FIELD, FIELD),
                )
            )
        forms += [
            Form(
                f"bfi.b{bits} %x, %a, %b, %c, %d;",
                (f"b{bits}", f"b{bits}", "u32", "u32"),
                (f"b{bits}",),
                lambda a, b, c, d, w=bits: insert(a, b, c, d, w),
                pairs(values, values, FIELD, FIELD),
            ),
            Form(
                f"bfe.u{bits} %x, %a, 8, 8;",
                (f"u{bits}",),
                (f"u{bits}",),
                lambda a: a >> 8 & 255,
                pairs(integers(bits)),
            ),
        ]
    check(forms)


def mask(a: int, b: int, clamp: bool) -> int:
    full = ones(32)
    start, length = a & 31, b & 31
    mask0, total = full << start & full, start + length
    mask1 = full << total & full if total < 32 else 0
    position_over = clamp and a >= 32
    if position_over:
        mask0 = 0
    if total >= 32 or position_over or (clamp and b >= 32):
        mask1 = 0
    elif length == 0:
        mask1 = full
    return mask0 & ~mask1


def extend(a: int, b: int, sign: bool, clamp: bool) -> int:
    length = b & 31
    too_large = b >= 32 and clamp
    upper = 0 if too_large else ones(32) << length & ones(32)
    position = length - 1 & 31
    bit = 0 if length == 0 or too_large or not sign else a >> position & 1
    return a & ~upper | (upper | 1 << position if bit else 0)


def test_masks() -> None:
    forms = []
    for mode in ("clamp", "wrap"):
        forms.append(
            Form(
                f"bmsk.{mode}.b32 %x, %a, %b;",
                ("b32", "b32"),
                ("b32",),
                lambda a, b, m=mode: mask(a, b, m == "clamp"),
                pairs([*FIELD, 0xFFFFFFFF, 0x80000000], [*FIELD, 0xFFFFFFFF, 0x80000000]),
            )
        )
        for kind in "us":
            forms.append(
                Form(
                    f"szext.{mode}.{kind}32 %x, %a, %b;",
                    (f"{kind}32", "u32"),
                    (f"{kind}32",),
                    lambda a, b, m=mode, k=kind: extend(a, b, k == "s", m == "clamp"),
                    pairs(integers(32), [*FIELD, 0xFFFFFFFF]),
                )
            )
    check(forms)


SELECTORS = {
    "f4e": [(3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)],
    "b4e": [(5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)],
    "rc8": [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)],
    "ecl": [(3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)],
    "ecr": [(0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)],
    "rc16": [(1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)],
}
"""The ISA's table: bytes b3, b2, b1, b0 of the result for c[1:0] of 0 to 3."""


def permute(a: int, b: int, c: int, mode: str | None = None) -> int:
    source = [a >> 8 * i & 255 for i in range(4)] + [b >> 8 * i & 255 for i in range(4)]
    if mode:
        return int.from_bytes(bytes(source[i] for i in SELECTORS[mode][c & 3]), "big")
    result = 0
    for i in range(4):
        control = c >> 4 * i & 15
        byte = source[control & 7]
        if control & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << 8 * i
    return result


def test_prmt() -> None:
    words = [(0x83828180, 0x07060504), (0x03020100, 0x87868584), (0xFFFF0000, 0x12345678)]
    selectors = [0x3210, 0x7654, 0x0123, 0x5410, 0x7632, 0xBA98, 0xFEDC, 0x8888, 0x0000, 0x1076, 0x6543, 0x4040, 0x9F13]
    three = ("b32",) * 3
    rows = [(*pair, c | extra) for pair in words for c in selectors for extra in (0, 0xABCD0000)]
    forms = [Form("prmt.b32 %x, %a, %b, %c;", three, ("b32",), permute, rows)]
    for c in selectors:
        forms.append(Form(f"prmt.b32 %x, %a, %b, {c};", three[:2], ("b32",), lambda a, b, c=c: permute(a, b, c), words))
    for mode in SELECTORS:
        rows = [(*pair, c) for pair in words for c in (0, 1, 2, 3, 4, 0xFFFFFFFE)]
        forms.append(
            Form(f"prmt.b32.{mode} %x, %a, %b, %c;", three, ("b32",), lambda a, b, c, m=mode: permute(a, b, c, m), rows)
        )
        forms.append(
            Form(
                f"prmt.b32.{mode} %x, %a, %b, 2;", three[:2], ("b32",), lambda a, b, m=mode: permute(a, b, 2, m), words
            )
        )
    check(forms)
