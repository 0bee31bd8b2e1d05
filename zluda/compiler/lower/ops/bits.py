"""Logic, shifts and bit fields (sections 9.7.1, 9.7.8 and 9.7.9.7)."""

from __future__ import annotations

from zluda.compiler.lower.context import Context, llvm_type, lowers, width
from zluda.compiler.lower.ops._emit import resize, select, signed, sources
from zluda.ptx.tree import Integer, Pair


@lowers("and", "or", "xor")
def logic(c: Context) -> None:
    type = c.type
    a, b = sources(c, type)
    c.set(c.operands[0], type, c.op(f"{c.name} {llvm_type(type)} {a}, {b}"))


@lowers("not")
def invert(c: Context) -> None:
    type = c.type
    (a,) = sources(c, type)
    ones = "true" if type == "pred" else "-1"
    c.set(c.operands[0], type, c.op(f"xor {llvm_type(type)} {a}, {ones}"))


@lowers("cnot")
def cnot(c: Context) -> None:
    type = c.type
    llvm = llvm_type(type)
    (a,) = sources(c, type)
    zero = c.op(f"icmp eq {llvm} {a}, 0")
    c.set(c.operands[0], type, c.op(f"zext i1 {zero} to {llvm}"))


@lowers("lop3")
def lop3(c: Context) -> None:
    boolean = next((m for m in c.mods if m in ("and", "or")), None)
    table = c.operands[4]
    if not isinstance(table, Integer):
        c.unsupported("the table of lop3 is not a constant")
    a, b, third = (c.get(operand, "b32") for operand in c.operands[1:4])
    with_a, without_a = _two(c, table.value >> 4 & 15, b, third), _two(c, table.value & 15, b, third)
    if with_a == without_a:
        value = with_a
    else:
        value = c.op(f"and i32 {a}, {with_a}")
        not_a = c.op(f"xor i32 {a}, -1")
        value = c.op(f"or i32 {value}, {c.op(f'and i32 {not_a}, {without_a}')}")
    d = c.operands[0]
    if boolean is None:
        c.set(d, "b32", value)
        return
    if not isinstance(d, Pair):
        c.unsupported("lop3 with a boolean operation has two destinations")
    nonzero = c.op(f"icmp ne i32 {value}, 0")
    predicate = c.op(f"{boolean} i1 {nonzero}, {c.get(c.operands[5], 'pred')}")
    c.set(d.first, "b32", value)
    c.set(d.second, "pred", predicate)


def _two(c: Context, table: int, b: str, third: str) -> str:
    """A boolean function of two values; bit 2*b+c of its table is the result."""

    def inverse(value: str) -> str:
        return c.op(f"xor i32 {value}, -1")

    match table:
        case 0b0000:
            return "0"
        case 0b1111:
            return "-1"
        case 0b1100:
            return b
        case 0b1010:
            return third
        case 0b1000:
            return c.op(f"and i32 {b}, {third}")
        case 0b1110:
            return c.op(f"or i32 {b}, {third}")
        case 0b0110:
            return c.op(f"xor i32 {b}, {third}")
        case 0b0100:
            return c.op(f"and i32 {b}, {inverse(third)}")
        case 0b0010:
            return c.op(f"and i32 {inverse(b)}, {third}")
        case _:
            return inverse(_two(c, table ^ 15, b, third))


# --- shifts -----------------------------------------------------------------------------------------


def _amount(c: Context, value: str, bits: int) -> str:
    return resize(c, value, 32, bits, False)


def shift(c: Context, how: str, bits: int, value: str, amount: str) -> str:
    """`shl`, `lshr` or `ashr` by an i32 amount; an amount past the width shifts everything out."""
    llvm = f"i{bits}"
    if how == "ashr":
        over = c.op(f"icmp ugt i32 {amount}, {bits - 1}")
        return c.op(f"ashr {llvm} {value}, {_amount(c, select(c, over, 'i32', str(bits - 1), amount), bits)}")
    inside = c.op(f"and i32 {amount}, {bits - 1}")
    shifted = c.op(f"{how} {llvm} {value}, {_amount(c, inside, bits)}")
    over = c.op(f"icmp ugt i32 {amount}, {bits - 1}")
    return select(c, over, llvm, "0", shifted)


@lowers("shl", "shr")
def shl_shr(c: Context) -> None:
    type = c.type
    bits = width(type)
    how = "shl" if c.name == "shl" else "ashr" if signed(type) else "lshr"
    a, amount = c.get(c.operands[1], type), c.operands[2]
    if isinstance(amount, Integer):
        count = amount.value & 0xFFFFFFFF
        if count < bits:
            value = c.op(f"{how} i{bits} {a}, {count}")
        else:
            value = c.op(f"ashr i{bits} {a}, {bits - 1}") if how == "ashr" else "0"
    else:
        value = shift(c, how, bits, a, c.get(amount, "u32"))
    c.set(c.operands[0], type, value)


@lowers("shf")
def funnel(c: Context) -> None:
    a, b, amount = sources(c, "b32")
    if c.has("clamp"):
        over = c.op(f"icmp ugt i32 {amount}, 32")
        count = select(c, over, "i32", "32", amount)
    else:
        count = c.op(f"and i32 {amount}, 31")
    high = c.op(f"shl i64 {resize(c, b, 32, 64, False)}, 32")
    both = c.op(f"or i64 {high}, {resize(c, a, 32, 64, False)}")
    wide = resize(c, count, 32, 64, False)
    if c.has("l"):
        value = c.op(f"lshr i64 {c.op(f'shl i64 {both}, {wide}')}, 32")
    else:
        value = c.op(f"lshr i64 {both}, {wide}")
    c.set(c.operands[0], "b32", c.op(f"trunc i64 {value} to i32"))


# --- counting and finding ---------------------------------------------------------------------------


def _count(c: Context, how: str, bits: int, value: str) -> str:
    """`ctpop`, or `ctlz` and `cttz` that are defined at zero, as an i32."""
    llvm = f"i{bits}"
    extra = () if how == "ctpop" else (("i1", "false"),)
    return resize(c, c.intrinsic(f"llvm.{how}.{llvm}", llvm, (llvm, value), *extra), bits, 32, False)


@lowers("popc", "clz")
def count(c: Context) -> None:
    type = c.type
    (a,) = sources(c, type)
    c.set(c.operands[0], "u32", _count(c, "ctpop" if c.name == "popc" else "ctlz", width(type), a))


@lowers("bfind")
def bfind(c: Context) -> None:
    type = c.type
    bits = width(type)
    llvm = f"i{bits}"
    (a,) = sources(c, type)
    if signed(type):
        a = c.op(f"xor {llvm} {a}, {c.op(f'ashr {llvm} {a}, {bits - 1}')}")
    none = c.op(f"icmp eq {llvm} {a}, 0")
    zeros = _count(c, "ctlz", bits, a)
    found = zeros if c.has("shiftamt") else c.op(f"sub i32 {bits - 1}, {zeros}")
    c.set(c.operands[0], "u32", select(c, none, "i32", "-1", found))


@lowers("fns")
def fns(c: Context) -> None:
    mask, base, offset = sources(c, "b32")
    base = c.op(f"and i32 {base}, 31")
    backward = c.op(f"icmp slt i32 {offset}, 0")
    # Backwards is forwards in the reversed word.
    word = select(c, backward, "i32", reverse32(c, mask), mask)
    start = select(c, backward, "i32", c.op(f"sub i32 31, {base}"), base)
    rest = c.op(f"and i32 {word}, {c.op(f'shl i32 -1, {start}')}")
    here = c.op(f"and i32 {word}, {c.op(f'shl i32 1, {start}')}")
    still = c.op(f"icmp eq i32 {offset}, 0")
    rest = select(c, still, "i32", here, rest)
    distance = select(c, backward, "i32", c.op(f"sub i32 0, {offset}"), offset)
    left = select(c, still, "i32", "0", c.op(f"sub i32 {distance}, 1"))
    found = c.op(f"icmp ult i32 {left}, {_count(c, 'ctpop', 32, rest)}")
    position = "0"
    for step in (16, 8, 4, 2, 1):
        low = c.op(f"and i32 {rest}, {(1 << step) - 1}")
        inside = _count(c, "ctpop", 32, low)
        beyond = c.op(f"icmp uge i32 {left}, {inside}")
        left = c.op(f"sub i32 {left}, {select(c, beyond, 'i32', inside, '0')}")
        position = c.op(f"add i32 {position}, {select(c, beyond, 'i32', str(step), '0')}")
        rest = select(c, beyond, "i32", c.op(f"lshr i32 {rest}, {step}"), rest)
    position = select(c, backward, "i32", c.op(f"sub i32 31, {position}"), position)
    c.set(c.operands[0], "b32", select(c, found, "i32", position, "-1"))


def reverse32(c: Context, value: str) -> str:
    """The bits of an i32 in reverse; without LLVM's intrinsic, which needs an extension of SPIR-V."""
    for step, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        high = c.op(f"and i32 {c.op(f'lshr i32 {value}, {step}')}, {mask}")
        low = c.op(f"shl i32 {c.op(f'and i32 {value}, {mask}')}, {step}")
        value = c.op(f"or i32 {high}, {low}")
    return c.intrinsic("llvm.bswap.i32", "i32", ("i32", value))


@lowers("brev")
def brev(c: Context) -> None:
    type = c.type
    (a,) = sources(c, type)
    if width(type) == 32:
        value = reverse32(c, a)
    else:
        low = reverse32(c, c.op(f"trunc i64 {c.op(f'lshr i64 {a}, 32')} to i32"))
        high = reverse32(c, c.op(f"trunc i64 {a} to i32"))
        raised = c.op(f"shl i64 {resize(c, high, 32, 64, False)}, 32")
        value = c.op(f"or i64 {raised}, {resize(c, low, 32, 64, False)}")
    c.set(c.operands[0], type, value)


# --- fields -----------------------------------------------------------------------------------------


@lowers("bfe")
def bfe(c: Context) -> None:
    type = c.type
    bits, sign = width(type), signed(type)
    llvm = f"i{bits}"
    a = c.get(c.operands[1], type)
    position, length = (c.op(f"and i32 {c.get(operand, 'u32')}, 255") for operand in c.operands[2:4])
    how = "ashr" if sign else "lshr"
    moved = shift(c, how, bits, a, position)
    whole = c.op(f"icmp ugt i32 {length}, {bits}")
    kept = select(c, whole, "i32", str(bits), length)
    gap = c.op(f"and i32 {c.op(f'sub i32 {bits}, {kept}')}, {bits - 1}")
    count = resize(c, gap, 32, bits, False)
    value = c.op(f"{how} {llvm} {c.op(f'shl {llvm} {moved}, {count}')}, {count}")
    empty = c.op(f"icmp eq i32 {length}, 0")
    c.set(c.operands[0], type, select(c, empty, llvm, "0", value))


@lowers("bfi")
def bfi(c: Context) -> None:
    type = c.type
    bits = width(type)
    llvm = f"i{bits}"
    a, b = (c.get(operand, type) for operand in c.operands[1:3])
    position, length = (c.op(f"and i32 {c.get(operand, 'u32')}, 255") for operand in c.operands[3:5])
    ones = c.op(f"xor {llvm} {shift(c, 'shl', bits, '-1', length)}, -1")
    mask = shift(c, "shl", bits, ones, position)
    inserted = c.op(f"and {llvm} {shift(c, 'shl', bits, a, position)}, {mask}")
    kept = c.op(f"and {llvm} {b}, {c.op(f'xor {llvm} {mask}, -1')}")
    c.set(c.operands[0], type, c.op(f"or {llvm} {kept}, {inserted}"))


@lowers("bmsk")
def bmsk(c: Context) -> None:
    a, b = sources(c, "b32")
    if c.has("clamp"):
        start = shift(c, "shl", 32, "-1", a)
        length = b
    else:
        a = c.op(f"and i32 {a}, 31")
        start = c.op(f"shl i32 -1, {a}")
        length = c.op(f"and i32 {b}, 31")
    # Everything from a on, less everything from a + length on; in 64 bits nothing wraps.
    wide_end = c.op(f"add i64 {resize(c, a, 32, 64, False)}, {resize(c, length, 32, 64, False)}")
    over = c.op(f"icmp ugt i64 {wide_end}, 31")
    end = c.op(f"and i32 {c.op(f'trunc i64 {wide_end} to i32')}, 31")
    beyond = select(c, over, "i32", "0", c.op(f"shl i32 -1, {end}"))
    c.set(c.operands[0], "b32", c.op(f"and i32 {start}, {c.op(f'xor i32 {beyond}, -1')}"))


@lowers("szext")
def szext(c: Context) -> None:
    type = c.type
    a, length = c.get(c.operands[1], type), c.get(c.operands[2], "u32")
    if c.has("clamp"):
        whole = c.op(f"icmp ugt i32 {length}, 32")
        length = select(c, whole, "i32", "32", length)
    else:
        length = c.op(f"and i32 {length}, 31")
    gap = c.op(f"and i32 {c.op(f'sub i32 32, {length}')}, 31")
    how = "ashr" if signed(type) else "lshr"
    value = c.op(f"{how} i32 {c.op(f'shl i32 {a}, {gap}')}, {gap}")
    empty = c.op(f"icmp eq i32 {length}, 0")
    c.set(c.operands[0], type, select(c, empty, "i32", "0", value))


# --- prmt -------------------------------------------------------------------------------------------

_SELECTORS = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""The general form's selector for each value of c[1:0] (the table of prmt's modes)."""


@lowers("prmt")
def prmt(c: Context) -> None:
    a, b = (c.get(operand, "b32") for operand in c.operands[1:3])
    control = c.operands[3]
    mode = next((m for m in c.mods if m in _SELECTORS), None)
    if isinstance(control, Integer):
        fixed = _SELECTORS[mode][control.value & 3] if mode else control.value & 0xFFFF
        c.set(c.operands[0], "b32", _permute_fixed(c, a, b, fixed))
        return
    selector = c.get(control, "b32")
    if mode:
        packed = sum(pattern << 16 * index for index, pattern in enumerate(_SELECTORS[mode]))
        packed -= (packed >> 63) << 64
        index = c.op(f"shl i32 {c.op(f'and i32 {selector}, 3')}, 4")
        selector = c.op(f"trunc i64 {c.op(f'lshr i64 {packed}, {resize(c, index, 32, 64, False)}')} to i32")
    high = c.op(f"shl i64 {resize(c, b, 32, 64, False)}, 32")
    source = c.op(f"or i64 {high}, {resize(c, a, 32, 64, False)}")
    result = ""
    for byte in range(4):
        nibble = c.op(f"lshr i32 {selector}, {4 * byte}") if byte else selector
        at = c.op(f"shl i32 {c.op(f'and i32 {nibble}, 7')}, 3")
        moved = c.op(f"lshr i64 {source}, {resize(c, at, 32, 64, False)}")
        value = c.op(f"and i32 {c.op(f'trunc i64 {moved} to i32')}, 255")
        if not mode:
            value = _replicate(c, value, c.op(f"and i32 {nibble}, 8"))
        value = c.op(f"shl i32 {value}, {8 * byte}") if byte else value
        result = c.op(f"or i32 {result}, {value}") if result else value
    c.set(c.operands[0], "b32", result)


def _replicate(c: Context, byte: str, wanted: str) -> str:
    """The byte, or its sign bit eight times when `wanted` is not zero."""
    top = c.op(f"ashr i32 {c.op(f'shl i32 {byte}, 24')}, 31")
    sign = c.op(f"and i32 {top}, 255")
    return select(c, c.op(f"icmp ne i32 {wanted}, 0"), "i32", sign, byte)


def _permute_fixed(c: Context, a: str, b: str, selector: int) -> str:
    """prmt with a constant selector: each run of neighbouring bytes of one source moves as a whole."""
    result = ""
    byte = 0
    while byte < 4:
        nibble = selector >> 4 * byte & 15
        source, at = (b if nibble & 4 else a), nibble & 3
        if nibble & 8:
            value = c.op(f"ashr i32 {c.op(f'shl i32 {source}, {24 - 8 * at}') if at < 3 else source}, 31")
            length = 1
        else:
            length = 1
            while byte + length < 4 and at + length < 4 and selector >> 4 * (byte + length) & 15 == nibble + length:
                length += 1
            value = source
            if at != byte:
                how, distance = ("shl", byte - at) if byte > at else ("lshr", at - byte)
                value = c.op(f"{how} i32 {source}, {8 * distance}")
        mask = ((1 << 8 * length) - 1) << 8 * byte
        if length < 4:
            value = c.op(f"and i32 {value}, {mask - (mask >> 31 << 32)}")
        result = c.op(f"or i32 {result}, {value}") if result else value
        byte += length
    return result
