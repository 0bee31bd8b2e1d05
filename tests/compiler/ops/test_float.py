"""Floating-point arithmetic, bit for bit against exact fractions."""

from __future__ import annotations

import random
from collections.abc import Callable

import exact
from exact import F32, F64, FORMATS, Format, nan_or
from ops_rig import Form, check, pairs

MODES = ("rn", "rz", "rm", "rp")


def scattered(f: Format, count: int, arity: int, seed: int) -> list[tuple[int, ...]]:
    """Random bits, half of them with exponents close together, where sums round."""
    source = random.Random(seed)
    rows = []
    for i in range(count):
        row = [source.getrandbits(f.bits) for _ in range(arity)]
        if i % 2:
            field = source.randrange(f.bias // 2, f.bias + f.bias // 2)
            row = [
                source.getrandbits(1) << f.bits - 1
                | max(1, min(2 * f.bias, field + source.randrange(-6, 7))) << f.fraction
                | source.getrandbits(f.fraction)
                for _ in row
            ]
        rows.append(tuple(row))
    return rows


def form(
    text: str,
    type: str,
    arity: int,
    compute: Callable[..., int],
    *,
    ftz: bool = False,
    sat: bool = False,
    seed: int = 1,
    rows: list[tuple[int, ...]] | None = None,
) -> Form:
    f = FORMATS[type]

    def expect(*values: int) -> object:
        if ftz:
            values = tuple(f.flush(value) for value in values)
        result = compute(*values)
        if ftz and result != exact.NAN:
            result = f.flush(result)
        if sat:
            return exact.saturate(f, result)
        return nan_or(f, result)

    if rows is None:
        edge = exact.interesting(f)
        columns = ([edge], [edge, edge[seed % 3 :: 3]], [edge[seed % 5 :: 5]] * 3)[arity - 1]
        rows = pairs(*columns) + scattered(f, 200, arity, seed)
    sources = ", ".join(f"%{'abc'[i]}" for i in range(arity))
    return Form(f"{text} %x, {sources};", (type,) * arity, (type,), expect, rows)


def hard_sums(seed: int) -> list[tuple[int, ...]]:
    """Operands of fma.f64 whose product and addend cancel, lie far apart, or end among the subnormals."""
    source = random.Random(seed)
    rows = []
    for _ in range(150):
        a = source.getrandbits(1) << 63 | source.randrange(1, 2046) << 52 | source.getrandbits(52)
        goal = source.choice((source.randrange(1, 2046), source.randrange(1, 4)))
        field = min(2046, max(0, goal + 1023 - (a >> 52 & 2047)))
        b = source.getrandbits(1) << 63 | field << 52 | source.getrandbits(52)
        product = exact.mul(F64, a, b)
        if product == exact.NAN or F64.is_infinite(product):
            continue
        near = (product ^ F64.sign) + source.randrange(-2, 3)
        far = source.getrandbits(1) << 63 | source.randrange(0, 2046) << 52 | source.getrandbits(52)
        rows += [(a, b, near & (1 << 64) - 1), (a, b, far), (a, b, source.getrandbits(3) | source.getrandbits(1) << 63)]
    # Half a smallest subnormal either side of zero.
    tiny = 0x1FF0000000000000
    rows += [(tiny, 0x1FF8000000000000, 1 << 63 | 1), (tiny, 0x1FE8000000000000, 1 << 63), (tiny, tiny, 1 << 63 | 1)]
    return [row for row in rows if not any(F64.is_nan(value) for value in row)]


def test_f32_rounding() -> None:
    forms = []
    for i, mode in enumerate(MODES):
        for name, function in (("add", exact.add), ("sub", exact.sub), ("mul", exact.mul)):
            forms.append(form(f"{name}.{mode}.f32", "f32", 2, lambda a, b, m=mode, g=function: g(F32, a, b, m), seed=i))
        forms.append(form(f"fma.{mode}.f32", "f32", 3, lambda a, b, c, m=mode: exact.fma(F32, a, b, c, m), seed=i))
        forms.append(form(f"div.{mode}.f32", "f32", 2, lambda a, b, m=mode: exact.div(F32, a, b, m), seed=i))
        forms.append(form(f"rcp.{mode}.f32", "f32", 1, lambda a, m=mode: exact.div(F32, F32.one, a, m), seed=i))
        forms.append(form(f"sqrt.{mode}.f32", "f32", 1, lambda a, m=mode: exact.sqrt(F32, a, m), seed=i))
    check(forms)


def test_f64_rounding() -> None:
    forms = []
    for i, mode in enumerate(MODES):
        for name, function in (("add", exact.add), ("sub", exact.sub), ("mul", exact.mul), ("div", exact.div)):
            forms.append(form(f"{name}.{mode}.f64", "f64", 2, lambda a, b, m=mode, g=function: g(F64, a, b, m), seed=i))
        forms.append(form(f"rcp.{mode}.f64", "f64", 1, lambda a, m=mode: exact.div(F64, F64.one, a, m), seed=i))
        forms.append(form(f"sqrt.{mode}.f64", "f64", 1, lambda a, m=mode: exact.sqrt(F64, a, m), seed=i))
        forms.append(form(f"fma.{mode}.f64", "f64", 3, lambda a, b, c, m=mode: exact.fma(F64, a, b, c, m), seed=i))
        forms.append(
            form(f"fma.{mode}.f64", "f64", 3, lambda a, b, c, m=mode: exact.fma(F64, a, b, c, m), rows=hard_sums(i))
        )
    check(forms)


def test_f32_flushed_and_saturated() -> None:
    forms = []
    for mode in ("rn", "rz"):
        for name, function in (("add", exact.add), ("mul", exact.mul)):
            forms += [
                form(f"{name}.{mode}.ftz.f32", "f32", 2, lambda a, b, m=mode, g=function: g(F32, a, b, m), ftz=True),
                form(
                    f"{name}.{mode}.ftz.sat.f32", "f32", 2,
                    lambda a, b, m=mode, g=function: g(F32, a, b, m), ftz=True, sat=True,
                ),
            ]  # fmt: skip
    forms += [
        form("sub.ftz.f32", "f32", 2, lambda a, b: exact.sub(F32, a, b), ftz=True),
        form("sub.sat.f32", "f32", 2, lambda a, b: exact.sub(F32, a, b), sat=True),
        form("fma.rn.ftz.f32", "f32", 3, lambda a, b, c: exact.fma(F32, a, b, c), ftz=True),
        form("fma.rm.ftz.f32", "f32", 3, lambda a, b, c: exact.fma(F32, a, b, c, "rm"), ftz=True),
        form("fma.rn.sat.f32", "f32", 3, lambda a, b, c: exact.fma(F32, a, b, c), sat=True),
        form("mad.rn.f32", "f32", 3, lambda a, b, c: exact.fma(F32, a, b, c)),
        form("div.rn.ftz.f32", "f32", 2, lambda a, b: exact.div(F32, a, b), ftz=True),
        form("sqrt.rn.ftz.f32", "f32", 1, lambda a: exact.sqrt(F32, a), ftz=True),
    ]
    check(forms)


def test_flushed_results_are_flushed_once() -> None:
    """A chain of .ftz instructions, whose values in between need no flushing again."""

    def expect(a: int, b: int) -> object:
        a, b = F32.flush(a), F32.flush(b)
        product = exact.mul(F32, a, b)
        product = 0x7FC00000 if product == exact.NAN else F32.flush(product)
        smaller = extreme(F32, "f32", product, b, False, False)
        assert isinstance(smaller, int)
        total = exact.add(F32, smaller, a)
        return nan_or(F32, F32.flush(total) if total != exact.NAN else total)

    text = "mul.ftz.f32 %x, %a, %b;\nmin.ftz.f32 %x, %x, %b;\nadd.ftz.f32 %x, %x, %a;"
    edge = exact.interesting(F32)
    check([Form(text, ("f32", "f32"), ("f32",), expect, pairs(edge, edge))])


def test_nothing_is_contracted() -> None:
    """A product and a sum of one instruction each keep both roundings."""
    rows = scattered(F32, 300, 3, 7)
    wide = scattered(F64, 300, 3, 8)
    check(
        [
            form(
                "{ .reg .f32 t; mul.f32 t, %a, %b; add.f32 %x, t, %c; } //", "f32", 3,
                lambda a, b, c: _chain(F32, a, b, c), rows=rows,
            ),
            form(
                "{ .reg .f64 t; mul.f64 t, %a, %b; add.f64 %x, t, %c; } //", "f64", 3,
                lambda a, b, c: _chain(F64, a, b, c), rows=wide,
            ),
        ]
    )  # fmt: skip


def _chain(f: Format, a: int, b: int, c: int) -> int:
    product = exact.mul(f, a, b)
    return exact.NAN if product == exact.NAN else exact.add(f, product, c)


def test_half_precision() -> None:
    forms = []
    for type in ("f16", "bf16"):
        f = FORMATS[type]
        for name, function in (("add", exact.add), ("sub", exact.sub), ("mul", exact.mul)):
            forms.append(form(f"{name}.rn.{type}", type, 2, lambda a, b, f=f, g=function: g(f, a, b)))
        forms.append(form(f"fma.rn.{type}", type, 3, lambda a, b, c, f=f: exact.fma(f, a, b, c)))
    # Products that lie half way between two results, moved off it by an addend far below.
    tie = [(0x3C01, 0x3E00, c) for c in (0x0001, 0x8001, 0x0000, 0x0400, 0x8400)]
    forms += [
        form("fma.rn.f16", "f16", 3, lambda a, b, c: exact.fma(FORMATS["f16"], a, b, c), rows=tie),
        form("add.ftz.f16", "f16", 2, lambda a, b: exact.add(FORMATS["f16"], a, b), ftz=True),
        form("add.sat.f16", "f16", 2, lambda a, b: exact.add(FORMATS["f16"], a, b), sat=True),
        form("fma.rn.sat.f16", "f16", 3, lambda a, b, c: exact.fma(FORMATS["f16"], a, b, c), sat=True),
    ]
    check(forms)


def test_packed() -> None:
    """Both halves, each by itself."""
    forms = []
    for type, name, function in (
        ("f16", "add", exact.add), ("f16", "mul", exact.mul), ("bf16", "sub", exact.sub), ("bf16", "mul", exact.mul),
    ):  # fmt: skip
        f = FORMATS[type]
        edge = exact.interesting(f)
        rows = [(a | b << 16, b | a << 16) for a in edge[::2] for b in edge[::3]]

        def expect(a: int, b: int, f: Format = f, g: Callable[..., int] = function) -> object:
            low, high = g(f, a & 0xFFFF, b & 0xFFFF), g(f, a >> 16, b >> 16)

            def good(bits: int) -> bool:
                return all(
                    f.is_nan(got) if want == exact.NAN else got == want
                    for got, want in ((bits & 0xFFFF, low), (bits >> 16, high))
                )

            return good

        forms.append(Form(f"{name}.rn.{type}x2 %x, %a, %b;", (f"{type}x2",) * 2, (f"{type}x2",), expect, rows))
    for kind in "us":
        rows = [(a | b << 16, b | a << 16) for a in (0, 1, 0x7FFF, 0x8000, 0xFFFF) for b in (0, 3, 0x7FFE, 0x8001)]

        def lanes(a: int, b: int, g: Callable[[int, int], int]) -> int:
            return g(a & 0xFFFF, b & 0xFFFF) & 0xFFFF | (g(a >> 16, b >> 16) & 0xFFFF) << 16

        def smaller(x: int, y: int, kind: str = kind) -> int:
            return min(x, y, key=lambda v: v - 0x10000 if kind == "s" and v >> 15 else v)

        forms += [
            Form(
                f"add.{kind}16x2 %x, %a, %b;", (f"{kind}16x2",) * 2, (f"{kind}16x2",),
                lambda a, b, lanes=lanes: lanes(a, b, lambda x, y: x + y), rows,
            ),
            Form(
                f"min.{kind}16x2 %x, %a, %b;", (f"{kind}16x2",) * 2, (f"{kind}16x2",),
                lambda a, b, lanes=lanes, g=smaller: lanes(a, b, g), rows,
            ),
        ]  # fmt: skip
    check(forms)


CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def extreme(f: Format, type: str, a: int, b: int, larger: bool, propagate: bool) -> object:
    nans = f.is_nan(a), f.is_nan(b)
    if all(nans) or (propagate and any(nans)):
        return CANONICAL.get(type, f.is_nan)
    if any(nans):
        return b if nans[0] else a
    # Sign and magnitude as one number, -0 below +0.
    keys = [(-1 - (v & f.sign - 1)) if f.negative(v) else v for v in (a, b)]
    return (a if keys[0] > keys[1] else b) if larger else (a if keys[0] < keys[1] else b)


def test_min_max() -> None:
    forms = []
    for type, suffix, propagate in (
        ("f32", "", False), ("f32", ".NaN", True), ("f64", "", False), ("f16", "", False), ("f16", ".NaN", True),
        ("bf16", "", False), ("bf16", ".NaN", True),
    ):  # fmt: skip
        f = FORMATS[type]
        rows = pairs(exact.interesting(f), exact.interesting(f))
        for name in ("min", "max"):
            forms.append(
                Form(
                    f"{name}{suffix}.{type} %x, %a, %b;", (type, type), (type,),
                    lambda a, b, f=f, t=type, n=name, p=propagate: extreme(f, t, a, b, n == "max", p), rows,
                )
            )  # fmt: skip
    for constant in (0, F32.sign, F32.one, F32.infinity, 0x7FC00000, 1):
        for name in ("min", "max"):
            larger = name == "max"
            forms += [
                Form(
                    f"{name}.f32 %x, %a, 0f{constant:08X};", ("f32",), ("f32",),
                    lambda a, k=constant, m=larger: extreme(F32, "f32", a, k, m, False), pairs(exact.interesting(F32)),
                ),
                Form(
                    f"{name}.ftz.f32 %x, 0f{constant:08X}, %a;", ("f32",), ("f32",),
                    lambda a, k=constant, m=larger: extreme(F32, "f32", F32.flush(a), F32.flush(k), m, False),
                    pairs(exact.interesting(F32)),
                ),
            ]  # fmt: skip
    rows = pairs(exact.interesting(F32), exact.interesting(F32))

    def flushed(a: int, b: int) -> object:
        return extreme(F32, "f32", F32.flush(a), F32.flush(b), False, False)

    def xorsign(a: int, b: int) -> object:
        found = extreme(F32, "f32", a & 0x7FFFFFFF, b & 0x7FFFFFFF, True, False)
        return found if found == CANONICAL["f32"] or F32.is_nan(found) else found | (a ^ b) & F32.sign  # type: ignore

    forms += [
        Form("min.ftz.f32 %x, %a, %b;", ("f32", "f32"), ("f32",), flushed, rows),
        Form("max.xorsign.abs.f32 %x, %a, %b;", ("f32", "f32"), ("f32",), xorsign, rows),
    ]
    check(forms)


def test_signs_and_properties() -> None:
    forms = []
    for type in ("f16", "bf16", "f32", "f64"):
        f = FORMATS[type]
        rows = pairs(exact.interesting(f))
        forms += [
            Form(f"abs.{type} %x, %a;", (type,), (type,), lambda a, f=f: a & f.sign - 1, rows),
            Form(f"neg.{type} %x, %a;", (type,), (type,), lambda a, f=f: a ^ f.sign, rows),
        ]
        if type in ("f32", "f64"):
            tests = {
                "finite": lambda a, f: not f.is_nan(a) and not f.is_infinite(a),
                "infinite": lambda a, f: f.is_infinite(a),
                "number": lambda a, f: not f.is_nan(a),
                "notanumber": lambda a, f: f.is_nan(a),
                "normal": lambda a, f: not (f.is_nan(a) or f.is_infinite(a) or f.is_subnormal(a)),
                "subnormal": lambda a, f: f.is_subnormal(a),
            }
            for name, holds in tests.items():
                forms.append(
                    Form(f"testp.{name}.{type} %x, %a;", (type,), ("pred",), lambda a, f=f, h=holds: int(h(a, f)), rows)
                )
            forms.append(
                Form(
                    f"copysign.{type} %x, %a, %b;", (type, type), (type,),
                    lambda a, b, f=f: a & f.sign | b & f.sign - 1,
                    pairs(exact.interesting(f), exact.interesting(f)[::4]),
                )
            )  # fmt: skip
    forms.append(Form("abs.ftz.f32 %x, %a;", ("f32",), ("f32",), lambda a: F32.flush(a) & 0x7FFFFFFF, rows32()))
    forms.append(Form("neg.ftz.f32 %x, %a;", ("f32",), ("f32",), lambda a: F32.flush(a) ^ F32.sign, rows32()))
    check(forms)


def rows32() -> list[tuple[int, ...]]:
    return [(a,) for a in exact.interesting(F32) if not F32.is_nan(a)]
