"""setp, set, selp, slct."""

from __future__ import annotations

from collections.abc import Callable

import exact
from exact import F32, FORMATS, Format
from ops_rig import Form, check, integers, number, pairs, signed, together

ORDERED: dict[str, Callable[[object, object], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,  # type: ignore[operator]
    "le": lambda a, b: a <= b,  # type: ignore[operator]
    "gt": lambda a, b: a > b,  # type: ignore[operator]
    "ge": lambda a, b: a >= b,  # type: ignore[operator]
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def test_integers() -> None:
    forms = []
    for bits in (16, 32, 64):
        rows = pairs(integers(bits), integers(bits))
        for kind, relations in (("b", ("eq", "ne")), ("s", ORDERED), ("u", (*ORDERED, *UNSIGNED))):
            type = f"{kind}{bits}"
            for relation in relations:
                holds = ORDERED[UNSIGNED.get(relation, relation)]
                forms.append(
                    Form(
                        f"setp.{relation}.{type} %x, %a, %b;",
                        (type, type),
                        ("pred",),
                        lambda a, b, h=holds, t=type: int(h(number(a, t), number(b, t))),
                        rows,
                    )
                )
    check(together(forms))


def related(f: Format, relation: str, a: int, b: int) -> bool:
    """A comparison of floats: ordered ones are false of a NaN, those in -u true."""
    nan = f.is_nan(a) or f.is_nan(b)
    if relation in ("num", "nan"):
        return nan == (relation == "nan")
    if nan:
        return relation.endswith("u")
    values = []
    for bits in (a, b):
        size = f.infinity if f.is_infinite(bits) else bits & f.sign - 1
        values.append(-size if f.negative(bits) else size)
    return ORDERED[relation.removesuffix("u")](*values)


RELATIONS = [*ORDERED, *(f"{name}u" for name in ORDERED), "num", "nan"]


def test_floats() -> None:
    forms = []
    for type in ("f16", "bf16", "f32", "f64"):
        f = FORMATS[type]
        rows = pairs([*exact.interesting(f)[::2], f.sign], [*exact.interesting(f)[::2], f.infinity | 1])
        for relation in RELATIONS:
            forms.append(
                Form(
                    f"setp.{relation}.{type} %x, %a, %b;",
                    (type, type),
                    ("pred",),
                    lambda a, b, f=f, r=relation: int(related(f, r, a, b)),
                    rows,
                )
            )
    rows = pairs((0, 1, F32.sign, F32.sign | 1, 0x00800000), (0, 1, F32.sign, F32.sign | 1))
    forms.append(
        Form(
            "setp.lt.ftz.f32 %x, %a, %b;",
            ("f32", "f32"),
            ("pred",),
            lambda a, b: int(related(F32, "lt", F32.flush(a), F32.flush(b))),
            rows,
        )
    )
    check(together(forms))


def test_combined() -> None:
    """p takes (a op b) BoolOp c, q takes !(a op b) BoolOp c."""
    operations = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
    rows = pairs((1, 5, 0xFFFFFFFF), (1, 5, 0xFFFFFFFE), (0, 1))
    forms = [
        Form(
            "setp.lt.s32 %x|%y, %a, %b;",
            ("s32", "s32", "pred"),
            ("pred", "pred"),
            lambda a, b, c: (int(signed(a, 32) < signed(b, 32)), int(signed(a, 32) >= signed(b, 32))),
            rows,
        ),
        Form(
            "setp.lt.s32 _|%x, %a, %b;",
            ("s32", "s32", "pred"),
            ("pred",),
            lambda a, b, c: int(signed(a, 32) >= signed(b, 32)),
            rows,
        ),
    ]
    for name, combine in operations.items():

        def expect(a: int, b: int, c: int, g: Callable[[int, int], int] = combine, flip: int = 0) -> tuple[int, int]:
            result = int(signed(a, 32) < signed(b, 32))
            return g(result, c ^ flip), g(1 - result, c ^ flip)

        types = ("s32", "s32", "pred")
        forms += [
            Form(f"setp.lt.{name}.s32 %x|%y, %a, %b, %c;", types, ("pred", "pred"), expect, rows),
            Form(
                f"setp.lt.{name}.s32 %x|%y, %a, %b, !%c;",
                types,
                ("pred", "pred"),
                lambda a, b, c, e=expect: e(a, b, c, flip=1),
                rows,
            ),
        ]
    halves = [(0x3C00, 0x4000), (0x4000, 0x3C00), (0x7E00, 0x3C00), (0x8000, 0x0000)]
    rows = [(a | c << 16, b | d << 16) for a, b in halves for c, d in halves]
    f16 = FORMATS["f16"]
    forms.append(
        Form(
            "setp.le.f16x2 %x|%y, %a, %b;",
            ("f16x2", "f16x2"),
            ("pred", "pred"),
            lambda a, b: (
                int(related(f16, "le", a & 0xFFFF, b & 0xFFFF)),
                int(related(f16, "le", a >> 16, b >> 16)),
            ),
            rows,
        )
    )
    check(forms)


def test_set_and_select() -> None:
    numbers = pairs((1, 5, 0xFFFFFFFF), (1, 5, 0x7FFFFFFF))
    forms = [
        Form(
            "set.lt.u32.s32 %x, %a, %b;",
            ("s32", "s32"),
            ("u32",),
            lambda a, b: -int(signed(a, 32) < signed(b, 32)),
            numbers,
        ),
        Form("set.hi.f32.u32 %x, %a, %b;", ("u32", "u32"), ("f32",), lambda a, b: F32.one if a > b else 0, numbers),
        Form(
            "set.eq.or.s32.b32 %x, %a, %b, %c;",
            ("b32", "b32", "pred"),
            ("s32",),
            lambda a, b, c: -int(a == b or c),
            [(*row, c) for row in numbers for c in (0, 1)],
        ),
        Form(
            "set.gtu.f16.f16 %x, %a, %b;",
            ("f16", "f16"),
            ("f16",),
            lambda a, b: 0x3C00 if related(FORMATS["f16"], "gtu", a, b) else 0,
            pairs(exact.interesting(FORMATS["f16"]), (0, 0x3C00, 0x7E00)),
        ),
        Form(
            "set.ge.f16x2.f16x2 %x, %a, %b;",
            ("f16x2", "f16x2"),
            ("f16x2",),
            lambda a, b: (0x3C00 if a & 0xFFFF >= b & 0xFFFF else 0) | (0x3C000000 if a >> 16 >= b >> 16 else 0),
            [(0x3C004000, 0x40003C00), (0x3C003C00, 0x3C003C00), (0x40003C00, 0x3C004000)],
        ),
    ]
    for type in ("b16", "b32", "b64", "u16", "s32", "u64", "f32", "f64"):
        bits = int(type[1:])
        rows = [(a, b, c) for a, b in pairs(integers(bits)[::4], integers(bits)[1::4]) for c in (0, 1)]
        forms.append(
            Form(f"selp.{type} %x, %a, %b, %c;", (type, type, "pred"), (type,), lambda a, b, c: a if c else b, rows)
        )
    for type in ("u32", "s64", "f32"):
        bits = int(type[1:])
        rows = [(1, 2, c) for c in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)]
        forms.append(
            Form(
                f"slct.{type}.s32 %x, %a, %b, %c;",
                (type, type, "s32"),
                (type,),
                lambda a, b, c: a if c < 1 << 31 else b,
                rows,
            )
        )
    third = [0, 0x80000000, 1, 0x80000001, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000]
    rows = [(1, 2, c) for c in third]
    forms += [
        Form(
            "slct.b32.f32 %x, %a, %b, %c;",
            ("b32", "b32", "f32"),
            ("b32",),
            lambda a, b, c: a if related(F32, "ge", c, 0) else b,
            rows,
        ),
        Form(
            "slct.ftz.b32.f32 %x, %a, %b, %c;",
            ("b32", "b32", "f32"),
            ("b32",),
            lambda a, b, c: a if related(F32, "ge", F32.flush(c), 0) else b,
            rows,
        ),
    ]
    check(forms)
