"""What client and driver process share, laid out: structures and commands of spec/protocol.toml and spec/driver_api.

The same layout makes the C header of the client and the `struct` tables of the server, so it is computed in one place.
Structures use C's natural alignment, little-endian; a command is `header`, then its fields, then its tail (if any).
"""

from __future__ import annotations

import hashlib
import re
import struct
import tomllib
from functools import cache
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from zluda.spec import spec_path
from zluda.spec.driver_api import Parameter, driver_api

_CODES = {"u8": "B", "char": "c", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f32": "f"}
_SIZES = {"u8": 1, "char": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "i64": 8, "f32": 4}
_WIRE = {
    "int": "i32",
    "unsigned int": "u32",
    "size_t": "u64",
    "float": "f32",
    "unsigned char": "u8",
    "unsigned short": "u16",
    "unsigned long long": "u64",
    "CUdeviceptr": "u64",
    "CUdevice": "i32",
}


class Field(NamedTuple):
    """A field laid out: `length` elements of a wire type at `offset` (bytes)."""

    type: str
    length: int
    name: str
    offset: int

    @property
    def size(self) -> int:
        return _SIZES[self.type] * self.length


class Layout(NamedTuple):
    """Fields in order, and the whole size in bytes."""

    name: str
    fields: tuple[Field, ...]
    size: int

    def format(self) -> str:
        """For the struct module: one value per field element, but one bytes object per array of char or u8."""
        text, at = "<", 0
        for field in self.fields:
            text += f"{field.offset - at}x" if field.offset > at else ""
            if field.type in ("char", "u8") and field.length > 1:
                text += f"{field.length}s"
            else:
                text += (str(field.length) if field.length > 1 else "") + _CODES[field.type]
            at = field.offset + field.size
        return text + (f"{self.size - at}x" if self.size > at else "")

    def compiled(self) -> struct.Struct:
        return struct.Struct(self.format())

    def offset(self, name: str) -> int:
        """Where a field begins."""
        return next(f.offset for f in self.fields if f.name == name)


class Command(NamedTuple):
    """A command of the ring. `fields.size` is where its tail begins, counted from the end of the header."""

    name: str
    opcode: int
    answer: Literal["call", "post"]
    fields: Layout
    tail: bool
    reply: Layout
    reply_tail: bool


_FieldSpec = tuple[str, str] | tuple[str, str, int]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Structure(_Model):
    name: str
    fields: tuple[_FieldSpec, ...]


class _Command(_Model):
    name: str
    answer: Literal["call", "post"]
    fields: tuple[_FieldSpec, ...] = ()
    tail: bool = False
    reply: tuple[_FieldSpec, ...] = ()
    reply_tail: bool = False


class _File(_Model):
    constants: dict[str, int]
    values: dict[str, int]
    structure: tuple[_Structure, ...]
    command: tuple[_Command, ...]


class Protocol(NamedTuple):
    """The whole protocol; `identity` differs whenever any layout does."""

    constants: dict[str, int]
    structures: dict[str, Layout]
    commands: tuple[Command, ...]
    identity: bytes


def lay_out(name: str, fields: tuple[_FieldSpec, ...], alignment: int = 1) -> Layout:
    """Place fields one after another at their natural alignment, or the greater one they ask for."""
    placed: list[Field] = []
    at, widest = 0, alignment
    for kind, field, *more in fields:
        match = re.fullmatch(r"(\w+?)(?:\[(\d+)\])?", str(kind))
        if match is None or match[1] not in _SIZES:
            raise ValueError(f"spec/protocol.toml: {name}.{field} has no wire type {kind}")
        own = max([_SIZES[match[1]], *(int(m) for m in more)])
        at = -(-at // own) * own
        placed.append(Field(match[1], int(match[2] or 1), str(field), at))
        at += placed[-1].size
        widest = max(widest, own)
    return Layout(name, tuple(placed), -(-at // widest) * widest)


def wire_type(c_type: str) -> str:
    """The wire type of a C parameter that travels by value. Handles are u64, enumerations i32. Raises ValueError."""
    api = driver_api()
    if c_type in _WIRE:
        return _WIRE[c_type]
    if any(h.name == c_type for h in api.handle):
        return "u64"
    if any(e.name == c_type for e in api.enum):
        return "i32"
    raise ValueError(
        f"spec/driver_api: a parameter of type {c_type} cannot travel by value; answer the function locally"
    )


def _fields(parameters: tuple[Parameter, ...], pointed: bool) -> tuple[_FieldSpec, ...]:
    return tuple((wire_type(p.pointed if pointed else p.type), p.name) for p in parameters)


@cache
def protocol() -> Protocol:
    """Constants, structures and commands; opcodes count from 1 in the order of the files."""
    file = _File.model_validate(tomllib.loads(spec_path("protocol.toml").read_text()))
    structures = {s.name: lay_out(s.name, s.fields) for s in file.structure}
    commands: list[Command] = []
    for c in file.command:
        layout, reply = lay_out(c.name, c.fields), lay_out(f"{c.name}_reply", c.reply)
        commands.append(Command(c.name, len(commands) + 1, c.answer, layout, c.tail, reply, c.reply_tail))
    for f in driver_api().function:
        if f.answer != "local":
            layout = lay_out(f.symbol, _fields(f.inputs, False))
            reply = lay_out(f"{f.symbol}_reply", _fields(f.outputs, True))
            commands.append(Command(f.symbol, len(commands) + 1, f.answer, layout, False, reply, False))
    constants = {**file.constants, **file.values}
    text = repr((constants, structures, commands))
    return Protocol(constants, structures, tuple(commands), hashlib.sha256(text.encode()).digest()[:16])
