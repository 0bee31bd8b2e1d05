"""The conformance cases of spec/conformance/*.toml: what a file may say, and reading it.

A file is one group of cases:

    format = 1
    group = "integer"
    [data]                       # texts that several arguments share, as "$name"
    [[case]]
    id = "integer.add.s32"       # group, then what is tested
    tier = "smoke"               # smoke, verify or exhaustive; smoke if absent
    needs = ["fp64"]             # capability ids; a device without them is `unsupported`, not wrong
    section = "9.7.1.1"          # of the PTX ISA 9.0 manual
    ptx = "ptx/integer_add.ptx"  # beside the file; or the text itself as `text`
    kernel = "add_s32"
    grid = [1]                   # one to three dimensions
    block = [64]
    shared = 0                   # bytes of dynamic shared memory
    [[case.argument]]            # in the order of the kernel's parameters
    kind = "in"                  # value, in, out, inout
    type = "s32"
    bits = "..."                 # what goes in
    expected = "..."             # what comes out

Bits are written as `zluda.testing.portable.bits` says. Expected values come from generators in tools/conformance that
share no code with the compiler.
"""

from __future__ import annotations

import tomllib
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

FORMAT = 1


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tier(Enum):
    """How often a case runs: on every push, when a device's capabilities are verified, before releases."""

    SMOKE = "smoke"
    VERIFY = "verify"
    EXHAUSTIVE = "exhaustive"


class Group(Enum):
    """What part of the machine a case is about."""

    INTEGER = "integer"
    BITS = "bits"
    FLOAT = "float"
    HALF = "half"
    MATH = "math"
    CONVERT = "convert"
    COMPARE = "compare"
    MEMORY = "memory"
    SHARED = "shared"
    BARRIER = "barrier"
    WARP = "warp"
    ATOMICS = "atomics"
    CALLS = "calls"
    CONTROL = "control"
    SPECIAL = "special"


ElementType = Literal[
    "b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64"
]
"""Of bits and differences; in a floating-point type every NaN is as good as the one that is expected."""

Bits = str
"""Elements in hexadecimal, or `$name` of the file's data."""


class ArgumentSpec(_Model):
    """One kernel parameter."""

    kind: Literal["value", "in", "out", "inout"]
    """`value`: its bytes are passed. Else the address of a buffer: `in` must come back as it was, `out` is poisoned
    before the launch, `inout` goes in and comes out. Guard bytes around every buffer must stay intact."""
    type: ElementType
    name: str = ""
    """For messages."""
    bits: Bits = ""
    """What a value, `in` or `inout` holds."""
    expected: Bits = ""
    """What `out` and `inout` must hold after the launch; `-` where anything may stand."""
    mask: Bits = ""
    """Bits that count, for each element of `expected`; absent: all."""
    passed: bool = True
    """False: a buffer that is no parameter; its address stands in other arguments. Such come last."""
    align: int = 0
    """Alignment of a value in the parameter block, in bytes; 0: that of its elements."""
    ulp: int = Field(default=0, ge=0)
    """Units in the last place that a result may be off, where the ISA allows an approximation."""
    absolute: float = Field(default=0.0, ge=0)
    relative: float = Field(default=0.0, ge=0)
    """Absolute and relative error that a result may have; the largest of the three bounds counts."""
    order: Literal["exact", "any"] = "exact"
    """`any`: the elements may stand in any order (what threads get from atomics)."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        has_input, has_output = self.kind != "out", self.kind in ("out", "inout")
        if bool(self.bits) != has_input:
            raise ValueError(f"{self.kind} {'needs' if has_input else 'takes no'} bits")
        if bool(self.expected) != has_output:
            raise ValueError(f"{self.kind} {'needs' if has_output else 'takes no'} expected")
        if (self.ulp or self.absolute or self.relative) and "f" not in self.type:
            raise ValueError("a tolerance is for floating-point types")
        if self.order == "any" and ("-" in self.expected.split() or self.mask):
            raise ValueError("order 'any' takes neither masks nor elements that may be anything")
        return self


Extent = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=3)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_$%][\w$]*$")]


class CaseSpec(_Model):
    """One kernel, one launch, the bits that must come out."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z]+(\.[a-z0-9_]+)+$")]
    tier: Tier = Tier.SMOKE
    needs: tuple[str, ...] = ()
    section: Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]
    note: str = ""
    ptx: str | None = None
    text: str | None = None
    kernel: Name
    grid: Extent
    block: Extent
    shared: int = Field(default=0, ge=0)
    argument: tuple[ArgumentSpec, ...]

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.ptx is None) == (self.text is None):
            raise ValueError("a case has either ptx (a file) or text")
        return self


class ConformanceFile(_Model):
    """One file of spec/conformance."""

    format: Literal[1]
    group: Group
    data: dict[str, Bits] = {}
    case: tuple[CaseSpec, ...]

    @model_validator(mode="after")
    def _names(self) -> Self:
        seen: set[str] = set()
        for case in self.case:
            if case.id in seen:
                raise ValueError(f"two cases are called {case.id}")
            seen.add(case.id)
            if not case.id.startswith(f"{self.group.value}."):
                raise ValueError(f"{case.id} stands in group {self.group.value}")
            for argument in case.argument:
                for text in (argument.bits, argument.expected, argument.mask):
                    if text.startswith("$") and text[1:] not in self.data:
                        raise ValueError(f"{case.id} names {text}, which the file's data lacks")
        return self


@cache
def folder() -> Path:
    """Where the cases are: spec/conformance of the work tree, or the package's copy of it."""
    package = Path(__file__).resolve().parent
    for candidate in (package / "data" / "conformance", package.parents[1] / "spec" / "conformance"):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"spec/conformance is neither in {package / 'data'} nor in {package.parents[1] / 'spec'}")


def files() -> list[Path]:
    """The files of cases, by name."""
    return sorted(folder().glob("*.toml"))


def read(path: Path) -> ConformanceFile:
    """A file, validated. Raises pydantic's ValidationError, which names the case and the field."""
    with path.open("rb") as file:
        return ConformanceFile.model_validate(tomllib.load(file))
