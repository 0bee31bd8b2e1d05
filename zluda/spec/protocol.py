"""What client and driver process share, laid out: structures and commands of spec/protocol.toml and spec/driver_api.

The same layout makes the C header of the client and the `struct` tables of the server, so it is computed in one place.
Structures use C's natural alignment, little-endian; a command is `header`, then its fields, then its tail (if any).
"""

from __future__ import annotations

import hashlib
import re
import struct
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from zluda.spec import spec_path
from zluda.spec.types import types

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


_FieldSpec = Sequence[Any]
"""[type, name] or [type, name, alignment]."""


class _Structure(NamedTuple):
    name: str
    fields: Sequence[_FieldSpec]


class _Command(NamedTuple):
    name: str
    answer: Literal["call", "post"]
    fields: Sequence[_FieldSpec] = ()
    tail: bool = False
    reply: Sequence[_FieldSpec] = ()
    reply_tail: bool = False


class _Function(NamedTuple):
    """What matters here of an entry point; `zluda.spec.driver_api` has, and validates, the whole."""

    symbol: str
    answer: Literal["call", "post"]
    inputs: Sequence[_FieldSpec]
    outputs: Sequence[_FieldSpec]


class Protocol(NamedTuple):
    """The whole protocol; `identity` differs whenever any layout does."""

    constants: dict[str, int]
    structures: dict[str, Layout]
    commands: tuple[Command, ...]
    identity: bytes


def lay_out(name: str, fields: Sequence[_FieldSpec], alignment: int = 1) -> Layout:
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


_HANDLES = ("CUcontext", "CUmodule", "CUfunction", "CUlibrary", "CUkernel", "CUstream", "CUevent")


@cache
def _wire_types() -> dict[str, str]:
    """Wire types of C types that travel by value: handles are u64, enumerations i32."""
    named = dict.fromkeys(_HANDLES, "u64") | {e["name"]: "i32" for e in types()["enum"]}
    return _WIRE | {"CUresult": "i32", "CUdevice_attribute": "i32", "CUfunction_attribute": "i32"} | named


def wire_type(c_type: str) -> str:
    """The wire type of a C parameter that travels by value. Raises ValueError for another."""
    try:
        return _wire_types()[c_type]
    except KeyError:
        raise ValueError(f"spec/driver_api: a {c_type} cannot travel by value; answer the function locally") from None


def _functions() -> Iterator[_Function]:
    """The entry points that are commands of their own."""
    for path in sorted(spec_path("driver_api").glob("*.toml")):
        text = path.read_text()
        # Reading TOML is slow, and most files have none.
        for entry in tomllib.loads(text).get("function", ()) if re.search(r'"(call|post)"', text) else ():
            if entry["answer"] != "local":
                inputs, outputs = [], []
                for p in entry["parameters"]:
                    if p.get("direction", "in") != "out":
                        inputs.append((wire_type(p["type"]), p["name"]))
                    if p.get("direction", "in") != "in":
                        outputs.append((wire_type(p["type"].removesuffix("*").rstrip()), p["name"]))
                yield _Function(entry.get("symbol", entry["name"]), entry["answer"], inputs, outputs)


@cache
def protocol() -> Protocol:
    """Constants, structures and commands; opcodes count from 1 in the order of the files.

    Every driver process reads this while its program waits in cuInit, so it does without pydantic. Raises ValueError,
    KeyError or TypeError for what the form does not allow.
    """
    file = tomllib.loads(spec_path("protocol.toml").read_text())
    structures = {s.name: lay_out(s.name, s.fields) for s in (_Structure(**t) for t in file["structure"])}
    commands: list[Command] = []
    for c in (_Command(**t) for t in file["command"]):
        layout, reply = lay_out(c.name, c.fields), lay_out(f"{c.name}_reply", c.reply)
        commands.append(Command(c.name, len(commands) + 1, c.answer, layout, c.tail, reply, c.reply_tail))
    for f in _functions():
        layout, reply = lay_out(f.symbol, f.inputs), lay_out(f"{f.symbol}_reply", f.outputs)
        commands.append(Command(f.symbol, len(commands) + 1, f.answer, layout, False, reply, False))
    constants = {**file["constants"], **file["values"]}
    text = repr((constants, structures, commands))
    return Protocol(constants, structures, tuple(commands), hashlib.sha256(text.encode()).digest()[:16])
