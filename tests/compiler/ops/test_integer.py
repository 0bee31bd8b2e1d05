"""Integer arithmetic, by Python's integers."""

from __future__ import annotations

from collections.abc import Callable

from ops_rig import Form, check, integers, number, pairs, signed, together

WIDTHS = (16, 32, 64)
TYPES = [f"{k}{n}" for n in WIDTHS for k in "us"]


def clamp(value: int, type: str) -> int:
    bits = int(type[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def binary(text: str, type: str, result: str, expect: Callable[[int, int], int | None]) -> Form:
    values = integers(int(type[1:]))
    return Form(
        f"{text} %x, %a, %b;",
        (type, type),
        (result,),
        lambda a, b: expect(number(a, type), number(b, type)),
        pairs(values, values),
    )


def numbers(function: Callable[..., int], *types: str) -> Callable[..., int]:
    """A function of numbers as one of bits."""
    return lambda *values: function(*(number(v, t) for v, t in zip(values, types, strict=True)))


def quotient(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def test_add_sub_mul() -> None:
    forms = []
    for type in TYPES:
        bits = int(type[1:])
        forms += [
            binary(f"add.{type}", type, type, lambda a, b: a + b),
            binary(f"sub.{type}", type, type, lambda a, b: a - b),
            binary(f"mul.lo.{type}", type, type, lambda a, b: a * b),
            binary(f"mul.hi.{type}", type, type, lambda a, b, n=bits: a * b >> n),
        ]
        if bits < 64:
            forms.append(binary(f"mul.wide.{type}", type, f"{type[0]}{2 * bits}", lambda a, b: a * b))
    forms += [
        binary("add.sat.s32", "s32", "s32", lambda a, b: clamp(a + b, "s32")),
        binary("sub.sat.s32", "s32", "s32", lambda a, b: clamp(a - b, "s32")),
    ]
    check(together(forms))


def test_div_rem_min_max() -> None:
    forms = []
    for type in TYPES:
        forms += [
            binary(f"div.{type}", type, type, lambda a, b: quotient(a, b) if b else None),
            binary(f"rem.{type}", type, type, lambda a, b: a - b * quotient(a, b) if b else None),
            binary(f"min.{type}", type, type, min),
            binary(f"max.{type}", type, type, max),
        ]
    for divisor in (-7, 0, 1, 10, -1):
        for name in ("div", "rem"):
            want = (
                (lambda a, d=divisor: quotient(a, d))
                if name == "div"
                else (lambda a, d=divisor: a - d * quotient(a, d))
            )
            forms.append(
                Form(
                    f"{name}.s32 %x, %a, {divisor};",
                    ("s32",),
                    ("s32",),
                    lambda a, want=want, d=divisor: want(signed(a, 32)) if d else None,
                    pairs(integers(32)),
                )
            )
    check(together(forms))


def test_unary() -> None:
    forms = []
    for bits in WIDTHS:
        values = pairs(integers(bits))
        forms += [
            Form(f"abs.s{bits} %x, %a;", (f"s{bits}",), (f"s{bits}",), lambda a, n=bits: abs(signed(a, n)), values),
            Form(f"neg.s{bits} %x, %a;", (f"s{bits}",), (f"s{bits}",), lambda a: -a, values),
        ]
    check(together(forms))


def test_mad_and_sad() -> None:
    forms = []
    for type in TYPES:
        bits = int(type[1:])
        values = integers(bits)[::2]

        same, three = (type,) * 3, pairs(values, values, values)
        wide = f"{type[0]}{2 * bits}"
        forms += [
            Form(f"mad.lo.{type} %x, %a, %b, %c;", same, (type,), numbers(lambda a, b, c: a * b + c, *same), three),
            Form(
                f"mad.hi.{type} %x, %a, %b, %c;",
                same,
                (type,),
                numbers(lambda a, b, c, n=bits: (a * b >> n) + c, *same),
                three,
            ),
            Form(f"sad.{type} %x, %a, %b, %c;", same, (type,), numbers(lambda a, b, c: c + abs(a - b), *same), three),
        ]
        if bits < 64:
            types = (type, type, wide)
            forms.append(
                Form(
                    f"mad.wide.{type} %x, %a, %b, %c;",
                    types,
                    (wide,),
                    numbers(lambda a, b, c: a * b + c, *types),
                    pairs(values, values, integers(2 * bits)[::2]),
                )
            )
    values = integers(32)
    forms.append(
        Form(
            "mad.hi.sat.s32 %x, %a, %b, %c;",
            ("s32",) * 3,
            ("s32",),
            lambda a, b, c: clamp((signed(a, 32) * signed(b, 32) >> 32) + signed(c, 32), "s32"),
            pairs(values, values, values),
        )
    )
    for type in ("u32", "s32"):
        edges = [*values, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x1000000]

        def cut(value: int, type: str = type) -> int:
            return signed(value, 24) if type[0] == "s" else value & 0xFFFFFF

        for part, at in (("lo", 0), ("hi", 16)):
            forms += [
                Form(
                    f"mul24.{part}.{type} %x, %a, %b;",
                    (type, type),
                    (type,),
                    lambda a, b, at=at, cut=cut: cut(a) * cut(b) >> at,
                    pairs(edges, edges),
                ),
                Form(
                    f"mad24.{part}.{type} %x, %a, %b, %c;",
                    (type,) * 3,
                    (type,),
                    lambda a, b, c, at=at, cut=cut: (cut(a) * cut(b) >> at) + c,
                    pairs(edges, edges, values[::3]),
                ),
            ]
    check(together(forms))


def test_carry_chains() -> None:
    """128-bit sums, differences and products of 64-bit and 32-bit words."""
    forms = []
    for bits in (32, 64):
        type, values = f"u{bits}", integers(bits)[::2]
        four = pairs(values, values, values, values)
        same = (type,) * 4
        mask = (1 << 2 * bits) - 1

        def halves(total: int, bits: int = bits) -> tuple[int, int]:
            return total, total >> bits

        forms += [
            Form(
                f"add.cc.{type} %x, %a, %c;\naddc.{type} %y, %b, %d;",
                same,
                (type, type),
                lambda a, b, c, d, n=bits, h=halves: h((b << n | a) + (d << n | c)),
                four,
            ),
            Form(
                f"sub.cc.{type} %x, %a, %c;\nsubc.{type} %y, %b, %d;",
                same,
                (type, type),
                lambda a, b, c, d, n=bits, h=halves, m=mask: h((b << n | a) - (d << n | c) & m),
                four,
            ),
            Form(
                f"mad.lo.cc.{type} %x, %a, %b, %c;\nmadc.hi.{type} %y, %a, %b, %d;",
                same,
                (type, type),
                lambda a, b, c, d, n=bits, h=halves: h(a * b + (d << n | c)),
                four,
            ),
            Form(
                f"add.cc.{type} %x, %a, %b;\naddc.cc.{type} %y, %a, %b;\naddc.{type} %z, 0, 0;",
                (type, type),
                (type, type, type),
                lambda a, b, n=bits: (a + b, a + b + (a + b >> n), (a + b + (a + b >> n)) >> n),
                pairs(values, values),
            ),
            Form(
                f"sub.cc.{type} %x, %a, %b;\nsubc.cc.{type} %y, %b, %a;\nsubc.{type} %z, 0, 0;",
                (type, type),
                (type, type, type),
                lambda a, b: (a - b, b - a - (a < b), -int(b - a - (a < b) < 0)),
                pairs(values, values),
            ),
        ]
    check(forms)


def test_dot_products() -> None:
    forms = []
    words = [0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x01FF7F80, 0x12345678, 0xFEDCBA98]
    sums = [0, 1, 0x7FFFFFFF, 0x80000000]
    for a_type in ("u32", "s32"):
        for b_type in ("u32", "s32"):

            def part(word: int, at: int, bits: int, type: str) -> int:
                value = word >> at & (1 << bits) - 1
                return signed(value, bits) if type == "s32" else value

            def four(a: int, b: int, c: int, s: str = a_type, t: str = b_type) -> int:
                return c + sum(part(a, 8 * i, 8, s) * part(b, 8 * i, 8, t) for i in range(4))

            def two(a: int, b: int, c: int, first: int, s: str = a_type, t: str = b_type) -> int:
                return c + sum(part(a, 16 * i, 16, s) * part(b, first + 8 * i, 8, t) for i in range(2))

            types, values = (a_type, b_type, "s32"), pairs(words, words, sums)
            forms += [
                Form(f"dp4a.{a_type}.{b_type} %x, %a, %b, %c;", types, ("s32",), four, values),
                Form(
                    f"dp2a.lo.{a_type}.{b_type} %x, %a, %b, %c;",
                    types,
                    ("s32",),
                    lambda a, b, c, two=two: two(a, b, c, 0),
                    values,
                ),
                Form(
                    f"dp2a.hi.{a_type}.{b_type} %x, %a, %b, %c;",
                    types,
                    ("s32",),
                    lambda a, b, c, two=two: two(a, b, c, 16),
                    values,
                ),
            ]
    check(together(forms))
