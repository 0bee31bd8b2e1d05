"""cvt (PTX ISA 9.7.9.21): expected values from exact fractions and the manual's rules for what is out of range."""

from __future__ import annotations

import random
from fractions import Fraction

import _ieee as ieee
from _build import CaseFile, elementwise_case, integer_edges, signed, target, varied
from _ieee import BF16, F16, F32, F64, Format

SECTION = "9.7.9.21"
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
INTEGER_ROUNDING = ("rni", "rzi", "rmi", "rpi")


def needs(*kinds: str) -> tuple[str, ...]:
    return tuple(need for kind, need in (("f64", "fp64"), ("f16", "fp16")) if kind in kinds)


def bits_of(kind: str) -> int:
    return int(kind.lstrip("bufs"))


def mask(bits: int) -> int:
    return (1 << bits) - 1


def bounds(kind: str) -> tuple[int, int]:
    bits = bits_of(kind)
    return (-(1 << (bits - 1)), mask(bits - 1)) if kind[0] == "s" else (0, mask(bits))


def number(kind: str, x: int) -> int:
    return signed(x, bits_of(kind)) if kind[0] == "s" else x & mask(bits_of(kind))


def register(kind: str) -> str:
    """The narrowest register that holds the type: there are none of 8 bits."""
    return f"b{max(16, bits_of(kind))}"


def generate() -> list[CaseFile]:
    file = CaseFile("convert")
    between_integers(file)
    saturated_integers(file)
    extended(file)
    for f in (F32, F64, F16):
        to_integers(file, f)
        from_integers(file, f)
    flushed_to_integers(file)
    between_floats(file)
    integral(file)
    saturated_floats(file)
    brain(file)
    packed(file)
    return [file]


def between_integers(file: CaseFile) -> None:
    module = file.module("convert_integer")
    rng = random.Random("integers")
    for source in INTEGERS:
        bits = bits_of(source)
        a = integer_edges(bits) + [varied(rng, bits) for _ in range(30)]
        others = [kind for kind in INTEGERS if kind != source]
        body = "\n".join(f"cvt.{kind}.{source} %{d}, %a;" for d, kind in zip("defmnoqstv", others, strict=False))
        name = f"cvt_from_{source}"
        kernel = module.elementwise(
            name, [(register(source), source)], [(register(kind), f"b{bits_of(kind)}") for kind in others], body
        )
        elementwise_case(
            file, name, module, kernel, [(source, a)],
            [target(kind, [number(source, x) & mask(bits_of(kind)) for x in a], kind) for kind in others],
            section=SECTION,
        )  # fmt: skip


def saturated_integers(file: CaseFile) -> None:
    module = file.module("convert_integer_sat")
    rng = random.Random("sat")
    for source in ("s16", "u32", "s32", "u64", "s64"):
        bits = bits_of(source)
        low, high = bounds(source)
        others = [kind for kind in INTEGERS if low < bounds(kind)[0] or high > bounds(kind)[1]]
        ends = [end + step for kind in others for end in bounds(kind) for step in (-1, 0, 1)]
        a = integer_edges(bits) + [end & mask(bits) for end in ends] + [varied(rng, bits) for _ in range(20)]
        body = "\n".join(f"cvt.sat.{kind}.{source} %{d}, %a;" for d, kind in zip("defmnoqstv", others, strict=False))
        name = f"cvt_sat_from_{source}"
        kernel = module.elementwise(
            name, [(register(source), source)], [(register(kind), f"b{bits_of(kind)}") for kind in others], body
        )

        def clamp(x: int, kind: str, source: str = source) -> int:
            least, most = bounds(kind)
            return max(least, min(most, number(source, x))) & mask(bits_of(kind))

        elementwise_case(
            file, name, module, kernel, [(source, a)],
            [target(kind, [clamp(x, kind) for x in a], kind) for kind in others], section=SECTION,
        )  # fmt: skip


def extended(file: CaseFile) -> None:
    """Destination registers wider than the type: sign-extended for signed types, zero-extended for the others."""
    module = file.module("convert_extend")
    rng = random.Random("extended")
    a = integer_edges(32) + [varied(rng, 32) for _ in range(40)]
    forms = (("s8", 32), ("u8", 32), ("s16", 32), ("u16", 32), ("s8", 64), ("u16", 64), ("s32", 64), ("u32", 64))
    body = "\n".join(f"cvt.{kind}.s64 %{d}, %x;" for d, (kind, _) in zip("defmnoqs", forms, strict=True))
    kernel = module.elementwise(
        "cvt_extends", [("b32", "b32")], [(f"b{wide}", f"b{wide}") for _, wide in forms],
        f"cvt.s64.s32 %x, %a;\n{body}", ".reg .b64 %x;",
    )  # fmt: skip
    elementwise_case(
        file, "extends_to_register", module, kernel, [("b32", a)],
        [target(f"b{wide}", [number(kind, x) & mask(wide) for x in a], f"{kind} in {wide}") for kind, wide in forms],
        section="9.4.1",
    )  # fmt: skip


def float_values(f: Format, seed: str) -> list[int]:
    """Around every integer type's ends, halves, the ends of the format, NaNs."""
    rng = random.Random(f"{seed}.{f.name}")
    exact = [Fraction(x) for x in (0, 1, 2, 3, 100)]
    exact += [Fraction(n, 2) for n in (1, 3, 5, 7, 255, 511)] + [Fraction(1, 4), Fraction(3, 4), Fraction(9, 10)]
    for kind in INTEGERS:
        for end in bounds(kind):
            exact += [abs(Fraction(end)) + step for step in (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(-1, 2))]
    found = {f.round(x, mode) for x in exact for mode in ("rm", "rp")}
    found |= {1, (1 << f.fraction) - 1, 1 << f.fraction, f.largest, f.inf}
    for _ in range(30):
        x = Fraction(rng.getrandbits(70), 1 << 35) * Fraction(2) ** rng.randint(-30, 30)
        found.add(f.round(x))
    both = [x for x in sorted(found) for x in (x, x | f.sign)]
    return [*both, f.nan, f.nan | f.sign, f.inf + 1]


def to_integer(f: Format, kind: str, x: int, mode: str) -> int:
    """The manual's Integer Notes: clamped to the destination's range; what a NaN becomes depends on the sizes."""
    bits = bits_of(kind)
    if f.is_nan(x):
        return 0 if f is not F64 and bits != 64 else 1 << (bits - 1)
    least, most = bounds(kind)
    if f.is_inf(x):
        return (least if f.negative(x) else most) & mask(bits)
    return max(least, min(most, ieee.to_integer(f.value(x), mode))) & mask(bits)


def to_integers(file: CaseFile, f: Format) -> None:
    module = file.module(f"convert_{f.name}_integer")
    a = float_values(f, "to")
    loaded = "b16" if f is F16 else f.name
    for mode in INTEGER_ROUNDING:
        kinds = INTEGERS if mode == "rzi" else INTEGERS[4:]
        body = "\n".join(f"cvt.{mode}.{kind}.{f.name} %{d}, %a;" for d, kind in zip("defmnoqstv", kinds, strict=False))
        name = f"cvt_{mode}_from_{f.name}"
        kernel = module.elementwise(
            name, [(loaded, loaded)], [(register(kind), f"b{bits_of(kind)}") for kind in kinds], body
        )
        elementwise_case(
            file, name, module, kernel, [(f.name, a)],
            [target(kind, [to_integer(f, kind, x, mode) for x in a], kind) for kind in kinds],
            section=SECTION, needs=needs(f.name), note="Out of range clamps, with or without .sat.",
        )  # fmt: skip


def flushed_to_integers(file: CaseFile) -> None:
    module = file.module("convert_f32_integer")
    a = [x | s for x in (0, 1, 0x400000, 0x7FFFFF, 0x800000, 0x3F000000) for s in (0, F32.sign)]
    kernel = module.elementwise(
        "cvt_ftz_from_f32", [("f32", "f32")], [("b32", "b32")] * 3,
        "cvt.rpi.ftz.s32.f32 %d, %a;\ncvt.rmi.ftz.s32.f32 %e, %a;\ncvt.rpi.s32.f32 %f, %a;",
    )  # fmt: skip
    elementwise_case(
        file, "cvt_ftz_from_f32", module, kernel, [("f32", a)],
        [
            target("s32", [to_integer(F32, "s32", F32.flush(x), "rpi") for x in a]),
            target("s32", [to_integer(F32, "s32", F32.flush(x), "rmi") for x in a]),
            target("s32", [to_integer(F32, "s32", x, "rpi") for x in a]),
        ],
        section=SECTION,
    )  # fmt: skip


def from_integers(file: CaseFile, f: Format) -> None:
    module = file.module(f"convert_{f.name}_integer")
    stored = "b16" if f is F16 else f.name
    rng = random.Random(f"from.{f.name}")
    for source in INTEGERS:
        bits = bits_of(source)
        a = integer_edges(bits) + [varied(rng, bits) for _ in range(30)]
        if bits > f.fraction:  # ties and their neighbours
            a += [((1 << f.fraction + 1) + 1 + 2 * i << max(0, bits - f.fraction - 4)) + j & mask(bits)
                  for i in range(4) for j in (-1, 0, 1)]  # fmt: skip
        modes = ieee.MODES if f is not F16 else ("rn", "rz")
        body = "\n".join(f"cvt.{mode}.{f.name}.{source} %{d}, %a;" for d, mode in zip("defm", modes, strict=False))
        name = f"cvt_{f.name}_from_{source}"
        kernel = module.elementwise(name, [(register(source), source)], [(stored, stored)] * len(modes), body)
        elementwise_case(
            file, name, module, kernel, [(source, a)],
            [target(f.name, [f.round(Fraction(number(source, x)), mode) for x in a], mode) for mode in modes],
            section=SECTION, needs=needs(f.name),
        )  # fmt: skip


def narrowing_values(wide: Format, narrow: Format, seed: str) -> list[int]:
    """What is hard to round from `wide` to `narrow`: ties, neighbours of ties, overflow, underflow."""
    rng = random.Random(f"{seed}.{wide.name}.{narrow.name}")
    some = [0, 1, (1 << wide.fraction) - 1, 1 << wide.fraction, wide.largest, wide.inf]
    for bits in (1, 2, (1 << narrow.fraction) - 1, 1 << narrow.fraction, narrow.of(1), narrow.largest, narrow.of(3)):
        x = ieee.convert(narrow, wide, bits)
        half = 1 << max(0, wide.fraction - narrow.fraction - 1)
        some += [x, x + half - 1, x + half, x + half + 1, max(0, x - half), max(0, x - half - 1), x - half + 1]
    for _ in range(30):
        some.append(ieee.convert(narrow, wide, rng.getrandbits(narrow.bits - 1) % narrow.inf) + rng.getrandbits(8))
        some.append(rng.getrandbits(wide.bits - 1) % wide.inf)
    tiny = narrow.round(Fraction(2) ** narrow.lowest)
    some += [wide.round(narrow.value(tiny) * Fraction(n, 4)) for n in range(1, 9)]
    return [x for x in some for x in (x, x | wide.sign)] + [wide.nan, wide.nan | wide.sign, wide.inf + 1]


def between_floats(file: CaseFile) -> None:
    module = file.module("convert_float")
    for wide, narrow in ((F64, F32), (F32, F16), (F64, F16)):
        a = narrowing_values(wide, narrow, "narrow")
        modes = ieee.MODES if narrow is F32 else ("rn", "rz")
        kept = "b16" if narrow is F16 else narrow.name
        body = "\n".join(f"cvt.{m}.{narrow.name}.{wide.name} %{d}, %a;" for d, m in zip("defm", modes, strict=False))
        name = f"cvt_{narrow.name}_from_{wide.name}"
        kernel = module.elementwise(name, [(wide.name, wide.name)], [(kept, kept)] * len(modes), body)
        elementwise_case(
            file, name, module, kernel, [(wide.name, a)],
            [target(narrow.name, [ieee.convert(wide, narrow, x, mode) for x in a], mode) for mode in modes],
            section=SECTION, needs=needs(wide.name, narrow.name),
        )  # fmt: skip
        rng = random.Random(f"widen.{narrow.name}")
        b = [
            0,
            1,
            (1 << narrow.fraction) - 1,
            1 << narrow.fraction,
            narrow.of(1),
            narrow.largest,
            narrow.inf,
            narrow.nan,
        ]
        b = [x for x in b for x in (x, x | narrow.sign)] + [rng.getrandbits(narrow.bits) for _ in range(60)]
        name = f"cvt_{wide.name}_from_{narrow.name}"
        kernel = module.elementwise(
            name, [(kept, kept)], [(wide.name, wide.name)], f"cvt.{wide.name}.{narrow.name} %d, %a;"
        )
        elementwise_case(
            file, name, module, kernel, [(narrow.name, b)],
            [target(wide.name, [ieee.convert(narrow, wide, x) for x in b])],
            section=SECTION, needs=needs(wide.name, narrow.name),
        )  # fmt: skip
    a = [x | s for x in (1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0) for s in (0, F32.sign)]
    kernel = module.elementwise(
        "cvt_ftz_f32", [("f32", "f32")], [("f32", "f32"), ("f64", "f64"), ("f32", "f32")],
        "cvt.ftz.f32.f32 %d, %a;\ncvt.ftz.f64.f32 %e, %a;\ncvt.f32.f32 %f, %a;",
    )  # fmt: skip
    elementwise_case(
        file, "cvt_ftz_f32", module, kernel, [("f32", a)],
        [
            target("f32", [F32.flush(x) for x in a]),
            target("f64", [ieee.convert(F32, F64, F32.flush(x)) for x in a]),
            target("f32", a),
        ],
        section=SECTION, needs=needs("f64"),
    )  # fmt: skip
    b = [ieee.convert(F32, F64, x) for x in a]
    kernel = module.elementwise(
        "cvt_ftz_f32_from_f64", [("f64", "f64")], [("f32", "f32")], "cvt.rn.ftz.f32.f64 %d, %a;"
    )
    elementwise_case(
        file, "cvt_ftz_f32_from_f64", module, kernel, [("f64", b)], [target("f32", [F32.flush(x) for x in a])],
        section=SECTION, needs=needs("f64"),
    )  # fmt: skip


def integral(file: CaseFile) -> None:
    """cvt to the same type with integer rounding: floor, ceil, trunc, nearbyint."""
    module = file.module("convert_integral")
    for f in (F32, F64):
        a = float_values(f, "integral")

        def rounded(x: int, mode: str, f: Format = f) -> int:
            if f.is_nan(x) or f.is_inf(x):
                return f.nan if f.is_nan(x) else x
            return f.round(Fraction(ieee.to_integer(f.value(x), mode)), "rn", f.negative(x))

        body = "\n".join(
            f"cvt.{mode}.{f.name}.{f.name} %{d}, %a;" for d, mode in zip("defm", INTEGER_ROUNDING, strict=True)
        )
        name = f"cvt_integral_{f.name}"
        kernel = module.elementwise(name, [(f.name, f.name)], [(f.name, f.name)] * 4, body)
        elementwise_case(
            file, name, module, kernel, [(f.name, a)],
            [target(f.name, [rounded(x, mode) for x in a], mode) for mode in INTEGER_ROUNDING],
            section=SECTION, needs=needs(f.name), note="A result of zero keeps the operand's sign.",
        )  # fmt: skip


def saturated_floats(file: CaseFile) -> None:
    module = file.module("convert_float_sat")
    values = [F32.of(x) for x in (0.0, 0.25, 0.5, 0.999, 1.0, 1.5, 2.0, 1e30, -0.25, -1.0)]
    a = [*values, F32.inf, F32.inf | F32.sign, F32.nan, 1, F32.of(1) - 1, F32.of(1) + 1]
    kernel = module.elementwise(
        "cvt_sat_f32", [("f32", "f32")], [("f32", "f32")] * 2,
        "cvt.sat.f32.f32 %d, %a;\ncvt.rni.sat.f32.f32 %e, %a;",
    )  # fmt: skip

    def nearest(x: int) -> int:
        if F32.is_nan(x) or F32.is_inf(x):
            return x
        return F32.round(Fraction(ieee.to_integer(F32.value(x), "rni")), "rn", False)

    elementwise_case(
        file, "cvt_sat_f32", module, kernel, [("f32", a)],
        [
            target("f32", [ieee.saturate(F32, x) for x in a]),
            target("f32", [ieee.saturate(F32, nearest(x)) for x in a]),
        ],
        section=SECTION,
    )  # fmt: skip


def brain(file: CaseFile) -> None:
    module = file.module("convert_bf16")
    a = narrowing_values(F32, BF16, "bf16")
    kernel = module.elementwise(
        "cvt_bf16_from_f32", [("f32", "f32")], [("b16", "b16")] * 2,
        "cvt.rn.bf16.f32 %d, %a;\ncvt.rz.bf16.f32 %e, %a;",
    )  # fmt: skip
    elementwise_case(
        file, "cvt_bf16_from_f32", module, kernel, [("f32", a)],
        [target("bf16", [ieee.convert(F32, BF16, x, mode) for x in a], mode) for mode in ("rn", "rz")],
        section=SECTION,
    )  # fmt: skip
    rng = random.Random("bf16")
    b = [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0] + [
        rng.getrandbits(16) for _ in range(50)
    ]
    kernel = module.elementwise("cvt_f32_from_bf16", [("b16", "b16")], [("f32", "f32")], "cvt.f32.bf16 %d, %a;")
    elementwise_case(
        file, "cvt_f32_from_bf16", module, kernel, [("bf16", b)],
        [target("f32", [ieee.convert(BF16, F32, x) for x in b])], section=SECTION,
    )  # fmt: skip


def packed(file: CaseFile) -> None:
    """Two f32 into one f16x2 or bf16x2: the first operand goes to the upper half."""
    module = file.module("convert_packed")
    for narrow in (F16, BF16):
        a = [x for x in narrowing_values(F32, narrow, "packed") if not F32.is_nan(x)]
        b = a[7:] + a[:7]
        name = f"cvt_{narrow.name}x2_from_f32"
        kernel = module.elementwise(
            name, [("f32", "f32")] * 2, [("b32", "b32")] * 2,
            f"cvt.rn.{narrow.name}x2.f32 %d, %a, %b;\ncvt.rz.{narrow.name}x2.f32 %e, %a, %b;",
        )  # fmt: skip
        elementwise_case(
            file, name, module, kernel, [("f32", a), ("f32", b)],
            [
                target(
                    "b32",
                    [
                        ieee.convert(F32, narrow, x, mode) << 16 | ieee.convert(F32, narrow, y, mode)
                        for x, y in zip(a, b, strict=True)
                    ],
                    mode,
                )
                for mode in ("rn", "rz")
            ],
            section=SECTION, needs=needs(narrow.name),
        )  # fmt: skip
