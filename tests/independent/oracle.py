"""What PTX instructions give, from the text of the PTX ISA 9.0 alone; shares no code with the lowering or spec/."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from softfloat import F32, F64, FORMATS, NAN, Format, Result, saturate, whole
from softfloat import add as f_add
from softfloat import div as f_div
from softfloat import fma as f_fma
from softfloat import integral as f_integral
from softfloat import mul as f_mul
from softfloat import sqrt as f_sqrt

SKIP = None
"""The ISA leaves the result open."""

Value = Result | None

TYPES = {f"{k}{n}": n for k in "usb" for n in (8, 16, 32, 64)} | {
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "pred": 1,
}
TYPES |= {"f16x2": 32, "bf16x2": 32, "tf32": 32, "s16x2": 32, "u16x2": 32}
ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")
INTEGER_ROUNDINGS = ("rni", "rzi", "rmi", "rpi")


class Op:
    """An opcode taken apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.name, *self.mods = text.split(".")
        self.types = [m for m in self.mods if m in TYPES]
        self.type = self.types[-1] if self.types else "b32"
        self.bits = TYPES[self.type]
        self.ftz = "ftz" in self.mods
        self.sat = "sat" in self.mods
        self.mode = next((m for m in self.mods if m in ROUNDINGS), "rn")

    def has(self, *mods: str) -> bool:
        return any(m in self.mods for m in mods)

    @property
    def format(self) -> Format | None:
        return FORMATS.get(self.type)


def mask(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def number(bits: int, kind: str) -> int:
    """The whole number that a pattern of an integer type stands for."""
    n = TYPES[kind]
    bits = mask(bits, n)
    return bits - (1 << n) if kind[0] == "s" and bits >> (n - 1) else bits


def limits(kind: str) -> tuple[int, int]:
    n = TYPES[kind]
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if kind[0] == "s" else (0, (1 << n) - 1)


def clamp(value: int, kind: str) -> int:
    low, high = limits(kind)
    return max(low, min(high, value))


_TABLE: dict[str, Callable[[Op, list[int]], Value]] = {}


def rule(*names: str) -> Callable[[Callable[[Op, list[int]], Value]], Callable[[Op, list[int]], Value]]:
    def enter(function: Callable[[Op, list[int]], Value]) -> Callable[[Op, list[int]], Value]:
        _TABLE.update(dict.fromkeys(names, function))
        return function

    return enter


def known(op: str) -> bool:
    return op.split(".")[0] in _TABLE


def evaluate(op: str, arguments: Sequence[int]) -> Value:
    """The pattern an instruction leaves, NAN for any NaN, None where the ISA says nothing."""
    parsed = Op(op)
    if parsed.type in ("f16x2", "bf16x2") and parsed.name not in ("cvt",):
        half = parsed.type[:-2]
        scalar = op.replace(parsed.type, half)
        parts = [evaluate(scalar, [mask(a >> s, 16) for a in arguments]) for s in (0, 16)]
        return Halves(half, parts)  # type: ignore[return-value]
    return _TABLE[parsed.name](parsed, list(arguments))


class Halves:
    """Two results side by side in 32 bits, each of which may be any NaN."""

    def __init__(self, kind: str, parts: Sequence[Value]) -> None:
        self.kind, self.parts = kind, list(parts)


def matches(expected: object, got: int, kind: str) -> bool:
    """Whether the bits that came out are what the ISA asks for."""
    if expected is SKIP:
        return True
    if isinstance(expected, Halves):
        return all(matches(p, mask(got >> (16 * i), 16), expected.kind) for i, p in enumerate(expected.parts))
    if expected == NAN:
        return FORMATS.get(kind, F32).is_nan(got)
    assert isinstance(expected, int)
    return mask(expected, TYPES[kind]) == got


def _ftz_in(op: Op, f: Format, args: Sequence[int]) -> list[int]:
    return [f.flush(a) for a in args] if op.ftz else list(args)


def _finish(op: Op, f: Format, result: Result) -> Result:
    if op.ftz and isinstance(result, int):
        result = f.flush(result)
    if op.sat:
        result = saturate(f, result)
    if op.has("relu"):
        result = NAN if result == NAN else (0 if int(result) & f.sign else result)
    return result


# --- arithmetic ---------------------------------------------------------------------------------------------


@rule("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt")
def _arithmetic(op: Op, args: list[int]) -> Value:
    f = op.format
    if f is None:
        return _integer(op, args)
    a, *rest = _ftz_in(op, f, args)
    if op.name == "add":
        result = f_add(f, a, rest[0], op.mode)
    elif op.name == "sub":
        result = f_add(f, a, rest[0] if f.is_nan(rest[0]) else rest[0] ^ f.sign, op.mode)
    elif op.name == "mul":
        result = f_mul(f, a, rest[0], op.mode)
    elif op.name in ("fma", "mad"):
        result = f_fma(f, a, rest[0], rest[1], op.mode)
    elif op.name == "div":
        result = f_div(f, a, rest[0], op.mode)
    elif op.name == "rcp":
        result = f_div(f, f.one, a, op.mode)
    else:
        result = f_sqrt(f, a, op.mode)
    return _finish(op, f, result)


def _integer(op: Op, args: list[int]) -> Value:
    x = [number(a, op.type) for a in args]
    n = op.bits
    if op.name in ("add", "sub"):
        exact = x[0] + x[1] if op.name == "add" else x[0] - x[1]
        return mask(clamp(exact, op.type) if op.sat else exact, n)
    if op.name == "div":
        if x[1] == 0 or (x[1] == -1 and x[0] == limits(op.type)[0]):
            return SKIP
        quotient = abs(x[0]) // abs(x[1])
        return mask(quotient if (x[0] < 0) == (x[1] < 0) else -quotient, n)
    product = x[0] * x[1]
    if op.has("wide"):
        return mask(product + (args[2] if op.name == "mad" else 0), 2 * n)
    if op.has("hi"):
        high = product >> n
        if op.name == "mul":
            return mask(high, n)
        return mask(clamp(high + x[2], op.type) if op.sat else high + x[2], n)
    return mask(product + (x[2] if op.name == "mad" else 0), n)


@rule("mul24", "mad24")
def _mul24(op: Op, args: list[int]) -> Value:
    low = [mask(a, 24) for a in args[:2]]
    if op.type == "s32":
        low = [v - (1 << 24) if v >> 23 else v for v in low]
    product = low[0] * low[1]
    part = product >> 16 if op.has("hi") else product
    part = number(part, op.type)
    if op.name == "mul24":
        return mask(part, 32)
    total = part + number(args[2], op.type)
    return mask(clamp(total, op.type) if op.sat else total, 32)


@rule("rem")
def _rem(op: Op, args: list[int]) -> Value:
    a, b = (number(v, op.type) for v in args)
    if b == 0 or (b == -1 and a == limits(op.type)[0]):
        return SKIP
    rest = abs(a) % abs(b)
    return mask(-rest if a < 0 else rest, op.bits)


@rule("sad")
def _sad(op: Op, args: list[int]) -> Value:
    a, b, c = (number(v, op.type) for v in args)
    return mask(c + abs(a - b), op.bits)


@rule("abs", "neg")
def _sign(op: Op, args: list[int]) -> Value:
    f = op.format
    if f is None:
        a = number(args[0], op.type)
        return mask(abs(a) if op.name == "abs" else -a, op.bits)
    a = _ftz_in(op, f, args)[0]
    if f.is_nan(a):
        return NAN
    return a & ~f.sign if op.name == "abs" else a ^ f.sign


@rule("min", "max")
def _minmax(op: Op, args: list[int]) -> Value:
    f = op.format
    if f is None:
        numbers = [number(a, op.type) for a in args]
        picked = min(numbers) if op.name == "min" else max(numbers)
        return mask(max(picked, 0) if op.has("relu") else picked, op.bits)
    values = _ftz_in(op, f, args)
    sign = 0
    if op.has("xorsign"):
        for v in values:
            sign ^= v & f.sign
        values = [v & ~f.sign for v in values]
    real = [v for v in values if not f.is_nan(v)]
    if not real or (op.has("NaN") and len(real) < len(values)):
        return f.canonical_nan if f is not F64 else NAN
    # +0.0 counts as greater than -0.0: order by magnitude, negative ones reversed.
    key = {v: (-(v & (f.sign - 1)) - 1 if v & f.sign else v) for v in real}
    chosen = min(real, key=key.__getitem__) if op.name == "min" else max(real, key=key.__getitem__)
    if op.has("xorsign"):
        chosen |= sign
    if op.has("relu"):
        chosen = 0 if chosen & f.sign else chosen
    return chosen


@rule("dp4a")
def _dp4a(op: Op, args: list[int]) -> Value:
    kinds = [t[0] + "8" for t in op.types]
    a = [number(args[0] >> 8 * i, kinds[0]) for i in range(4)]
    b = [number(args[1] >> 8 * i, kinds[1]) for i in range(4)]
    return mask(args[2] + sum(x * y for x, y in zip(a, b, strict=True)), 32)


@rule("dp2a")
def _dp2a(op: Op, args: list[int]) -> Value:
    kinds = [t[0] for t in op.types]
    a = [number(args[0] >> 16 * i, kinds[0] + "16") for i in range(2)]
    start = 2 if op.has("hi") else 0
    b = [number(args[1] >> 8 * (start + i), kinds[1] + "8") for i in range(2)]
    return mask(args[2] + sum(x * y for x, y in zip(a, b, strict=True)), 32)


# --- bits ---------------------------------------------------------------------------------------------------


@rule("and", "or", "xor", "not", "cnot", "lop3")
def _logic(op: Op, args: list[int]) -> Value:
    if op.name == "lop3":
        a, b, c, table = args
        return sum(1 << i for i in range(32) if table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1)
    if op.name == "not":
        return mask(~args[0], op.bits)
    if op.name == "cnot":
        return int(args[0] == 0)
    a, b = args
    return {"and": a & b, "or": a | b, "xor": a ^ b}[op.name]


@rule("shl", "shr")
def _shift(op: Op, args: list[int]) -> Value:
    amount = min(args[1], op.bits)
    if op.name == "shl":
        return mask(args[0] << amount, op.bits)
    return mask(number(args[0], op.type) >> amount, op.bits)


@rule("shf")
def _funnel(op: Op, args: list[int]) -> Value:
    a, b, c = args
    n = min(c, 32) if op.has("clamp") else c & 31
    both = b << 32 | a
    return mask(both << n >> 32, 32) if op.has("l") else mask(both >> n, 32)


@rule("popc", "clz", "brev", "bfind")
def _count(op: Op, args: list[int]) -> Value:
    n, a = op.bits, args[0]
    if op.name == "popc":
        return a.bit_count()
    if op.name == "clz":
        return n - a.bit_length()
    if op.name == "brev":
        return int(f"{a:0{n}b}"[::-1], 2)
    if op.type[0] == "s" and a >> (n - 1):
        a = mask(~a, n)
    position = a.bit_length() - 1
    if position >= 0 and op.has("shiftamt"):
        position = n - 1 - position
    return mask(position, 32)


@rule("bfe")
def _bfe(op: Op, args: list[int]) -> Value:
    a, position, length = args[0], args[1] & 255, args[2] & 255
    top = op.bits - 1
    sign = 0
    if op.type[0] == "s" and length:
        sign = a >> min(position + length - 1, top) & 1
    out = 0
    for i in range(op.bits):
        bit = a >> (position + i) & 1 if i < length and position + i <= top else sign
        out |= bit << i
    return out


@rule("bfi")
def _bfi(op: Op, args: list[int]) -> Value:
    a, f, position, length = args[0], args[1], args[2] & 255, args[3] & 255
    for i in range(length):
        if position + i < op.bits:
            f = f & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return f


@rule("bmsk")
def _bmsk(op: Op, args: list[int]) -> Value:
    a, b = args
    if op.has("wrap"):
        a, b = a & 31, b & 31
    return mask(((1 << min(b, 64)) - 1) << min(a, 64), 32)


@rule("szext")
def _szext(op: Op, args: list[int]) -> Value:
    a, b = args
    b = b & 31 if op.has("wrap") else min(b, 32)
    if op.type[0] == "u" or b == 0:
        return a & ((1 << b) - 1)
    low = a & ((1 << b) - 1)
    return mask(low - (1 << b) if low >> (b - 1) else low, 32)


@rule("prmt")
def _prmt(op: Op, args: list[int]) -> Value:
    a, b, c = args
    octets = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    i = c & 3
    if op.has("f4e"):
        picks = [i, i + 1, i + 2, i + 3]
    elif op.has("b4e"):
        picks = [(i - k) & 7 for k in range(4)]
    elif op.has("rc8"):
        picks = [i] * 4
    elif op.has("ecl"):
        picks = [max(i, k) for k in range(4)]
    elif op.has("ecr"):
        picks = [min(i, k) for k in range(4)]
    elif op.has("rc16"):
        picks = [0, 1, 0, 1] if i % 2 == 0 else [2, 3, 2, 3]
    else:
        out = 0
        for k in range(4):
            select = c >> 4 * k & 15
            octet = octets[select & 7]
            out |= ((255 if octet & 128 else 0) if select & 8 else octet) << 8 * k
        return out
    return sum(octets[p] << 8 * k for k, p in enumerate(picks))


# --- comparison ---------------------------------------------------------------------------------------------

_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare(op: Op, kind: str, a: int, b: int) -> bool:
    relation = next(
        m for m in op.mods if m in ("num", "nan") or m[:2] in ("eq", "ne", "lt", "le", "gt", "ge", *_UNSIGNED)
    )
    f = FORMATS.get(kind)
    if f is not None:
        if op.ftz:
            a, b = f.flush(a), f.flush(b)
        unordered = f.is_nan(a) or f.is_nan(b)
        if relation in ("num", "nan"):
            return unordered == (relation == "nan")
        if unordered:
            return relation.endswith("u")
        relation = relation[:2]

        def place(v: int) -> object:
            return (2 if f.is_inf(v) else 1) * (-1 if f.negative(v) else 1) if f.is_inf(v) else f.value(v)

        if f.is_inf(a) or f.is_inf(b):
            x: object = (-1 if f.negative(a) else 1) if f.is_inf(a) else 0
            y: object = (-1 if f.negative(b) else 1) if f.is_inf(b) else 0
        else:
            x, y = place(a), place(b)
    else:
        if relation in _UNSIGNED:
            kind = "u" + kind[1:]
            relation = _UNSIGNED[relation]
        x, y = number(a, kind), number(b, kind)
    return bool(
        {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[relation]  # type: ignore[operator]
    )


def combine(op: Op, truth: bool, rest: Sequence[int]) -> bool:
    if op.has("and"):
        return truth and bool(rest[0])
    if op.has("or"):
        return truth or bool(rest[0])
    if op.has("xor"):
        return truth != bool(rest[0])
    return truth


@rule("setp")
def _setp(op: Op, args: list[int]) -> Value:
    return int(combine(op, compare(op, op.type, args[0], args[1]), args[2:]))


@rule("set")
def _set(op: Op, args: list[int]) -> Value:
    target, source = op.types
    truth = combine(op, compare(op, source, args[0], args[1]), args[2:])
    f = FORMATS.get(target)
    if f is not None:
        return f.one if truth else 0
    return mask(-1, TYPES[target]) if truth else 0


@rule("selp")
def _selp(op: Op, args: list[int]) -> Value:
    return args[0] if args[2] else args[1]


@rule("slct")
def _slct(op: Op, args: list[int]) -> Value:
    a, b, c = args
    if op.types[1] == "s32":
        return a if not c >> 31 else b
    if op.ftz:
        c = F32.flush(c)
    return b if F32.is_nan(c) or (F32.negative(c) and not F32.is_zero(c)) else a


@rule("copysign")
def _copysign(op: Op, args: list[int]) -> Value:
    sign = 1 << (op.bits - 1)
    return args[1] & (sign - 1) | args[0] & sign


@rule("testp")
def _testp(op: Op, args: list[int]) -> Value:
    f, a = FORMATS[op.type], args[0]
    return int(
        {
            "finite": not f.is_nan(a) and not f.is_inf(a),
            "infinite": f.is_inf(a),
            "number": not f.is_nan(a),
            "notanumber": f.is_nan(a),
            # 9.7.3.1: "As a special case, positive and negative zero are considered normal numbers."
            "normal": not (f.is_nan(a) or f.is_inf(a) or f.is_subnormal(a)),
            "subnormal": f.is_subnormal(a),
        }[op.mods[0]]
    )


# --- conversion ---------------------------------------------------------------------------------------------


@rule("cvt")
def _cvt(op: Op, args: list[int]) -> Value:
    target, source = op.types
    if target in ("f16x2", "bf16x2"):
        parts = [_cvt(Op(op.text.replace(target, target[:-2])), [a]) for a in reversed(args)]
        return Halves(target[:-2], parts)  # type: ignore[return-value]
    a = args[0]
    inputs, outputs = FORMATS.get(source), FORMATS.get(target)
    rounding = next((m for m in op.mods if m in INTEGER_ROUNDINGS), None)
    if inputs is None:
        value = number(a, source)
        if outputs is None:
            return mask(clamp(value, target) if op.sat else value, TYPES[target])
        result: Result = outputs.round(Fraction(value), op.mode)
        return saturate(outputs, result) if op.sat else result
    if op.ftz and inputs is F32:
        a = F32.flush(a)
    if outputs is None and target == "tf32":
        return _tf32(op, a)
    if outputs is None:
        if inputs.is_nan(a):
            # 9.7.9.21: zero if the source is not .f64 and the destination not .s64 or .u64, else the top bit alone.
            return 1 << (TYPES[target] - 1) if 64 in (TYPES[target], TYPES[source]) else 0
        if inputs.is_inf(a):
            return mask(limits(target)[0 if inputs.negative(a) else 1], TYPES[target])
        return mask(clamp(whole(inputs.value(a), rounding or "rzi"), target), TYPES[target])
    sign = outputs.sign if inputs.negative(a) else 0
    if inputs.is_nan(a):
        result = NAN
        if op.has("satfinite"):
            return outputs.canonical_nan
    elif inputs.is_inf(a):
        result = outputs.infinity | sign
    elif inputs is outputs and rounding:
        result = f_integral(inputs, a, rounding)
    else:
        result = outputs.round(inputs.value(a), op.mode, zero=sign)
    if op.ftz and outputs is F32 and isinstance(result, int):
        result = F32.flush(result)
    if op.sat:
        result = saturate(outputs, result)
    if op.has("satfinite") and isinstance(result, int) and outputs.is_inf(result):
        result -= 1
    if op.has("relu") and isinstance(result, int) and result & outputs.sign:
        result = 0
    return result


def _tf32(op: Op, a: int) -> Value:
    if F32.is_nan(a):
        return NAN
    if F32.is_inf(a):
        return a
    tf32 = Format(19, 11, -126, 127)
    return tf32.round(F32.value(a), op.mode, zero=a & F32.sign) << 13
