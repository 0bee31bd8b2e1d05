"""Small pieces of IR that instruction handlers share: constants, bit casts, saturation, flushing, packed types."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from zluda.compiler.lower.context import Context, llvm_type, width
from zluda.compiler.target.base import Target

FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})

PACKED: Final = {
    "f16x2": "f16",
    "bf16x2": "bf16",
    "u16x2": "u16",
    "s16x2": "s16",
    "f32x2": "f32",
}
"""Packed types of two elements, with their elements' type."""

NAN: Final = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FFFFFFFFFFFFFFF}
"""Bits of the canonical NaN (sections 9.7.3 and 9.7.4)."""


def target(c: Context) -> Target:
    """The whole target, of which the structural half knows a part."""
    return c.target


def signed(type: str) -> bool:
    return type[0] == "s"


def is_float(type: str) -> bool:
    return type in FLOATS


def integer_of(type: str) -> str:
    """The LLVM integer type as wide as a PTX type."""
    return f"i{width(type)}"


def double_bits(value: float) -> int:
    return int.from_bytes(struct.pack(">d", value), "big")


def real(llvm: str, value: float) -> str:
    """A constant of `half`, `float` or `double`; the value must be one of that type."""
    if llvm == "half":
        return f"0xH{int.from_bytes(struct.pack('>e', value), 'big'):04X}"
    return f"0x{double_bits(value):016X}"


def constant_bits(type: str, bits: int) -> str:
    """A constant of a PTX floating-point type by its bits, as `Context.get` would return it."""
    if type == "f64":
        return f"0x{bits:016X}"
    if type == "f16":
        return f"0xH{bits:04X}"
    if type == "bf16":
        return str(bits)
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        # LLVM writes a float as the double of the same value; a NaN keeps its payload at the top.
        return f"0x{(bits >> 31) << 63 | 0x7FF << 52 | fraction << 29:016X}"
    value: float = struct.unpack(">f", struct.pack(">I", bits))[0]
    return f"0x{double_bits(value):016X}"


MASK64: Final = 2**64 - 1


def constant_of(value: str) -> int | None:
    """Bits, as a double's, of a `float` or `double` constant; None for what is not known to be one."""
    if value == "0.0":
        return 0
    return int(value, 16) if value.startswith("0x") and value[2] not in "HKLMR" else None


def to_bits(c: Context, type: str, value: str) -> str:
    """The bits of a value of a PTX type as an integer."""
    llvm = llvm_type(type)
    return value if llvm == integer_of(type) else c.op(f"bitcast {llvm} {value} to {integer_of(type)}")


def from_bits(c: Context, type: str, value: str) -> str:
    """The value of a PTX type that has these bits."""
    llvm = llvm_type(type)
    return value if llvm == integer_of(type) else c.op(f"bitcast {integer_of(type)} {value} to {llvm}")


def select(c: Context, condition: str, llvm: str, then: str, otherwise: str) -> str:
    return c.op(f"select i1 {condition}, {llvm} {then}, {llvm} {otherwise}")


def resize(c: Context, value: str, bits: int, to: int, sign: bool) -> str:
    """An integer cut or extended to another width."""
    if bits == to:
        return value
    how = "trunc" if to < bits else "sext" if sign else "zext"
    return c.op(f"{how} i{bits} {value} to i{to}")


_FLUSHED: WeakKeyDictionary[Context, set[str]] = WeakKeyDictionary()
"""Values of each function that are known not to be subnormal."""


def not_subnormal(c: Context, value: str) -> bool:
    """Whether a value is known to be zero, normal, infinite or NaN."""
    constant = constant_of(value)
    if constant is not None:
        return not 0 < constant & MASK64 >> 1 < double_bits(2.0**-126)
    return value in _FLUSHED.get(c, ())


def remember_flushed(c: Context, value: str) -> str:
    """Notes that a value is not subnormal, so that it need not be flushed again."""
    _FLUSHED.setdefault(c, set()).add(value)
    return value


def flush(c: Context, type: str, value: str) -> str:
    """A subnormal becomes zero of the same sign (.ftz)."""
    if type == "f64" or not_subnormal(c, value):
        return value
    llvm, integer = llvm_type(type), integer_of(type)
    exponent, sign = {"f32": (0x7F800000, 0x80000000), "f16": (0x7C00, 0x8000), "bf16": (0x7F80, 0x8000)}[type]
    bits = to_bits(c, type, value)
    masked = c.op(f"and {integer} {bits}, {exponent}")
    small = c.op(f"icmp eq {integer} {masked}, 0")
    zero = from_bits(c, type, c.op(f"and {integer} {bits}, {sign}"))
    return remember_flushed(c, select(c, small, llvm, zero, value))


def flushed(c: Context, type: str, *values: str) -> list[str]:
    """The values, flushed when the instruction says .ftz."""
    return [flush(c, type, value) for value in values] if c.has("ftz") else list(values)


def saturate(c: Context, llvm: str, value: str) -> str:
    """Clamps a `half`, `float` or `double` to [0.0, 1.0]; NaN and -0.0 become +0.0 (.sat)."""
    zero, one = real(llvm, 0.0), real(llvm, 1.0)
    positive = c.op(f"fcmp ogt {llvm} {value}, {zero}")
    value = select(c, positive, llvm, value, zero)
    below = c.op(f"fcmp olt {llvm} {value}, {one}")
    return select(c, below, llvm, value, one)


def split(c: Context, type: str, value: str) -> tuple[str, str]:
    """The elements of a packed value, low one first."""
    llvm = llvm_type(type)
    return c.op(f"extractelement {llvm} {value}, i32 0"), c.op(f"extractelement {llvm} {value}, i32 1")


def join(c: Context, type: str, low: str, high: str) -> str:
    """A packed value from its elements."""
    llvm, element = llvm_type(type), llvm_type(PACKED[type])
    half = c.op(f"insertelement {llvm} undef, {element} {low}, i32 0")
    return c.op(f"insertelement {llvm} {half}, {element} {high}, i32 1")


def elementwise(c: Context, type: str, values: Sequence[str], apply: Callable[[str, Sequence[str]], str]) -> str:
    """Applies a function of (element type, values) to a value, or to both halves of a packed one."""
    if type not in PACKED:
        return apply(type, values)
    element = PACKED[type]
    halves = [split(c, type, value) for value in values]
    return join(c, type, *(apply(element, [half[index] for half in halves]) for index in (0, 1)))


def sources(c: Context, type: str, first: int = 1) -> list[str]:
    """The values of all operands from `first` on, in one type."""
    return [c.get(operand, type) for operand in c.operands[first:]]


def need_fp64(c: Context) -> None:
    c.kernel_needs("fp64")
