"""SIMD video instructions, lane by lane."""

from __future__ import annotations

from collections.abc import Callable

from ops_rig import Form, check, pairs, signed

WORDS = [0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x01FF7F80, 0x12345678, 0xFEDC8000]

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "absdiff": lambda x, y: abs(x - y),
    "min": min,
    "max": max,
}


def lanes(word: int, count: int, type: str) -> list[int]:
    bits = 32 // count
    parts = [word >> bits * i & (1 << bits) - 1 for i in range(count)]
    return [signed(part, bits) for part in parts] if type == "s32" else parts


def packed(values: list[int], bits: int) -> int:
    return sum((value & (1 << bits) - 1) << bits * i for i, value in enumerate(values))


def test_simd_video() -> None:
    forms = []
    three = ("b32",) * 3
    rows = pairs(WORDS, WORDS, (0, 0x80000001))
    for count in (2, 4):
        bits = 32 // count
        for name, operation in OPERATIONS.items():
            for types in (("s32", "s32", "s32"), ("u32", "u32", "u32"), ("s32", "u32", "s32")):

                def each(
                    a: int, b: int, n: int = count, t: tuple[str, ...] = types, g: Callable[[int, int], int] = operation
                ) -> list[int]:
                    return [g(x, y) for x, y in zip(lanes(a, n, t[1]), lanes(b, n, t[2]), strict=True)]

                low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if types[0] == "s32" else (0, (1 << bits) - 1)

                def clamped(
                    a: int, b: int, e: Callable[..., list[int]] = each, low: int = low, high: int = high
                ) -> list[int]:
                    return [min(max(value, low), high) for value in e(a, b)]

                text = f"v{name}{count}.{'.'.join(types)}"
                forms += [
                    Form(
                        f"{text} %x, %a, %b, %c;\n{text}.sat %y, %a, %b, %c;\n{text}.add %z, %a, %b, %c;",
                        three,
                        ("b32",) * 3,
                        lambda a, b, c, e=each, s=clamped, w=bits: (
                            packed(e(a, b), w),
                            packed(s(a, b), w),
                            c + sum(e(a, b)),
                        ),
                        rows,
                    )
                ]
        for relation, holds in (("eq", int.__eq__), ("lt", int.__lt__), ("ge", int.__ge__)):
            text = f"vset{count}.s32.u32.{relation}"
            forms.append(
                Form(
                    f"{text} %x, %a, %b, %c;\n{text}.add %y, %a, %b, %c;",
                    three,
                    ("b32", "b32"),
                    lambda a, b, c, n=count, w=bits, h=holds: (
                        packed([int(h(x, y)) for x, y in zip(lanes(a, n, "s32"), lanes(b, n, "u32"), strict=True)], w),
                        c + sum(h(x, y) for x, y in zip(lanes(a, n, "s32"), lanes(b, n, "u32"), strict=True)),
                    ),
                    rows,
                )
            )
    check(forms)
