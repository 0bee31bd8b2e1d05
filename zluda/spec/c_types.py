"""How the driver API's C types lie in memory, as far as they are plain: scalars, handles, structures without unions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from zluda.spec.attributes import device_attributes, function_attributes
from zluda.spec.driver_api import driver_api
from zluda.spec.errors import errors

Kind = Literal["signed", "unsigned", "float", "address", "enum", "text"]

_BASE: dict[str, tuple[Kind, int]] = {
    "char": ("text", 1),
    "unsigned char": ("unsigned", 1),
    "unsigned short": ("unsigned", 2),
    "int": ("signed", 4),
    "unsigned int": ("unsigned", 4),
    "unsigned": ("unsigned", 4),
    "float": ("float", 4),
    "long long": ("signed", 8),
    "unsigned long long": ("unsigned", 8),
    "size_t": ("unsigned", 8),
    "uint32_t": ("unsigned", 4),
    "uint64_t": ("unsigned", 8),
}
_ADDRESSES = ("CUdeviceptr", "CUdeviceptr_v2", "CUdeviceptr_v1")


@dataclass(frozen=True)
class Scalar:
    """A number of `size` bytes; `names` are those of an enumeration's values."""

    kind: Kind
    size: int
    names: dict[int, str] = field(default_factory=dict)

    @property
    def alignment(self) -> int:
        return self.size


@dataclass(frozen=True)
class Member:
    """`count` elements in a row (0: no array) at `offset` bytes."""

    name: str
    type: Scalar | Structure
    offset: int
    count: int

    @property
    def size(self) -> int:
        return self.type.size * max(self.count, 1)


@dataclass(frozen=True)
class Structure:
    members: tuple[Member, ...]
    size: int
    alignment: int


POINTER = Scalar("address", 8)


@cache
def _enums() -> dict[str, dict[int, str]]:
    api = driver_api()
    tables = {e.name: {value: name for name, value in reversed(e.values)} for e in api.enum}
    tables["CUresult"] = {0: "CUDA_SUCCESS"} | {e.code: e.name for e in errors().values()}
    tables["CUdevice_attribute"] = {a.number: a.name for a in device_attributes().values()}
    tables["CUfunction_attribute"] = {a.number: a.name for a in function_attributes().values()}
    return tables


@cache
def _declarations() -> dict[str, str]:
    return {t.name: t.declaration for t in driver_api().type}


@cache
def c_type(name: str) -> Scalar | Structure | None:
    """A type by its name in C; None for what is not plain, or has no size (void)."""
    name = name.removeprefix("const ").strip()
    if name.endswith("*"):
        return POINTER
    if name in _ADDRESSES:
        return Scalar("address", 4 if name == "CUdeviceptr_v1" else 8)
    if name in _BASE:
        return Scalar(*_BASE[name])
    if name in _enums():
        return Scalar("enum", 4, _enums()[name])
    declaration = _declarations().get(name)
    if declaration is None:
        return None
    if f"(*{name})" in declaration:
        return POINTER
    if match := re.fullmatch(rf"struct \w+ \{{ ([^{{}}]*) \}} {name}", declaration):
        return _structure(match[1])
    if match := re.fullmatch(rf"(.+?)\s*{name}", declaration):
        return c_type(match[1]) if "{" not in declaration else None
    return None


def _structure(body: str) -> Structure | None:
    members: list[Member] = []
    at, widest = 0, 1
    for text in body.split(";")[:-1]:
        match = re.fullmatch(r"\s*(.+?[\s*])(\w+)(?:\[(\d+)\])?", text)
        kind = c_type(match[1].strip()) if match else None
        if match is None or kind is None:
            return None
        at = -(-at // kind.alignment) * kind.alignment
        members.append(Member(match[2], kind, at, int(match[3] or 0)))
        at += members[-1].size
        widest = max(widest, kind.alignment)
    return Structure(tuple(members), -(-at // widest) * widest, widest)
