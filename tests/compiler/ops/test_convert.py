"""cvt between all pairs of types, by exact fractions."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil, floor

import exact
from exact import FORMATS, Format, nan_or
from ops_rig import Form, check, integers, number, pairs, together

INTEGERS = [f"{k}{n}" for n in (8, 16, 32, 64) for k in "us"]
FLOATS = ["f16", "bf16", "f32", "f64"]


def bounds(type: str) -> tuple[int, int]:
    bits = int(type[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def clamp(value: int, type: str) -> int:
    low, high = bounds(type)
    return min(max(value, low), high)


def test_integer_to_integer() -> None:
    forms = []
    for source in INTEGERS:
        rows = pairs(integers(int(source[1:])))
        for to in INTEGERS:
            if source == to:
                continue
            forms += [
                Form(f"cvt.{to}.{source} %x, %a;", (source,), (to,), lambda a, s=source: number(a, s), rows),
                Form(
                    f"cvt.sat.{to}.{source} %x, %a;",
                    (source,),
                    (to,),
                    lambda a, s=source, t=to: clamp(number(a, s), t),
                    rows,
                ),
            ]
    # A wider register takes the extended value: sign for signed types.
    for to, source in (("s8", "u32"), ("u8", "s32"), ("s16", "s64"), ("u16", "u32")):
        forms.append(
            Form(
                f"cvt.{to}.{source} %x, %a;",
                (source,),
                ("b32",),
                lambda a, t=to: number(a, t),
                pairs(integers(int(source[1:]))),
            )
        )
    check(together(forms))


ROUND = {"rni": round, "rzi": int, "rmi": floor, "rpi": ceil}


def to_integer(f: Format, source: str, to: str, mode: str, a: int, ftz: bool = False) -> int:
    if ftz:
        a = f.flush(a)
    wide = source == "f64" or to in ("s64", "u64")
    if f.is_nan(a):
        return 1 << int(to[1:]) - 1 if wide else 0
    low, high = bounds(to)
    if f.is_infinite(a):
        return low if f.negative(a) else high
    return clamp(ROUND[mode](f.value(a)), to)


def floats_near(f: Format, type: str) -> list[tuple[int, ...]]:
    """Values at the ends of an integer type, halves, and the usual ones."""
    low, high = bounds(type)
    numbers = [Fraction(n) + d for n in (low, high, 0, 1, -1, 2, -3, 100) for d in (0, Fraction(1, 2), Fraction(-1, 2))]
    numbers += [Fraction(n) / 4 for n in (1, -1, 3, -3, 7, 9, -7, -9)] + [Fraction(2 * high), Fraction(2 * low - 7)]
    found = {f.round(n, mode) for n in numbers for mode in ("rz", "rp", "rm")} | set(exact.interesting(f))
    return [(bits,) for bits in sorted(found)]


def test_float_to_integer() -> None:
    forms = []
    for source in FLOATS:
        f = FORMATS[source]
        for to in INTEGERS:
            rows = floats_near(f, to)
            modes = ROUND if to in ("s32", "u64") else ("rzi",)
            for mode in modes:
                forms.append(
                    Form(
                        f"cvt.{mode}.{to}.{source} %x, %a;",
                        (source,),
                        (to,),
                        lambda a, f=f, s=source, t=to, m=mode: to_integer(f, s, t, m, a),
                        rows,
                    )
                )
    f = FORMATS["f32"]
    forms.append(
        Form(
            "cvt.rpi.ftz.s32.f32 %x, %a;",
            ("f32",),
            ("s32",),
            lambda a: to_integer(FORMATS["f32"], "f32", "s32", "rpi", a, ftz=True),
            floats_near(f, "s32"),
        )
    )
    check(together(forms))


def test_integer_to_float() -> None:
    forms = []
    source = random.Random(5)
    for from_type in INTEGERS:
        bits = int(from_type[1:])
        values = integers(bits) + [source.getrandbits(bits) >> source.randrange(bits) for _ in range(60)]
        # Values between two neighbours of each format, just off the middle.
        for fraction in (7, 10, 23, 52):
            if bits > fraction + 2:
                base = 1 << bits - 2
                step = base >> fraction
                for off in (step // 2 - 1, step // 2, step // 2 + 1, step + step // 2):
                    values += [base + off & (1 << bits) - 1, -(base + off) & (1 << bits) - 1]
        for to in FLOATS:
            for mode in ("rn", "rz", "rm", "rp"):
                forms.append(
                    Form(
                        f"cvt.{mode}.{to}.{from_type} %x, %a;",
                        (from_type,),
                        (to,),
                        lambda a, f=FORMATS[to], t=from_type, m=mode: f.round(Fraction(number(a, t)), m),
                        pairs(values),
                    )
                )
    forms.append(
        Form(
            "cvt.rn.sat.f32.s32 %x, %a;",
            ("s32",),
            ("f32",),
            lambda a: 0x3F800000 if 0 < a < 1 << 31 else 0,
            pairs(integers(32)),
        )
    )
    check(together(forms))


def change(source: Format, to: Format, bits: int, mode: str) -> int:
    if source.is_nan(bits):
        return exact.NAN
    minus = source.negative(bits)
    if source.is_infinite(bits):
        return to.infinity | (to.sign if minus else 0)
    return to.round(source.value(bits), mode, minus)


def samples(source: Format, to: Format) -> list[tuple[int, ...]]:
    """Values of the source around those of the destination: exact, half way, and just beside."""
    values = set(exact.interesting(source))
    if source.fraction > to.fraction:
        for bits in exact.interesting(to):
            if to.is_nan(bits) or to.is_infinite(bits):
                continue
            here, step = to.value(bits), to.value(1)
            gap = max(step, abs(here) / (1 << to.fraction))
            for part in (Fraction(1, 2), Fraction(1, 4), Fraction(3, 4), Fraction(1)):
                for tiny in (0, gap / (1 << 25), -gap / (1 << 25), gap / (1 << 12)):
                    values.add(source.round(here + gap * part + tiny, "rn"))
                    values.add(source.round(here - gap * part + tiny, "rn"))
    return [(value,) for value in sorted(values)]


def test_float_to_float() -> None:
    forms = []
    for source in FLOATS:
        for to in FLOATS:
            f, g = FORMATS[source], FORMATS[to]
            if source == to:
                continue
            narrower = g.fraction < f.fraction or (source, to) == ("bf16", "f16")
            modes = ("rn", "rz", "rm", "rp") if narrower else ("",)
            for mode in modes:
                name = f".{mode}" if mode else ""
                forms.append(
                    Form(
                        f"cvt{name}.{to}.{source} %x, %a;",
                        (source,),
                        (to,),
                        lambda a, f=f, g=g, m=mode or "rn": nan_or(g, change(f, g, a, m)),
                        samples(f, g),
                    )
                )
    f32, f64, f16 = FORMATS["f32"], FORMATS["f64"], FORMATS["f16"]

    def saturated(a: int) -> int:
        return exact.saturate(f32, a)

    forms += [
        Form("cvt.sat.f32.f32 %x, %a;", ("f32",), ("f32",), saturated, pairs(exact.interesting(f32))),
        Form(
            "cvt.ftz.f32.f32 %x, %a;",
            ("f32",),
            ("f32",),
            lambda a: nan_or(f32, exact.NAN if f32.is_nan(a) else f32.flush(a)),
            pairs(exact.interesting(f32)),
        ),
        Form(
            "cvt.rn.ftz.f32.f64 %x, %a;",
            ("f64",),
            ("f32",),
            lambda a: nan_or(f32, f32.flush(r) if (r := change(f64, f32, a, "rn")) != exact.NAN else r),
            samples(f64, f32),
        ),
        Form(
            "cvt.ftz.f64.f32 %x, %a;",
            ("f32",),
            ("f64",),
            lambda a: nan_or(f64, change(f32, f64, f32.flush(a), "rn")),
            pairs(exact.interesting(f32)),
        ),
        Form(
            "cvt.rn.f16x2.f32 %x, %a, %b;",
            ("f32", "f32"),
            ("f16x2",),
            lambda a, b: change(f32, f16, b, "rn") | change(f32, f16, a, "rn") << 16,
            [(a, b) for a in exact.interesting(f32) for b in (0x3F800001, 0xC0490FDB) if not f32.is_nan(a)],
        ),
        Form(
            "cvt.rn.relu.f16.f32 %x, %a;",
            ("f32",),
            ("f16",),
            lambda a: 0x7FFF if f32.is_nan(a) else 0 if f32.negative(a) else change(f32, f16, a, "rn"),
            pairs(exact.interesting(f32)),
        ),
        Form(
            "cvt.rn.satfinite.bf16.f32 %x, %a;",
            ("f32",),
            ("bf16",),
            lambda a: (
                0x7FFF
                if f32.is_nan(a)
                else (r - 1 if (r := change(f32, FORMATS["bf16"], a, "rn")) & 0x7FFF == 0x7F80 else r)
            ),
            pairs([*exact.interesting(f32), 0x7F7FFFFF, 0xFF7FC000]),
        ),
    ]
    check(together(forms))


def test_integral() -> None:
    """Rounding to an integral value in the same format keeps the sign of zero."""
    forms = []
    for type in ("f16", "f32", "f64"):
        f = FORMATS[type]
        rows = floats_near(f, "s32")

        def expect(a: int, f: Format = f, mode: str = "") -> object:
            if f.is_nan(a):
                return f.is_nan
            if f.is_infinite(a):
                return a
            return f.round(Fraction(ROUND[mode](f.value(a))), "rn", f.negative(a))

        for mode in ROUND:
            forms.append(
                Form(
                    f"cvt.{mode}.{type}.{type} %x, %a;",
                    (type,),
                    (type,),
                    lambda a, e=expect, m=mode: e(a, mode=m),
                    rows,
                )
            )
    check(together(forms))


def test_pack() -> None:
    values = [0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF7F]
    forms = []
    for to in ("u16", "s16"):
        forms.append(
            Form(
                f"cvt.pack.sat.{to}.s32 %x, %a, %b;",
                ("s32", "s32"),
                ("b32",),
                lambda a, b, t=to: (clamp(number(a, "s32"), t) & 0xFFFF) << 16 | clamp(number(b, "s32"), t) & 0xFFFF,
                pairs(values, values),
            )
        )
    for to in ("u8", "s8"):
        forms.append(
            Form(
                f"cvt.pack.sat.{to}.s32.b32 %x, %a, %b, %c;",
                ("s32", "s32", "b32"),
                ("b32",),
                lambda a, b, c, t=to: (
                    c << 16 | (clamp(number(a, "s32"), t) & 0xFF) << 8 | clamp(number(b, "s32"), t) & 0xFF
                ),
                pairs(values[::2], values[1::2], (0, 0x12345678)),
            )
        )
    check(forms)


def to_tf32(a: int, mode: str) -> object:
    """An f32 with ten bits of fraction left; .rna rounds ties away from zero."""
    f32 = FORMATS["f32"]
    if f32.is_nan(a):
        return f32.is_nan
    if f32.is_infinite(a):
        return a
    low, step = a & ~0x1FFF, a & 0x1FFF
    up = {"rna": step >= 0x1000, "rn": step > 0x1000 or (step == 0x1000 and bool(low & 0x2000)), "rz": False}[mode]
    return low + (0x2000 if up else 0)


def test_tf32() -> None:
    values = [
        *exact.interesting(FORMATS["f32"]),
        0x3F801000,
        0x3F803000,
        0x3F800FFF,
        0x3F801001,
        0xBF801000,
        0x7F7FF000,
    ]
    check(
        together(
            Form(f"cvt.{mode}.tf32.f32 %x, %a;", ("f32",), ("b32",), lambda a, m=mode: to_tf32(a, m), pairs(values))
            for mode in ("rna", "rn", "rz")
        )
    )
