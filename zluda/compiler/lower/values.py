"""LLVM values of PTX operands: constants, and conversions between the shapes that one register's bits can take."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from zluda.compiler.lower.affine import Affine
from zluda.compiler.lower.writer import FunctionWriter
from zluda.ptx.tree import Float

SHARED = "shared"
"""Stands as a value's type: a generic address known to lie in shared memory, kept as its i64 offset into the block."""

BITS = {
    "i1": 1,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "half": 16,
    "float": 32,
    "double": 64,
    "<2 x half>": 32,
    "<2 x i16>": 32,
    "<2 x float>": 64,
    "<4 x i8>": 32,
}


class Value(NamedTuple):
    """An LLVM value with its type, or an offset into shared memory (type SHARED)."""

    type: str
    name: str
    affine: Affine | None = None
    """What an integer is the sum of; for a pointer or a shared offset, its bytes from `root` (or the block's start)."""
    root: str = ""
    """The pointer that `affine` counts from; empty: this one itself."""

    @property
    def is_pointer(self) -> bool:
        return self.type.startswith("ptr")


def integer_literal(value: int, bits: int) -> str:
    """An integer constant cut to a width, in the signed form LLVM prints."""
    if bits == 1:
        return "true" if value else "false"
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> (bits - 1) else value)


def is_literal(name: str) -> bool:
    return name.lstrip("-").isdigit()


def float_literal(bits: int, width: int) -> str:
    """An LLVM constant of type half, float or double from its bits."""
    if width == 16:
        return f"0xH{bits:04X}"
    if width == 64:
        return f"0x{bits:016X}"
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        wide = sign << 63 | 0x7FF << 52 | fraction << 29
    else:
        wide = int.from_bytes(struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]), "little")
    return f"0x{wide:016X}"


def rounded(constant: Float, width: int) -> int:
    """The bits of a floating-point constant in a format of 16, 32 or 64 bits, to nearest even."""
    if constant.width == width:
        return constant.bits
    code = {16: "e", 32: "f", 64: "d"}
    ints = {16: "H", 32: "I", 64: "Q"}
    value: float = struct.unpack("<" + code[constant.width], struct.pack("<" + ints[constant.width], constant.bits))[0]
    try:
        packed = struct.pack("<" + code[width], value)
    except OverflowError:
        packed = struct.pack("<" + code[width], math.copysign(math.inf, value))
    return int.from_bytes(packed, "little")


def cast(writer: FunctionWriter, value: Value, want: str, signed: bool = False) -> str:
    """Bits of one non-pointer type as another: bitcast, cut when wider, extended when narrower."""
    have = value.type
    if have == want:
        return value.name
    wide, narrow = BITS[have], BITS[want]
    name = value.name
    if is_literal(name) and have[0] == "i" and want[0] == "i":
        number = int(name) if signed else int(name) & (1 << wide) - 1
        return integer_literal(number, narrow)
    if wide == narrow:
        return writer.op(f"bitcast {have} {name} to {want}")
    if have != f"i{wide}":
        name = writer.op(f"bitcast {have} {name} to i{wide}")
    if wide > narrow:
        name = writer.op(f"trunc i{wide} {name} to i{narrow}")
    else:
        name = writer.op(f"{'sext' if signed else 'zext'} i{wide} {name} to i{narrow}")
    if want != f"i{narrow}":
        name = writer.op(f"bitcast i{narrow} {name} to {want}")
    return name
