"""The typed syntax tree of a PTX module: what the grammar says, before any meaning is given to it.

Nodes carry `offset`, a character offset into the module's `Source`, which turns it into line and column.
Operands are immutable and shared: two mentions of `%r1` may be one object, so an operand has no position
of its own; the instruction that holds it has one. Section names are those of the PTX ISA 9.0 manual.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from zluda.ptx.source import Source

# --- operands (section 6) ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier: register, special register, variable, label, function, or the sink `_`."""

    name: str


@dataclass(frozen=True, slots=True)
class Component:
    """`%tid.x`, or a video or vector selector such as `%r1.b0`, `%r2.h1`, `%v.x`."""

    name: str
    component: str


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer constant (section 4.5.1); `unsigned` for a `U` suffix or a value above 2^63-1.

    Constant expressions are folded; `WARP_SZ` is 32.
    """

    value: int
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point constant (section 4.5.2) by its bits: width 32 for `0f`, 64 for `0d` and decimal literals."""

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Not:
    """`!p`, a negated predicate source."""

    operand: Name


@dataclass(frozen=True, slots=True)
class Negative:
    """`-r`, where the grammar lets a register be negated (video instructions negate `-r.h1` too)."""

    operand: Name | Component


@dataclass(frozen=True, slots=True)
class Offset:
    """`variable+8` outside brackets: the address of a variable plus bytes (mov, initialisers)."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Element:
    """`array[index+offset]` outside other brackets (section 6.4.2): the element's address, counted in elements.

    index is None for a constant subscript. In ld and st it stands where an Address stands.
    """

    name: str
    index: Name | None
    offset: int


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`; base is a Name, or None for an absolute address.

    `extra` holds what follows a comma inside the brackets (tensor coordinates, im2col offsets).
    """

    base: Name | Component | None
    offset: int = 0
    extra: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, c, d}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`p|q`: two destinations (setp, shfl.sync, match.all, elect)."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b)`: the return or argument list of a call."""

    items: tuple[Operand, ...]


Operand = Name | Component | Integer | Float | Not | Negative | Offset | Element | Address | Vector | Pair | Group


# --- statements -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opcode:
    """An instruction's name and its modifiers in order, without dots.

    `ld.global.v2.f32` is `ld`, (`global`, `v2`, `f32`).

    `::` stays inside a modifier: `cp.async.bulk.shared::cluster…` has the modifier `shared::cluster`.
    """

    name: str
    modifiers: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.name, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    name: str
    negated: bool


@dataclass(slots=True)
class Instruction:
    """One instruction with its operands in the order written."""

    offset: int
    opcode: Opcode
    operands: tuple[Operand, ...]
    guard: Guard | None = None


@dataclass(slots=True)
class Label:
    offset: int
    name: str


@dataclass(slots=True)
class Block:
    """`{ … }` inside a body: a scope of its own for registers, variables and labels."""

    offset: int
    statements: list[Statement]


class Space(Enum):
    """State spaces (section 5.1)."""

    REG = "reg"
    CONST = "const"
    GLOBAL = "global"
    LOCAL = "local"
    PARAM = "param"
    SHARED = "shared"
    TEX = "tex"
    SREG = "sreg"


class Linkage(Enum):
    """Linking directives (section 11.6)."""

    NONE = ""
    VISIBLE = "visible"
    EXTERN = "extern"
    WEAK = "weak"
    COMMON = "common"


@dataclass(frozen=True, slots=True)
class SymbolAddress:
    """An initialiser's element that is an address: `symbol+offset`, `generic(symbol)`, `mask(symbol)`.

    `mask` is 0xFF, 0xFF00 … when the directive takes one byte of the address (section 5.4.4.1), else None.
    """

    name: str
    offset: int = 0
    generic: bool = False
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Property:
    """`filter_mode = nearest` or `width = 640` in the initialiser of an opaque variable (section 5.3)."""

    name: str
    value: int | str


Initialiser = Integer | Float | SymbolAddress | Property | tuple["Initialiser", ...]


@dataclass(slots=True)
class Variable:
    """A declared name (section 5.4), registers and parameters included.

    `type` is `b8` … `f64`, `pred`, `f16x2`, `b128`, `texref`, `samplerref`, `surfref`, …
    `vector` is 1, 2, 4 or 8; `shape` the array dimensions, None for an unsized one (`a[]`).
    `count` is n for a parameterised set of registers `%r<n>` (the name is then the prefix, `%r`), else None.
    """

    offset: int
    space: Space
    name: str
    type: str
    vector: int = 1
    shape: tuple[int | None, ...] = ()
    align: int | None = None
    linkage: Linkage = Linkage.NONE
    initialiser: Initialiser | None = None
    count: int | None = None
    attributes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """`.attribute(.managed)`, `.attribute(.unified(a, b))` as (name, numbers)."""
    pointer: tuple[str | None, int | None] | None = None
    """`.ptr.space.align n` of a kernel parameter as (space, align); None when the parameter has no `.ptr`."""
    bank: int | None = None
    """`.const[n]`, of old ISA versions."""


@dataclass(slots=True)
class Prototype:
    """`label: .callprototype (ret) _ (params);` (section 7.1)."""

    offset: int
    name: str
    returns: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    noreturn: bool = False
    directives: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """`.abi_preserve` and `.abi_preserve_control`, as in `Function.directives`."""


@dataclass(slots=True)
class Targets:
    """`label: .branchtargets a, b;` or `.calltargets f, g;`."""

    offset: int
    name: str
    kind: str
    """`branchtargets` or `calltargets`."""
    targets: tuple[str, ...]


@dataclass(slots=True)
class Location:
    """`.loc file line column`, with `function_name`/`inlined_at` where given (section 11.5.3)."""

    offset: int
    file: int
    line: int
    column: int
    function: str | None = None
    inlined_at: tuple[int, int, int] | None = None
    function_offset: int = 0
    """What is added to the label of `function_name`."""


@dataclass(slots=True)
class Pragma:
    offset: int
    texts: tuple[str, ...]


Statement = Instruction | Label | Block | Variable | Prototype | Targets | Location | Pragma


# --- modules ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Function:
    """`.entry` or `.func`: a declaration when `body` is None.

    `directives` holds performance-tuning and ABI directives in order as (name, numbers):
    `("maxntid", (256, 1, 1))`, `("reqntid", …)`, `("minnctapersm", (2,))`, `("maxnreg", (32,))`, `("noreturn", ())`,
    `("reqnctapercluster", …)`, `("explicitcluster", ())`, `("maxclusterrank", …)`, `("blocksareclusters", ())`, ….
    """

    offset: int
    name: str
    entry: bool
    parameters: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    linkage: Linkage = Linkage.NONE
    directives: tuple[tuple[str, tuple[int, ...]], ...] = ()
    body: list[Statement] | None = None
    end: int = 0
    """Offset just past the function's last character."""


@dataclass(slots=True)
class Alias:
    """`.alias name, target;`"""

    offset: int
    name: str
    target: str


@dataclass(slots=True)
class Module:
    """A whole PTX module, or the header and variables of one whose functions are parsed on demand."""

    source: Source
    version: tuple[int, int]
    targets: tuple[str, ...]
    """The operands of `.target`: `sm_75`, `texmode_independent`, `debug`, …"""
    address_size: int
    variables: list[Variable] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)
    pragmas: list[Pragma] = field(default_factory=list)
