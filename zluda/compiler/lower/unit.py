"""One kernel with the device functions it reaches: what they share, and what each is called with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from zluda.compiler.lower.body import Body, is_scalar
from zluda.compiler.lower.context import LLVM_TYPES
from zluda.compiler.lower.data import DataLayout
from zluda.compiler.lower.scan import Scan
from zluda.compiler.lower.shared import SharedLayout
from zluda.compiler.lower.writer import ModuleWriter
from zluda.compiler.target.base import Target
from zluda.ptx.errors import PtxUnsupported
from zluda.ptx.source import Source
from zluda.ptx.tree import Function, Space, Variable


@dataclass(slots=True)
class Signature:
    """How a device function is called: LLVM name, parameter and return types, and the hidden arguments behind them.

    A scalar is passed by value; an aggregate as a pointer to the caller's copy. One scalar result is returned; other
    results are written through pointers, which stand behind the parameters.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    """LLVM type, `void` without a result or with results through pointers."""
    out: tuple[str, ...]
    """Names of the results that are written through pointers."""
    hidden: tuple[str, ...]
    """Of `module`, `shared`, `block`, `exit`."""


@dataclass(slots=True)
class Routine:
    """One function of the unit, ready to be lowered."""

    function: Function
    body: Body
    scan: Scan
    classes: dict[str, str] = field(default_factory=dict)
    """Registers kept as pointers (provenance.infer)."""
    bases: dict[int, str] = field(default_factory=dict)
    """Which operand of an add or sub is the address, by the instruction's offset."""
    roots: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Pointers that are always a multiple of so many bytes behind another register (roots.find)."""
    signature: Signature | None = None
    """Of a device function; None for the kernel."""
    needs: frozenset[str] = frozenset()
    """Hidden arguments that it or what it calls needs."""
    convergent: bool = False


@dataclass(slots=True)
class Unit:
    """A kernel being lowered."""

    entry: str
    source: Source
    target: Target
    writer: ModuleWriter
    data: DataLayout
    variables: dict[str, Variable]
    """The module's variables by name."""
    routines: dict[str, Routine] = field(default_factory=dict)
    shared: SharedLayout = field(default_factory=SharedLayout)
    flat: bool = False
    integer_shared: bool = False
    """Whether shared addresses are made from the block's integer address: where one escapes as a number (facts.md)."""
    shared_escapes: bool = False
    """Set while lowering: the address of shared memory was taken as a generic number."""
    uses: set[str] = field(default_factory=set)
    indirect: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Offset of a call through a register to the functions that the register may hold."""

    def space_of(self, body: Body, name: str) -> Space | None:
        """The state space of a variable that a body can name."""
        variable = self.variable(body, name)
        return variable.space if variable is not None else None

    def variable(self, body: Body, name: str) -> Variable | None:
        return body.variables.get(name) or self.variables.get(name)

    def unsupported(self, offset: int, reason: str, hint: str | None = None, function: str | None = None) -> NoReturn:
        name = self.entry if function in (None, self.entry) else f"{function} (reached from {self.entry})"
        raise PtxUnsupported(self.source, offset, reason, function=name, hint=hint)


HIDDEN_TYPES = {"shared": "shared", "module": "global", "exit": "local"}
"""Hidden arguments that are pointers, with their space; `block` is three i32."""


def pointer_type(target: Target, space: str) -> str:
    number = target.space(space)
    return f"ptr addrspace({number})" if number else "ptr"


def hidden_parameters(unit: Unit, hidden: tuple[str, ...]) -> list[tuple[str, str]]:
    """(LLVM type, value name) of the hidden arguments, the same names inside every function."""
    found: list[tuple[str, str]] = []
    for name in hidden:
        if name == "block":
            found.extend(("i32", f"%block.{axis}") for axis in "xyz")
        else:
            found.append((pointer_type(unit.target, HIDDEN_TYPES[name]), f"%{name}"))
    return found


def scalar_type(unit: Unit, routine: Routine, variable: Variable) -> str:
    """The LLVM type in which a scalar parameter or result is passed."""
    if variable.name in routine.classes and routine.classes[variable.name] != "shared":
        return pointer_type(unit.target, routine.classes[variable.name])
    found = LLVM_TYPES.get(variable.type)
    if found is None:
        unit.unsupported(
            variable.offset, f"a parameter of type .{variable.type} is not lowered", None, routine.function.name
        )
    return {"half": "i16", "<2 x half>": "i32", "<2 x i16>": "i32", "<2 x float>": "i64"}.get(found, found)


def signature(unit: Unit, routine: Routine) -> Signature:
    function = routine.function
    parameters = tuple(
        scalar_type(unit, routine, p) if is_scalar(p) else pointer_type(unit.target, "local")
        for p in function.parameters
    )
    result, out = "void", tuple(r.name for r in function.returns)
    if len(function.returns) == 1 and is_scalar(function.returns[0]):
        result, out = scalar_type(unit, routine, function.returns[0]), ()
    hidden = tuple(name for name in ("module", "shared", "block", "exit") if name in routine.needs)
    return Signature(f"{unit.entry}.{function.name}", parameters, result, out, hidden)
