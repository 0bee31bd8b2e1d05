"""f32 and f64 arithmetic (PTX ISA 9.7.3): expected values from exact fractions, rounded once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import _ieee as ieee
from _build import Arg, CaseFile, column, elementwise_case, target
from _ieee import F32, F64, Format

DIRECTED = ("rz", "rm", "rp")
NEEDS = {"f32": (), "f64": ("fp64",)}
TWO: dict[str, tuple[str, Callable[[Format, int, int, str], int]]] = {
    "add": ("9.7.3.3", ieee.add),
    "sub": ("9.7.3.4", ieee.sub),
    "mul": ("9.7.3.5", ieee.mul),
    "div": ("9.7.3.8", ieee.div),
}


def generate() -> list[CaseFile]:
    file = CaseFile("float")
    for f in (F32, F64):
        two_operands(file, f)
        fused(file, f)
        one_operand(file, f)
        extremes(file, f)
        properties(file, f)
        contraction(file, f)
    flushing(file)
    saturating(file)
    immediates(file)
    return [file]


def edges(f: Format) -> list[int]:
    one = f.of(1)
    least = 1 << f.fraction
    positive = [0, 1, least - 1, least, one - 1, one, one + 1, f.of(1.5), f.of(3), f.largest, f.inf]
    return [*positive, *(x | f.sign for x in positive), f.nan, f.inf + 1, f.nan | f.sign | 5]


def operands(f: Format, seed: str, extra: int = 70) -> tuple[list[int], list[int]]:
    """Pairs of edges, pairs whose sum or product must be rounded or falls near the ends, ties."""
    few = [0, f.sign, 1, f.sign | 1, 1 << f.fraction, (1 << f.fraction) - 1, f.of(1), f.of(-1.5), f.largest,
           f.largest | f.sign, f.inf, f.inf | f.sign, f.nan]  # fmt: skip
    a = [x for x in few for _ in few]
    b = [y for _ in few for y in few]
    rng = random.Random(f"{seed}.{f.name}")
    for number in range(extra):
        x = rng.getrandbits(f.bits) % f.inf
        exponent = x >> f.fraction
        near = max(1, min((1 << f.exponent) - 2, exponent + rng.randint(-f.fraction - 2, f.fraction + 2)))
        reciprocal = max(1, min((1 << f.exponent) - 2, 2 * f.bias - exponent + rng.randint(-3, 3)))
        chosen = (near, reciprocal, rng.randrange(1 << f.exponent))[number % 3]
        y = (chosen << f.fraction | rng.getrandbits(f.fraction)) % f.inf
        if number % 5 == 0:  # a tie for addition: half a unit of the larger
            x = (f.bias + f.fraction + 2 << f.fraction) | rng.getrandbits(f.fraction)
            y = f.of(2) | 0
        a.append(x | f.sign * rng.getrandbits(1))
        b.append(y | f.sign * rng.getrandbits(1))
    return a, b


def triples(f: Format, seed: str) -> tuple[list[int], list[int], list[int]]:
    a, b = operands(f, seed)
    rng = random.Random(f"{seed}.c.{f.name}")
    some = edges(f)
    c = []
    for x, y in zip(a, b, strict=True):
        product = ieee.mul(f, x, y)
        minus = product ^ f.sign if not f.is_nan(product) else f.of(2)
        c.append(rng.choice([minus, minus, rng.choice(some), minus ^ 1 if not f.is_nan(minus ^ 1) else 0]))
    return a, b, c


def two_operands(file: CaseFile, f: Format) -> None:
    kind = f.name
    for op, (section, exact) in TWO.items():
        a, b = operands(f, op)
        for mode in ("rn", *DIRECTED):
            module = file.module(f"float_{kind}_{mode}")
            name = f"{op}_{mode}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)] * 2, [(kind, kind)], f"{op}.{mode}.{kind} %d, %a, %b;")
            expected = [exact(f, x, y, mode) for x, y in zip(a, b, strict=True)]
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b)], [target(kind, expected)],
                section=section, needs=NEEDS[kind],
            )  # fmt: skip
        if op != "div":
            module = file.module(f"float_{kind}_rn")
            name = f"{op}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)] * 2, [(kind, kind)], f"{op}.{kind} %d, %a, %b;")
            expected = [exact(f, x, y, "rn") for x, y in zip(a, b, strict=True)]
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b)], [target(kind, expected)],
                section=section, needs=NEEDS[kind], note="Without a modifier the rounding is .rn.",
            )  # fmt: skip


def fused(file: CaseFile, f: Format) -> None:
    kind = f.name
    a, b, c = triples(f, "fma")
    for mode in ("rn", *DIRECTED):
        module = file.module(f"float_{kind}_fma_{mode}")
        for op, section in (("fma", "9.7.3.6"), ("mad", "9.7.3.7")):
            if op == "mad" and mode != "rn":
                continue
            name = f"{op}_{mode}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)] * 3, [(kind, kind)], f"{op}.{mode}.{kind} %d, %a, %b, %c;")
            expected = [ieee.fma(f, x, y, z, mode) for x, y, z in zip(a, b, c, strict=True)]
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b), (kind, c)], [target(kind, expected)],
                section=section, needs=NEEDS[kind],
            )  # fmt: skip


def one_operand(file: CaseFile, f: Format) -> None:
    kind = f.name
    rng = random.Random(f"one.{kind}")
    a = edges(f) + [rng.getrandbits(f.bits) for _ in range(60)] + [f.of(n) for n in (2, 4, 9, 10, 1e10, 0.1)]
    one = f.of(1)
    operations: dict[str, tuple[str, Callable[[int, str], int]]] = {
        "sqrt": ("9.7.3.15", lambda x, mode: ieee.sqrt(f, x, mode)),
        "rcp": ("9.7.3.13", lambda x, mode: ieee.div(f, one, x, mode)),
    }
    for op, (section, exact) in operations.items():
        for mode in ("rn", *DIRECTED):
            module = file.module(f"float_{kind}_{mode}")
            name = f"{op}_{mode}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)], [(kind, kind)], f"{op}.{mode}.{kind} %d, %a;")
            elementwise_case(
                file, name, module, kernel, [(kind, a)], [target(kind, [exact(x, mode) for x in a])],
                section=section, needs=NEEDS[kind],
            )  # fmt: skip
    module = file.module(f"float_{kind}_sign")
    kernel = module.elementwise(
        f"abs_neg_{kind}", [(kind, kind)], [(kind, kind)] * 2, f"abs.{kind} %d, %a;\nneg.{kind} %e, %a;"
    )
    elementwise_case(
        file, f"abs_neg_{kind}", module, kernel, [(kind, a)],
        [target(kind, [x & ~f.sign for x in a]), target(kind, [x ^ f.sign for x in a])], section="9.7.3.9",
        needs=NEEDS[kind],
    )  # fmt: skip
    b = a[::-1]
    kernel = module.elementwise(f"copysign_{kind}", [(kind, kind)] * 2, [(kind, kind)], f"copysign.{kind} %d, %a, %b;")
    elementwise_case(
        file, f"copysign_{kind}", module, kernel, [(kind, a), (kind, b)],
        [target(f"b{f.bits}", [x & f.sign | y & ~f.sign for x, y in zip(a, b, strict=True)])], section="9.7.3.2",
        needs=NEEDS[kind], note="The sign of the first operand, the rest of the second, to the bit for NaNs too.",
    )  # fmt: skip


def extremes(file: CaseFile, f: Format) -> None:
    kind = f.name
    module = file.module(f"float_{kind}_minmax")
    some = [*edges(f), f.of(-3.5), f.of(1e-3)]
    a = [x for x in some for _ in some[::2]]
    b = [y for _ in some for y in some[::2]]
    forms: list[tuple[str, bool]] = [("", False)]
    if kind == "f32":
        forms.append((".NaN", True))
    for form, nan in forms:
        for op, section, exact in (("min", "9.7.3.11", ieee.minimum), ("max", "9.7.3.12", ieee.maximum)):
            name = f"{op}{form.replace('.', '_').lower()}_{kind}"
            kernel = module.elementwise(name, [(kind, kind)] * 2, [(kind, kind)], f"{op}{form}.{kind} %d, %a, %b;")
            expected = [exact(f, x, y, nan) for x, y in zip(a, b, strict=True)]
            elementwise_case(
                file, name, module, kernel, [(kind, a), (kind, b)], [target(kind, expected)], section=section,
                needs=NEEDS[kind], note="A NaN operand gives way to the other one; -0.0 is less than +0.0."
                if not nan else "A NaN operand gives a NaN.",
            )  # fmt: skip


def properties(file: CaseFile, f: Format) -> None:
    kind = f.name
    module = file.module(f"float_{kind}_sign")
    rng = random.Random(f"testp.{kind}")
    a = edges(f) + [rng.getrandbits(f.bits) for _ in range(20)]
    tests: tuple[tuple[str, Callable[[int], bool]], ...] = (
        ("finite", lambda x: not f.is_nan(x) and not f.is_inf(x)),
        ("infinite", f.is_inf),
        ("number", lambda x: not f.is_nan(x)),
        ("notanumber", f.is_nan),
        ("normal", lambda x: not f.is_nan(x) and not f.is_inf(x) and not f.is_subnormal(x)),
        ("subnormal", f.is_subnormal),
    )
    body = "\n".join(
        f"testp.{test}.{kind} %p2, %a;\nselp.u32 %{d}, 1, 0, %p2;" for d, (test, _) in zip("defmno", tests, strict=True)
    )
    kernel = module.elementwise(f"testp_{kind}", [(kind, kind)], [("u32", "u32")] * 6, body)
    elementwise_case(
        file, f"testp_{kind}", module, kernel, [(kind, a)],
        [target("u32", [int(holds(x)) for x in a], test) for test, holds in tests], section="9.7.3.1",
        needs=NEEDS[kind], note="Zeros count as normal.",
    )  # fmt: skip


def contraction(file: CaseFile, f: Format) -> None:
    """mul and add with a rounding modifier stay two roundings; fma is one: the inputs tell them apart."""
    kind = f.name
    module = file.module(f"float_{kind}_contract")
    rng = random.Random(f"contract.{kind}")
    a: list[int] = []
    b: list[int] = []
    c: list[int] = []
    two: list[int] = []
    one: list[int] = []
    while len(a) < 64:
        x = (f.bias << f.fraction) + rng.getrandbits(f.fraction)
        y = (f.bias << f.fraction) + rng.getrandbits(f.fraction)
        z = ieee.mul(f, x, y) ^ f.sign if len(a) % 2 else (f.bias - rng.randint(0, 20) << f.fraction) | f.sign
        rounded_twice, rounded_once = ieee.add(f, ieee.mul(f, x, y), z), ieee.fma(f, x, y, z)
        if rounded_twice == rounded_once:
            continue
        for values, v in ((a, x), (b, y), (c, z), (two, rounded_twice), (one, rounded_once)):
            values.append(v)
    kernel = module.elementwise(
        f"mul_add_{kind}", [(kind, kind)] * 3, [(kind, kind)] * 3,
        f"""mul.rn.{kind} %x, %a, %b;
            add.rn.{kind} %d, %x, %c;
            fma.rn.{kind} %e, %a, %b, %c;
            neg.{kind} %y, %c;
            sub.rn.{kind} %f, %y, %x;""",
        f".reg .{kind} %x, %y;",
    )  # fmt: skip
    three = [ieee.sub(f, z ^ f.sign, ieee.mul(f, x, y)) for x, y, z in zip(a, b, c, strict=True)]
    elementwise_case(
        file, f"mul_add_not_contracted_{kind}", module, kernel, [(kind, a), (kind, b), (kind, c)],
        [target(kind, two, "mul, add"), target(kind, one, "fma"), target(kind, three, "mul, sub")],
        section="9.7.3.3", needs=NEEDS[kind],
    )  # fmt: skip


def flushed(exact: Callable[..., int], f: Format, *operands_: int) -> int | None:
    """An .ftz operation; None where rounding takes a result that is too small up to the least normal number.

    Whether such a result counts as subnormal (before rounding or after) the manual leaves open.
    """
    inputs = [f.flush(x) for x in operands_]
    result, cut = exact(f, *inputs), exact(f, *inputs, "rz")
    if not f.is_nan(result) and f.is_subnormal(cut) and not f.is_subnormal(result):
        return None
    return f.flush(result)


def flushing(file: CaseFile) -> None:
    f = F32
    module = file.module("float_f32_ftz")
    small = [1, 0x7FFFFF, 0x800000, 0x800001, 0x3FFFFF, 0x00FFFFFF, 0x20000000, 0x1F800000, f.of(0.5), f.of(1), f.of(2)]
    rng = random.Random("ftz")
    for op, (section, exact) in TWO.items():
        a = [x | s for x in small for s in (0, f.sign) for _ in small]
        b = [y | (f.sign if y & 1 else 0) for _ in range(2 * len(small)) for y in small]
        name = f"{op}_rn_ftz_f32"
        kernel = module.elementwise(name, [("f32", "f32")] * 2, [("f32", "f32")], f"{op}.rn.ftz.f32 %d, %a, %b;")
        expected: list[int | None] = [flushed(exact, f, x, y) for x, y in zip(a, b, strict=True)]
        elementwise_case(
            file, name, module, kernel, [("f32", a), ("f32", b)], [target("f32", expected)], section=section
        )
    c = [rng.choice(small) | f.sign * rng.getrandbits(1) for _ in a]
    kernel = module.elementwise(
        "fma_rn_ftz_f32", [("f32", "f32")] * 3, [("f32", "f32")], "fma.rn.ftz.f32 %d, %a, %b, %c;"
    )
    fused_values = [flushed(ieee.fma, f, x, y, z) for x, y, z in zip(a, b, c, strict=True)]
    elementwise_case(
        file, "fma_rn_ftz_f32", module, kernel, [("f32", a), ("f32", b), ("f32", c)], [target("f32", fused_values)],
        section="9.7.3.6",
    )  # fmt: skip
    a = [x | s for x in [*small, 0x7E800000, 0x7F000000, 0x7E7FFFFF] for s in (0, f.sign)]
    kernel = module.elementwise(
        "unary_ftz_f32", [("f32", "f32")], [("f32", "f32")] * 4,
        "abs.ftz.f32 %d, %a;\nneg.ftz.f32 %e, %a;\nsqrt.rn.ftz.f32 %f, %a;\nrcp.rn.ftz.f32 %m, %a;",
    )  # fmt: skip
    one = f.of(1)

    def reciprocal(g: Format, x: int, mode: str = "rn") -> int:
        return ieee.div(g, one, x, mode)

    elementwise_case(
        file, "unary_ftz_f32", module, kernel, [("f32", a)],
        [
            target("f32", [f.flush(x) & ~f.sign for x in a]),
            target("f32", [f.flush(x) ^ f.sign for x in a]),
            target("f32", [flushed(ieee.sqrt, f, x) for x in a]),
            target("f32", [flushed(reciprocal, f, x) for x in a]),
        ],
        section="9.7.3.9",
    )  # fmt: skip
    a = [x | s for x in small for s in (0, f.sign) for _ in small]
    kernel = module.elementwise(
        "min_max_ftz_f32", [("f32", "f32")] * 2, [("f32", "f32")] * 2,
        "min.ftz.f32 %d, %a, %b;\nmax.ftz.f32 %e, %a, %b;",
    )  # fmt: skip
    rows = [(f.flush(x), f.flush(y)) for x, y in zip(a, b, strict=True)]
    elementwise_case(
        file, "min_max_ftz_f32", module, kernel, [("f32", a), ("f32", b)],
        [
            target("f32", [ieee.minimum(f, x, y) for x, y in rows]),
            target("f32", [ieee.maximum(f, x, y) for x, y in rows]),
        ],
        section="9.7.3.11",
    )  # fmt: skip


def saturated(f: Format, results: Sequence[int]) -> Arg:
    """-0.0 lies in [0.0, 1.0] as much as +0.0 does: its sign is not looked at."""
    full = (1 << f.bits) - 1
    expected = [0 if r == f.sign else ieee.saturate(f, r) for r in results]
    return target(f"b{f.bits}", expected, mask=[full ^ f.sign if r == f.sign else full for r in results])


def saturating(file: CaseFile) -> None:
    f = F32
    module = file.module("float_f32_sat")
    a, b, c = triples(f, "sat")
    rng = random.Random("sat")
    for number in range(0, len(a), 2):
        a[number], b[number] = (f.of(rng.uniform(-1.5, 1.5)) for _ in range(2))
        c[number] = f.of(rng.uniform(-1, 1))
    for op in ("add", "sub", "mul"):
        section, exact = TWO[op]
        name = f"{op}_sat_f32"
        kernel = module.elementwise(name, [("f32", "f32")] * 2, [("f32", "f32")], f"{op}.rn.sat.f32 %d, %a, %b;")
        results = [exact(f, x, y, "rn") for x, y in zip(a, b, strict=True)]
        elementwise_case(file, name, module, kernel, [("f32", a), ("f32", b)], [saturated(f, results)], section=section)
    kernel = module.elementwise("fma_sat_f32", [("f32", "f32")] * 3, [("f32", "f32")], "fma.rn.sat.f32 %d, %a, %b, %c;")
    fused_results = column(lambda x, y, z: ieee.fma(f, x, y, z), a, b, c)
    elementwise_case(
        file, "fma_sat_f32", module, kernel, [("f32", a), ("f32", b), ("f32", c)],
        [saturated(f, [r for r in fused_results if r is not None])], section="9.7.3.6",
    )  # fmt: skip
    kernel = module.elementwise(
        "add_ftz_sat_f32", [("f32", "f32")] * 2, [("f32", "f32")], "add.rn.ftz.sat.f32 %d, %a, %b;"
    )
    rows = [flushed(ieee.add, f, x, y) for x, y in zip(a, b, strict=True)]
    assert None not in rows
    elementwise_case(
        file, "add_ftz_sat_f32", module, kernel, [("f32", a), ("f32", b)],
        [saturated(f, [r for r in rows if r is not None])], section="9.7.3.3",
    )  # fmt: skip


def immediates(file: CaseFile) -> None:
    """Floating-point constants in decimal and as bits, of both sizes (section 4.5.2)."""
    module = file.module("float_immediate")
    a = [F32.of(x) for x in (0.0, 1.0, -2.5, 1e10, 3.0)]
    kernel = module.elementwise(
        "immediate_f32", [("f32", "f32")], [("f32", "f32")] * 3,
        """add.rn.f32 %d, %a, 0f3F800000;
           mul.rn.f32 %e, %a, 0.1;
           mov.f32 %f, 0F7f7fffff;
           mul.rn.f32 %f, %f, 0d3FE0000000000000;""",
    )  # fmt: skip
    elementwise_case(
        file, "immediate_f32", module, kernel, [("f32", a)],
        [
            target("f32", [ieee.add(F32, x, F32.of(1)) for x in a]),
            target("f32", [ieee.mul(F32, x, F32.of(0.1)) for x in a]),
            target("f32", [ieee.mul(F32, F32.largest, F32.of(0.5)) for _ in a]),
        ],
        section="4.5.2",
    )  # fmt: skip
    b = [F64.of(x) for x in (0.0, 1.0, -2.5, 1e300, 3.0)]
    kernel = module.elementwise(
        "immediate_f64", [("f64", "f64")], [("f64", "f64")] * 3,
        """add.rn.f64 %d, %a, 0d3FF0000000000000;
           mul.rn.f64 %e, %a, 0.1;
           add.rn.f64 %f, %a, -1.5e-3;""",
    )  # fmt: skip
    elementwise_case(
        file, "immediate_f64", module, kernel, [("f64", b)],
        [
            target("f64", [ieee.add(F64, x, F64.of(1)) for x in b]),
            target("f64", [ieee.mul(F64, x, F64.of(0.1)) for x in b]),
            target("f64", [ieee.add(F64, x, F64.of(-1.5e-3)) for x in b]),
        ],
        section="4.5.2", needs=NEEDS["f64"],
    )  # fmt: skip
