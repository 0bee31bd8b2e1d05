"""The instruction forms under test, each with its operand types, and the values they are tried on."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import oracle
from oracle import FORMATS, TYPES


@dataclass(frozen=True)
class Form:
    """One instruction, or a few in a row: text with {d}, {a} …, the types, and what must come out."""

    name: str
    text: str
    out: str
    ins: tuple[str, ...]
    expect: Callable[[Sequence[int]], object]


def form(op: str, out: str, ins: str, immediate: str = "", constants: Sequence[int] = ()) -> Form:
    names = ", ".join("{" + "abcd"[i].replace("d", "q") + "}" for i in range(len(ins.split())))
    tail = f", {immediate}" if immediate else ""
    return Form(
        op + (f" {immediate}" if immediate else ""),
        f"{op} {{d}}, {names}{tail};",
        out,
        tuple(ins.split()),
        lambda args: oracle.evaluate(op, [*args, *constants]),
    )


RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")


def integer_forms() -> list[Form]:
    made: list[Form] = []
    for t in INTEGERS:
        two, three = f"{t} {t}", f"{t} {t} {t}"
        made += [form(f"{op}.{t}", t, two) for op in ("add", "sub", "min", "max", "mul.lo", "mul.hi", "div", "rem")]
        made += [form(f"mad.lo.{t}", t, three), form(f"mad.hi.{t}", t, three), form(f"sad.{t}", t, three)]
        if t[0] == "s":
            made += [form(f"abs.{t}", t, t), form(f"neg.{t}", t, t)]
        n = TYPES[t]
        if n < 64:
            wide = f"{t[0]}{2 * n}"
            made += [form(f"mul.wide.{t}", wide, two), form(f"mad.wide.{t}", wide, f"{two} {wide}")]
        made += [form(f"shr.{t}", t, f"{t} u32")]
        for relation in ("eq", "ne", "lt", "le", "gt", "ge"):
            made.append(form(f"setp.{relation}.{t}", "pred", two))
        if t[0] == "u":
            made += [form(f"setp.{r}.{t}", "pred", two) for r in ("lo", "ls", "hi", "hs")]
    made += [form(f"{op}.sat.s32", "s32", "s32 s32") for op in ("add", "sub")]
    made += [form("mad.hi.sat.s32", "s32", "s32 s32 s32")]
    for t in ("u32", "s32"):
        made += [form(f"mul24.{p}.{t}", t, f"{t} {t}") for p in ("lo", "hi")]
        made += [form(f"mad24.{p}.{t}", t, f"{t} {t} {t}") for p in ("lo", "hi")]
        made += [form(f"bfind.{t}", "u32", t), form(f"bfind.shiftamt.{t}", "u32", t)]
        made += [form(f"szext.{m}.{t}", t, f"{t} u32") for m in ("clamp", "wrap")]
    made += [form("mad24.hi.sat.s32", "s32", "s32 s32 s32")]
    for t in ("u64", "s64"):
        made += [form(f"bfind.{t}", "u32", t), form(f"bfind.shiftamt.{t}", "u32", t)]
    for t in ("u32", "s32", "u64", "s64"):
        made += [form(f"bfe.{t}", t, f"{t} u32 u32")]
    for t in ("b32", "b64"):
        made += [form(f"{op}.{t}", "u32", t) for op in ("popc", "clz")]
        made += [form(f"brev.{t}", t, t), form(f"bfi.{t}", t, f"{t} {t} u32 u32")]
    for t in ("b16", "b32", "b64"):
        made += [form(f"{op}.{t}", t, f"{t} {t}") for op in ("and", "or", "xor")]
        made += [form(f"not.{t}", t, t), form(f"cnot.{t}", t, t), form(f"shl.{t}", t, f"{t} u32")]
    for table in (0x00, 0x01, 0x1D, 0x3C, 0x80, 0x96, 0xCA, 0xE8, 0xFE, 0xFF, 0x5B):
        made.append(form("lop3.b32", "b32", "b32 b32 b32", str(table), [table]))
    made += [form(f"shf.{d}.{m}.b32", "b32", "b32 b32 u32") for d in "lr" for m in ("clamp", "wrap")]
    made += [form(f"bmsk.{m}.b32", "b32", "u32 u32") for m in ("clamp", "wrap")]
    made += [form(f"prmt.b32{m}", "b32", "b32 b32 b32") for m in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")]
    made += [form(f"dp4a.{x}.{y}", "b32", "b32 b32 b32") for x in ("u32", "s32") for y in ("u32", "s32")]
    made += [
        form(f"dp2a.{p}.{x}.{y}", "b32", "b32 b32 b32")
        for p in ("lo", "hi")
        for x in ("u32", "s32")
        for y in ("u32", "s32")
    ]
    for t in ("b16", "b32", "b64", "f32", "f64", "s32"):
        made.append(form(f"selp.{t}", t, f"{t} {t} pred"))
    for t in ("b16", "b32", "u64", "f32", "f64"):
        made += [form(f"slct.{t}.s32", t, f"{t} {t} s32"), form(f"slct.{t}.f32", t, f"{t} {t} f32")]
    made += [form("slct.ftz.u32.f32", "u32", "u32 u32 f32")]
    for boolean in ("and", "or", "xor"):
        made.append(form(f"setp.lt.{boolean}.s32", "pred", "s32 s32 pred"))
        made.append(form(f"set.ge.{boolean}.u32.u32", "u32", "u32 u32 pred"))
    made += [form(f"set.le.{d}.{s}", d, f"{s} {s}") for d in ("u32", "s32", "f32") for s in ("s16", "u32", "s64")]
    made += carry_forms() + immediate_forms()
    return made


def carry_forms() -> list[Form]:
    """Chains over the condition code: 64- and 128-bit arithmetic by halves."""

    def sum_high(args: Sequence[int]) -> int:
        a, b, c, q = args
        return ((a << 32 | b) + (c << 32 | q)) >> 32

    def difference_high(args: Sequence[int]) -> int:
        a, b, c, q = args
        return ((a << 32 | b) - (c << 32 | q)) >> 32

    def carry_out(args: Sequence[int]) -> int:
        a, b, c, q = args
        return ((a << 32 | b) + (c << 32 | q)) >> 64

    def borrow_out(args: Sequence[int]) -> int:
        a, b, c, q = args
        return int((a << 32 | b) < (c << 32 | q))

    def mad_low(args: Sequence[int]) -> int:
        a, b, c, q = args
        return (a * b + (c << 32 | q)) & 0xFFFFFFFF

    def mad_high(args: Sequence[int]) -> int:
        a, b, c, q = args
        return (a * b + (c << 32 | q)) >> 32

    def mad_carry(args: Sequence[int]) -> int:
        a, b, c, q = args
        return (a * b + (c << 32 | q)) >> 64

    def wide_sum(args: Sequence[int]) -> int:
        a, b, c, q = args
        return ((a << 64 | b) + (c << 64 | q)) >> 64

    def wide_difference(args: Sequence[int]) -> int:
        a, b, c, q = args
        return ((a << 64 | b) - (c << 64 | q)) >> 64

    def wide_mad(args: Sequence[int]) -> int:
        a, b, c, q = args
        return (a * b + (c << 64 | q)) >> 64

    four, eight = ("u32",) * 4, ("u64",) * 4
    return [
        Form("add.cc/addc", "add.cc.u32 {t}, {b}, {q}; addc.u32 {d}, {a}, {c};", "u32", four, sum_high),
        Form("sub.cc/subc", "sub.cc.u32 {t}, {b}, {q}; subc.u32 {d}, {a}, {c};", "u32", four, difference_high),
        Form(
            "add.cc/addc.cc/addc",
            "add.cc.s32 {t}, {b}, {q}; addc.cc.s32 {t}, {a}, {c}; addc.u32 {d}, 0, 0;",
            "u32",
            four,
            carry_out,
        ),
        Form(
            "sub.cc/subc.cc/subc",
            "sub.cc.s32 {t}, {b}, {q}; subc.cc.s32 {t}, {a}, {c}; subc.u32 {d}, 0, 0; neg.s32 {d}, {d};",
            "u32",
            four,
            borrow_out,
        ),
        Form("mad.lo.cc", "mad.lo.cc.u32 {d}, {a}, {b}, {q};", "u32", four, mad_low),
        Form("madc.hi", "mad.lo.cc.u32 {t}, {a}, {b}, {q}; madc.hi.u32 {d}, {a}, {b}, {c};", "u32", four, mad_high),
        Form(
            "madc.hi.cc",
            "mad.lo.cc.u32 {t}, {a}, {b}, {q}; madc.hi.cc.u32 {t}, {a}, {b}, {c}; addc.u32 {d}, 0, 0;",
            "u32",
            four,
            mad_carry,
        ),
        Form(
            "mad.hi.cc.s32",
            "mad.hi.cc.s32 {t}, {a}, {b}, {c}; addc.u32 {d}, 0, 0;",
            "u32",
            four,
            lambda args: ((oracle.evaluate("mul.hi.s32", args[:2]) or 0) + args[2]) >> 32,  # type: ignore[operator]
        ),
        Form(
            "madc.lo.s32",
            "add.cc.u32 {t}, {a}, {b}; madc.lo.s32 {d}, {a}, {c}, {q};",
            "u32",
            four,
            lambda args: args[0] * args[2] + args[3] + (args[0] + args[1] >> 32),
        ),
        Form("add.cc/addc.u64", "add.cc.u64 {t}, {b}, {q}; addc.u64 {d}, {a}, {c};", "u64", eight, wide_sum),
        Form("sub.cc/subc.u64", "sub.cc.u64 {t}, {b}, {q}; subc.u64 {d}, {a}, {c};", "u64", eight, wide_difference),
        Form(
            "madc.hi.u64", "mad.lo.cc.u64 {t}, {a}, {b}, {q}; madc.hi.u64 {d}, {a}, {b}, {c};", "u64", eight, wide_mad
        ),
    ]


def immediate_forms() -> list[Form]:
    """Constants in operands: negative ones, wider ones, shifts by more than the width."""
    made = [
        ("add.u16 {d}, {a}, -1;", "u16", ("u16",), lambda x: x[0] - 1),
        ("sub.s32 {d}, 5, {a};", "s32", ("s32",), lambda x: 5 - x[0]),
        ("mul.wide.s32 {d}, {a}, -3;", "s64", ("s32",), lambda x: oracle.number(x[0], "s32") * -3),
        ("mul.wide.u16 {d}, {a}, 65535;", "u32", ("u16",), lambda x: x[0] * 65535),
        ("shl.b32 {d}, {a}, 40;", "b32", ("b32",), lambda x: 0),
        ("shr.s32 {d}, {a}, 40;", "s32", ("s32",), lambda x: -(x[0] >> 31)),
        ("shr.u64 {d}, {a}, 63;", "u64", ("u64",), lambda x: x[0] >> 63),
        ("shl.b16 {d}, {a}, 16;", "b16", ("b16",), lambda x: 0),
        ("and.b64 {d}, {a}, -256;", "b64", ("b64",), lambda x: x[0] & ~255),
        ("xor.b32 {d}, {a}, 0xdeadbeef;", "b32", ("b32",), lambda x: x[0] ^ 0xDEADBEEF),
        ("mad.lo.s32 {d}, {a}, -7, 0x7fffffff;", "s32", ("s32",), lambda x: x[0] * -7 + 0x7FFFFFFF),
        ("setp.lt.s32 {d}, {a}, -1;", "pred", ("s32",), lambda x: int(oracle.number(x[0], "s32") < -1)),
        ("setp.gt.u32 {d}, {a}, -2;", "pred", ("u32",), lambda x: int(x[0] > 0xFFFFFFFE)),
        ("min.s64 {d}, {a}, -5;", "s64", ("s64",), lambda x: min(oracle.number(x[0], "s64"), -5)),
        ("div.s32 {d}, {a}, -7;", "s32", ("s32",), lambda x: oracle.evaluate("div.s32", [x[0], 0xFFFFFFF9])),
        ("rem.s64 {d}, {a}, 10;", "s64", ("s64",), lambda x: oracle.evaluate("rem.s64", [x[0], 10])),
        ("rem.u32 {d}, {a}, 1000;", "u32", ("u32",), lambda x: x[0] % 1000),
    ]
    return [Form(text, text, out, ins, expect) for text, out, ins, expect in made]


def float_forms() -> list[Form]:
    made: list[Form] = []
    for t in ("f32", "f64"):
        two, three = f"{t} {t}", f"{t} {t} {t}"
        variants = ("", ".ftz", ".sat", ".ftz.sat") if t == "f32" else ("",)
        for mode in ("rn", "rz", "rm", "rp"):
            for v in variants:
                made += [form(f"{op}.{mode}{v}.{t}", t, two) for op in ("add", "sub", "mul")]
                made += [form(f"fma.{mode}{v}.{t}", t, three)]
            for v in variants[:2]:
                made += [form(f"div.{mode}{v}.{t}", t, two)]
                made += [form(f"{op}.{mode}{v}.{t}", t, t) for op in ("sqrt", "rcp")]
        for v in variants[:2]:
            made += [form(f"{op}{v}.{t}", t, two) for op in ("add", "sub", "mul", "min", "max")]
            made += [form(f"{op}{v}.{t}", t, t) for op in ("abs", "neg")]
            for relation in RELATIONS:
                made.append(form(f"setp.{relation}{v}.{t}", "pred", two))
        made += [form(f"set.{r}.{d}.{t}", d, two) for r in ("lt", "geu", "nan") for d in ("u32", "s32", "f32")]
        made += [form(f"setp.leu.xor.{t}", "pred", f"{two} pred"), form(f"setp.gt.and.{t}", "pred", f"{two} pred")]
        made += [form(f"copysign.{t}", t, two)]
        for p in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            made.append(form(f"testp.{p}.{t}", "pred", t))
    made += [form(f"{op}.NaN.f32", "f32", "f32 f32") for op in ("min", "max")]
    made += [form(f"{op}.ftz.NaN.f32", "f32", "f32 f32") for op in ("min", "max")]
    made += [form(f"{op}.xorsign.abs.f32", "f32", "f32 f32") for op in ("min", "max")]
    made += [form(f"set.gt.ftz.{d}.f32", d, "f32 f32") for d in ("u32", "f32")]
    return made


def half_forms() -> list[Form]:
    made: list[Form] = []
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        two, three = f"{t} {t}", f"{t} {t} {t}"
        if t[0] == "f":
            made += [form(f"{op}.rn.{t}", t, two) for op in ("add", "sub", "mul")]
            made += [form(f"{op}.sat.{t}", t, two) for op in ("add", "mul")]
            made += [form(f"{op}.ftz.{t}", t, two) for op in ("add", "sub")]
            made += [form(f"fma.rn{v}.{t}", t, three) for v in ("", ".ftz", ".sat", ".relu")]
        else:
            made += [form(f"fma.rn.{t}", t, three), form(f"fma.rn.relu.{t}", t, three)]
        made += [form(f"{op}.{t}", t, two) for op in ("min", "max")]
        made += [form(f"{op}.NaN.{t}", t, two) for op in ("min", "max")]
        made += [form(f"{op}.{t}", t, t) for op in ("abs", "neg")]
    for relation in ("eq", "lt", "geu", "nan", "neu"):
        made += [form(f"setp.{relation}.f16", "pred", "f16 f16"), form(f"setp.{relation}.bf16", "pred", "bf16 bf16")]
    return made


def convert_forms() -> list[Form]:
    made: list[Form] = []
    whole = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
    for s in whole:
        for d in whole:
            if s != d:
                made.append(form(f"cvt.{d}.{s}", d, s))
                made.append(form(f"cvt.sat.{d}.{s}", d, s))
    for s in ("f16", "f32", "f64"):
        for d in whole:
            for mode in ("rni", "rzi", "rmi", "rpi"):
                made.append(form(f"cvt.{mode}.{d}.{s}", d, s))
        made.append(form(f"cvt.rzi.sat.s32.{s}", "s32", s))
        for d in ("f16", "f32", "f64"):
            if d == s:
                made += [form(f"cvt.{m}.{d}.{s}", d, s) for m in ("rni", "rzi", "rmi", "rpi")]
                made.append(form(f"cvt.sat.{d}.{s}", d, s))
                made.append(form(f"cvt.rmi.sat.{d}.{s}", d, s))
            elif TYPES[d] < TYPES[s]:
                made += [form(f"cvt.{m}.{d}.{s}", d, s) for m in ("rn", "rz", "rm", "rp")]
                made.append(form(f"cvt.rn.sat.{d}.{s}", d, s))
            else:
                made += [form(f"cvt.{d}.{s}", d, s), form(f"cvt.sat.{d}.{s}", d, s)]
    for s in whole:
        for d in ("f16", "f32", "f64"):
            made += [form(f"cvt.{m}.{d}.{s}", d, s) for m in ("rn", "rz", "rm", "rp")]
        made.append(form(f"cvt.rn.sat.f32.{s}", "f32", s))
    for op, d, s in (
        ("cvt.rzi.ftz.s32.f32", "s32", "f32"),
        ("cvt.rpi.ftz.u64.f32", "u64", "f32"),
        ("cvt.ftz.f64.f32", "f64", "f32"),
        ("cvt.rn.ftz.f32.f64", "f32", "f64"),
        ("cvt.rz.ftz.f16.f32", "f16", "f32"),
        ("cvt.ftz.f32.f16", "f32", "f16"),
        ("cvt.rpi.ftz.f32.f32", "f32", "f32"),
        ("cvt.ftz.f32.f32", "f32", "f32"),
        ("cvt.rn.relu.f16.f32", "f16", "f32"),
        ("cvt.rz.relu.f16.f32", "f16", "f32"),
        ("cvt.rn.bf16.f32", "bf16", "f32"),
        ("cvt.rz.bf16.f32", "bf16", "f32"),
        ("cvt.rn.relu.bf16.f32", "bf16", "f32"),
        ("cvt.f32.bf16", "f32", "bf16"),
        ("cvt.rna.tf32.f32", "b32", "f32"),
        ("cvt.rn.f16x2.f32", "f16x2", "f32 f32"),
        ("cvt.rz.f16x2.f32", "f16x2", "f32 f32"),
        ("cvt.rn.relu.f16x2.f32", "f16x2", "f32 f32"),
        ("cvt.rn.bf16x2.f32", "bf16x2", "f32 f32"),
        ("cvt.rz.relu.bf16x2.f32", "bf16x2", "f32 f32"),
    ):
        made.append(form(op, d, s))
    return made


FAMILIES: dict[str, Callable[[], list[Form]]] = {
    "integer": integer_forms,
    "float": float_forms,
    "half": half_forms,
    "convert": convert_forms,
}

# --- values -------------------------------------------------------------------------------------------------


def edges(kind: str) -> list[int]:
    """The patterns at which a type's rules change."""
    n = TYPES[kind]
    if kind == "pred":
        return [0, 1]
    if kind in ("f16x2", "bf16x2"):
        half = edges(kind[:-2])
        return [a | half[(7 * i + 3) % len(half)] << 16 for i, a in enumerate(half)]
    f = FORMATS.get(kind)
    if f is None:
        top = (1 << n) - 1
        values = [0, 1, 2, 3, 7, 8, n - 1, n, n + 1, 255, top >> 1, (top >> 1) + 1, (top >> 1) + 2, top, top - 1]
        values += [top // 3, top // 5 * 2, 0x8000 & top, 0xFFFF & top, 0x10000 & top, 0xFFFFFFFF & top, 31, 32, 33, 63]
        values += [0x7FFF & top, 0x80 & top, 0x7F & top, (top - 0x7F) & top, (top - 0x80) & top, (top - 0x7FFF) & top]
        values += [(top - 0x8000) & top, (1 << 32) & top, (0x7FFFFFFF) & top, (top - 0x7FFFFFFF) & top]
        return list(dict.fromkeys(values))
    p = f.precision - 1
    one = f.one
    positive = [0, 1, 2, 3, (1 << p) - 1, 1 << p, (1 << p) + 1, f.infinity - 1, f.infinity - 2, f.infinity]
    positive += [one, one + 1, one - 1, one - (1 << p), one - (1 << p) + 1, one - (1 << p) - 1, one + (1 << p)]
    positive += [one + (1 << p - 1), one + (3 << p - 1), one + (1 << p) + (1 << p - 2), one + (5 << p - 1)]
    positive += [f.canonical_nan, f.infinity + 1, f.infinity | 1 << p - 1]
    for exponent in (7, 8, 15, 16, 24, 31, 32, 63, 64):
        if exponent < f.emax:
            power = one + (exponent << p)
            positive += [power, power - 1, power + 1]
    positive += [
        one + (p << p),
        one + (p << p) + 1,
        one + (p << p) - 1,
        one + ((p - 1) << p) + 1,
        one + ((p - 1) << p) + 3,
    ]
    if f.emin < -100:  # numbers that become f16's subnormal and halfway ones
        positive += [one - (k << p) | m for k in (14, 15, 24, 25, 26) for m in (0, 1, 1 << p - 1)]
        positive += [oracle.F32.round(Fraction(65520 - k), "rn") for k in (0, 1)] if kind == "f32" else []
    positive += [(one + 0x2AAAA % (1 << p)), (one + (3 << p) + 0x5A5A5A5A5A % (1 << p))]
    return list(dict.fromkeys(v for x in positive for v in (x, x | f.sign)))


def rand(kind: str, rng: random.Random) -> int:
    n = TYPES[kind]
    if kind == "pred":
        return rng.getrandbits(1)
    f = FORMATS.get(kind)
    if f is not None and rng.random() < 0.6:  # near each other, so that sums cancel and round
        p = f.precision - 1
        exponent = f.emax + rng.randint(-min(p + 3, f.emax - 1), min(p + 3, f.emax - 1))
        return rng.getrandbits(1) << (n - 1) | exponent << p | rng.getrandbits(p)
    value = rng.getrandbits(n)
    return value >> rng.randrange(n) if f is None and rng.random() < 0.5 else value


def inputs(ins: tuple[str, ...], count: int, rng: random.Random) -> list[list[int]]:
    """Rows of operands: all pairs of edges as far as they fit, then edges and random values at random."""
    tables = [edges(kind) for kind in ins]
    rows: list[list[int]] = []
    if len(ins) == 1:
        rows = [[a] for a in tables[0]]
    elif len(ins) == 2 and len(tables[0]) * len(tables[1]) <= count * 2 // 3:
        rows = [[a, b] for a in tables[0] for b in tables[1]]
    while len(rows) < count:
        row = []
        for kind, table in zip(ins, tables, strict=True):
            row.append(rng.choice(table) if rng.random() < 0.5 else rand(kind, rng))
        if len(row) > 1 and ins[0] == ins[1] and rng.random() < 0.1:
            row[1] = row[0]
        rows.append(row)
    return rows[:count]
