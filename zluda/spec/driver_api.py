"""The entry points of the CUDA driver API and their C types, read from spec/driver_api/*.toml.

types.toml has the numbers that the project's own code uses, header.toml all else that cuda.h declares, unbuilt.toml the
entry points that only say that they are not built, each other file those of an area (`header`, at its top, names the C
header they are declared in where that is not cuda.h). tools/driver_api makes header.toml
and unbuilt.toml, and checks the others against NVIDIA's cuda.h. An entry point is one exported symbol:

    [[function]]
    name = "cuMemAlloc"             # what cuGetProcAddress is asked for
    symbol = "cuMemAlloc_v2"        # what is exported; the name if absent
    since = 3020                    # the CUDA version this form came with: 1000 * major + 10 * minor
    per_thread = "ptsz"             # has a variant (suffix _ptsz or _ptds) whose default stream is the thread's own
    implicit_stream = true          # the stream is no parameter, but the body is told which is the default
    answer = "local"                # local: a body in zluda/client/src; call, post: generated, through the ring
    context = "current"             # what must be there first: none, init (cuInit), current (a current context)
    capture = "unsafe"              # stream capture cannot see what it does
    parameters = [{ name = "dptr", type = "CUdeviceptr *", direction = "out", optional = true }, …]
"""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from zluda.spec import spec_path


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Parameter(_Model):
    """A C parameter. `out` pointers that are not `optional` must not be null."""

    name: str
    type: str
    direction: Literal["in", "out", "inout"] = "in"
    optional: bool = False
    values: tuple[int, ...] = ()
    """All that is allowed, where the client can tell; anything else is CUDA_ERROR_INVALID_VALUE."""

    @property
    def pointed(self) -> str:
        """The type an out pointer points to."""
        return self.type.removesuffix("*").rstrip()

    @property
    def declaration(self) -> str:
        return f"{self.type}{'' if self.type.endswith('*') else ' '}{self.name}"


class Function(_Model):
    """One exported symbol."""

    name: str
    symbol: str = ""
    since: int
    per_thread: Literal["", "ptsz", "ptds"] = ""
    implicit_stream: bool = False
    answer: Literal["local", "call", "post"]
    context: Literal["none", "init", "current"] = "current"
    support: Literal["full", "partial", "none"] = "full"
    header: str = ""
    """The C header that declares it, where that is not cuda.h."""
    capture: Literal["", "unsafe"] = ""
    """Unsafe: forbidden while streams are captured, unless the modes of thread and capture allow it."""
    note: str = ""
    """What is missing, where support is partial; why there is none, where that is not just that nobody has built it."""
    parameters: tuple[Parameter, ...]

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: dict[str, object]) -> dict[str, object]:
        data.setdefault("symbol", data["name"])
        if data.get("per_thread") == "ptds":
            data.setdefault("implicit_stream", True)
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.support == "partial" and not self.note:
            raise ValueError(f"{self.symbol}: say what is missing in `note`")
        if self.answer == "post" and any(p.direction != "in" for p in self.parameters):
            raise ValueError(f"{self.symbol}: a posted command gives nothing back")
        return self

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.direction != "out")

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.direction != "in")


class Type(_Model):
    """A C type other than an enumeration: what follows `typedef` (all of it, for one without a name)."""

    name: str
    declaration: str


class Enum(_Model):
    name: str
    header: str = ""
    values: tuple[tuple[str, int], ...]


class Constant(_Model):
    name: str
    value: str


class DriverApi(_Model):
    """The whole of spec/driver_api."""

    version: int
    type: tuple[Type, ...]
    """Each after those it is made of."""
    constant: tuple[Constant, ...]
    enum: tuple[Enum, ...]
    function: tuple[Function, ...]
    plain: dict[str, str]
    """The symbol that a name stands for in C programs, where it is another: not always the newest form."""

    @model_validator(mode="after")
    def _unique(self) -> Self:
        symbols = Counter(f.symbol for f in self.function)
        if twice := [symbol for symbol, count in symbols.items() if count > 1]:
            raise ValueError(f"declared twice: {', '.join(twice)}")
        return self

    def values(self, enum: str) -> dict[str, int]:
        """The values of an enumeration by name."""
        return dict(next(e for e in self.enum if e.name == enum).values)


@cache
def driver_api() -> DriverApi:
    """The specification, validated. Raises pydantic's ValidationError, which names the entry and the field."""
    merged: dict[str, Any] = {}
    for path in sorted(spec_path("driver_api").glob("*.toml")):
        content = tomllib.loads(path.read_text())
        if header := content.pop("header", ""):
            for entry in (*content.get("enum", ()), *content.get("function", ())):
                entry["header"] = header
        for kind, entries in content.items():
            merged[kind] = merged.get(kind, []) + entries if isinstance(entries, list) else entries
    return DriverApi.model_validate(merged)
