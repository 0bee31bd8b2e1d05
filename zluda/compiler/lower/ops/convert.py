"""cvt and cvt.pack (section 9.7.9.21): every pair of integers, f16, bf16, f32 and f64, and the packed forms."""

from __future__ import annotations

from zluda.compiler.lower.context import Context, llvm_type, lowers, width
from zluda.compiler.lower.ops import double, rounding
from zluda.compiler.lower.ops._emit import (
    PACKED,
    flush,
    is_float,
    join,
    real,
    resize,
    saturate,
    select,
    signed,
)
from zluda.compiler.lower.ops.floating import as_float, canonical, need, relu

_ROUND_TO_INTEGER = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_LARGEST = {"f16": 0x7BFF, "bf16": 0x7F7F, "f32": 0x7F7FFFFF}


@lowers("cvt")
def cvt(c: Context) -> None:
    if c.has("pack"):
        _pack(c)
        return
    types = c.types
    if len(types) != 2 or c.has("scaled") or any(m.startswith("scaled") or m in ("rs",) for m in c.mods):
        c.unsupported(f"{c.instruction.opcode} is not lowered")
    to, source = types
    if to in ("f16x2", "bf16x2") and source == "f32":
        high, low = (_from_float_modified(c, PACKED[to], c.get(operand, "f32")) for operand in c.operands[1:3])
        c.set(c.operands[0], to, join(c, to, low, high))
        return
    if to == "tf32" and source == "f32":
        c.set(c.operands[0], "b32", _to_tf32(c, c.get(c.operands[1], "f32")))
        return
    for type in types:
        if not is_float(type) and (type[0] not in "us" or type in PACKED or not type[1:].isdigit()):
            c.unsupported(f"cvt.{to}.{source} is not lowered")
        need(c, type)
    value = c.get(c.operands[1], source)
    if c.has("ftz") and source == "f32":
        value = flush(c, "f32", value)
    if is_float(source):
        value = _float_to_float(c, value, source, to) if is_float(to) else _float_to_integer(c, value, source, to)
    elif is_float(to):
        value = _integer_to_float(c, value, source, to)
    else:
        value = _integer_to_integer(c, value, source, to)
    c.set(c.operands[0], to, value)


def _mode(c: Context) -> str:
    return rounding.mode(c)


# --- integers ---------------------------------------------------------------------------------------


def _integer_to_integer(c: Context, value: str, source: str, to: str) -> str:
    if c.has("sat"):
        value = _clamp(c, value, source, to)
    return resize(c, value, width(source), width(to), signed(source))


def _range(type: str) -> tuple[int, int]:
    bits = width(type)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed(type) else (0, (1 << bits) - 1)


def _clamp(c: Context, value: str, source: str, to: str) -> str:
    """The value limited to the destination's range, still in the source's width."""
    llvm, kind = f"i{width(source)}", "s" if signed(source) else "u"
    (source_low, source_high), (low, high) = _range(source), _range(to)
    if low > source_low:
        value = select(c, c.op(f"icmp {kind}lt {llvm} {value}, {low}"), llvm, str(low), value)
    if high < source_high:
        limit = str(high)
        value = select(c, c.op(f"icmp {kind}gt {llvm} {value}, {limit}"), llvm, limit, value)
    return value


def _pack(c: Context) -> None:
    """cvt.pack.sat: two s32 limited to 16 or 8 bits, over the low bits of c."""
    to = c.types[0]
    bits = width(to)
    if bits not in (8, 16):
        c.unsupported(f"cvt.pack.sat.{to} is not lowered")
    mask = (1 << bits) - 1
    a, b = (c.op(f"and i32 {_clamp(c, c.get(operand, 's32'), 's32', to)}, {mask}") for operand in c.operands[1:3])
    value = c.op(f"or i32 {c.op(f'shl i32 {a}, {bits}')}, {b}")
    if bits == 8 and len(c.operands) > 3:
        rest = c.op(f"shl i32 {c.get(c.operands[3], 'b32')}, 16")
        value = c.op(f"or i32 {value}, {rest}")
    c.set(c.operands[0], "b32", value)


# --- floating point to integer ----------------------------------------------------------------------


def _float_to_integer(c: Context, value: str, source: str, to: str) -> str:
    """Rounds, then clamps to the range; a NaN is zero, or the top bit alone where either side is 64 bits wide."""
    rounded = next((m for m in c.mods if m in _ROUND_TO_INTEGER), None)
    if rounded is None:
        c.unsupported("a conversion from floating point to integer needs .rni, .rzi, .rmi or .rpi")
    work = "f64" if source == "f64" else "f32"
    if source != "f64":
        value = as_float(c, source, value)
    llvm, bits = llvm_type(work), width(to)
    value = c.intrinsic(f"llvm.{_ROUND_TO_INTEGER[rounded]}.{work}", llvm, (llvm, value))
    low, high = _range(to)
    # The bounds as powers of two are exact in every format; between them the conversion is defined.
    upper, lower = real(llvm, float(high + 1)), real(llvm, float(low))
    too_high = c.op(f"fcmp oge {llvm} {value}, {upper}")
    fits = c.op(f"fcmp oge {llvm} {value}, {lower}")
    inside = c.op(f"and i1 {fits}, {c.op(f'fcmp olt {llvm} {value}, {upper}')}")
    safe = select(c, inside, llvm, value, real(llvm, 0.0))
    work_bits = max(bits, 32)
    result = c.op(f"{'fptosi' if signed(to) else 'fptoui'} {llvm} {safe} to i{work_bits}")
    result = resize(c, result, work_bits, bits, signed(to))
    integer = f"i{bits}"
    result = select(c, too_high, integer, str(high), result)
    if low:
        too_low = c.op(f"fcmp olt {llvm} {value}, {lower}")
        result = select(c, too_low, integer, str(low), result)
    if source == "f64" or bits == 64:
        nan = c.op(f"fcmp uno {llvm} {value}, {value}")
        result = select(c, nan, integer, str(-(1 << bits - 1)), result)
    return result


# --- integer to floating point ----------------------------------------------------------------------


def _integer_to_float(c: Context, value: str, source: str, to: str) -> str:
    mode = _mode(c)
    bits, sign = width(source), signed(source)
    how = "sitofp" if sign else "uitofp"
    if to in ("f32", "f64") and (mode == "rn" or bits + (not sign) <= (24 if to == "f32" else 53)):
        wide = resize(c, value, bits, max(bits, 32), sign)
        result = c.op(f"{how} i{max(bits, 32)} {wide} to {llvm_type(to)}")
    elif to == "f64":
        result = _long_to_double(c, value, sign, mode)
    else:
        result = rounding.narrow(c, _integer_to_odd_double(c, value, bits, sign), to, mode)
    if c.has("sat"):
        result = _saturated(c, to, result)
    return result


def _integer_to_odd_double(c: Context, value: str, bits: int, sign: bool) -> str:
    """An integer as a double, rounded to odd."""
    c.kernel_needs("fp64")
    how = "sitofp" if sign else "uitofp"
    if bits < 64:
        return c.op(f"{how} i32 {resize(c, value, bits, 32, sign)} to double")
    # 53 bits hold the upper part; what is cut is remembered in the last bit.
    upper = c.op(f"{'ashr' if sign else 'lshr'} i64 {value}, 11")
    cut = c.op(f"icmp ne i64 {c.op(f'and i64 {value}, 2047')}, 0")
    sticky = c.op(f"or i64 {upper}, {c.op(f'zext i1 {cut} to i64')}")
    large = c.op(f"fmul double {c.op(f'{how} i64 {sticky} to double')}, {real('double', 2048.0)}")
    exact = c.op(f"{how} i64 {value} to double")
    top = c.op(f"{'ashr' if sign else 'lshr'} i64 {value}, 53")
    small = c.op(f"icmp eq i64 {top}, 0")
    if sign:
        small = c.op(f"or i1 {small}, {c.op(f'icmp eq i64 {top}, -1')}")
    return select(c, small, "double", exact, large)


def _long_to_double(c: Context, value: str, sign: bool, mode: str) -> str:
    """A 64-bit integer to f64, not to nearest: the upper and the lower half are exact, their sum is rounded."""
    c.kernel_needs("fp64")
    upper = c.op(f"{'ashr' if sign else 'lshr'} i64 {value}, 32")
    lower = c.op(f"and i64 {value}, 4294967295")
    high = c.op(f"{'sitofp' if sign else 'uitofp'} i64 {upper} to double")
    high = c.op(f"fmul double {high}, {real('double', 2.0**32)}")
    total = double.add_f64(c, high, c.op(f"uitofp i64 {lower} to double"), mode)
    # Zero is +0, in every mode.
    zero = c.op(f"icmp eq i64 {value}, 0")
    return select(c, zero, "double", "0.0", total)


# --- floating point to floating point ---------------------------------------------------------------


def _float_to_float(c: Context, value: str, source: str, to: str) -> str:
    integral = next((m for m in c.mods if m in _ROUND_TO_INTEGER), None)
    if integral is not None and source == to:
        value = _to_integral(c, value, source, integral)
    elif integral is not None:
        c.unsupported(f"cvt.{integral}.{to}.{source} does not exist")
    elif source != to:
        value = _change_format(c, value, source, to)
    if c.has("ftz") and to == "f32":
        value = flush(c, "f32", value)
    return _modified(c, to, value)


def _to_integral(c: Context, value: str, type: str, integral: str) -> str:
    function = _ROUND_TO_INTEGER[integral]
    if type == "f64":
        return c.intrinsic(f"llvm.{function}.f64", "double", ("double", value))
    wide = c.intrinsic(f"llvm.{function}.f32", "float", ("float", as_float(c, type, value)))
    if type == "bf16":
        return rounding.float_to_bf16(c, wide, "rn")
    return c.op(f"fptrunc float {wide} to half") if type == "f16" else wide


def _change_format(c: Context, value: str, source: str, to: str) -> str:
    mode = _mode(c)
    if source == "f64":
        return rounding.narrow(c, value, to, mode)
    if to == "f64":
        return rounding.widen(c, source, value)
    value = as_float(c, source, value)
    if to == "f32":
        return value
    return _from_float(c, to, value, mode)


def _from_float(c: Context, to: str, value: str, mode: str) -> str:
    return (rounding.float_to_bf16 if to == "bf16" else rounding.float_to_half)(c, value, mode)


def _from_float_modified(c: Context, to: str, value: str) -> str:
    """One half of cvt.f16x2.f32."""
    if to == "f16":
        need(c, to)
    return _modified(c, to, _from_float(c, to, value, _mode(c)))


def _modified(c: Context, type: str, value: str) -> str:
    """What .sat, .relu and .satfinite make of a result."""
    if c.has("sat"):
        value = _saturated(c, type, value)
    if c.has("satfinite"):
        value = _limit(c, type, value)
    if c.has("relu"):
        value = relu(c, type, value)
    return value


def _saturated(c: Context, type: str, value: str) -> str:
    if type == "bf16":
        return rounding.float_to_bf16(c, saturate(c, "float", as_float(c, type, value)), "rn")
    return saturate(c, llvm_type(type), value)


def _limit(c: Context, type: str, value: str) -> str:
    """Infinity becomes the largest finite value of its sign, NaN the canonical one (.satfinite)."""
    if type not in _LARGEST:
        c.unsupported(f".satfinite is not lowered for {type}")
    bits = width(type)
    integer = f"i{bits}"
    raw = value if type == "bf16" else c.op(f"bitcast {llvm_type(type)} {value} to {integer}")
    infinite = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000}[type]
    magnitude = c.op(f"and {integer} {raw}, {(1 << bits - 1) - 1}")
    over = c.op(f"icmp eq {integer} {magnitude}, {infinite}")
    lowered = c.op(f"sub {integer} {raw}, 1")
    limited = select(c, over, integer, lowered, raw)
    if type != "bf16":
        limited = c.op(f"bitcast {integer} {limited} to {llvm_type(type)}")
    return canonical(c, type, value, limited)


def _to_tf32(c: Context, value: str) -> str:
    """An f32 with its fraction cut to 10 bits, as the i32 of a tf32."""
    bits = c.op(f"bitcast float {value} to i32")
    if c.has("rna"):
        bias = "4096"
    elif c.has("rz"):
        bias = "0"
    else:
        last = c.op(f"and i32 {c.op(f'lshr i32 {bits}, 13')}, 1")
        bias = c.op(f"add i32 {last}, 4095")
    result = c.op(f"and i32 {c.op(f'add i32 {bits}, {bias}')}, -8192")
    magnitude = c.op(f"and i32 {result}, 2147483647")
    if c.has("satfinite"):
        over = c.op(f"icmp eq i32 {magnitude}, {0x7F800000}")
        result = select(c, over, "i32", c.op(f"sub i32 {result}, 8192"), result)
    if c.has("relu"):
        negative = c.op(f"icmp slt i32 {bits}, 0")
        result = select(c, negative, "i32", "0", result)
    nan = c.op(f"fcmp uno float {value}, {value}")
    return select(c, nan, "i32", str(0x7FFFFFFF), result)
