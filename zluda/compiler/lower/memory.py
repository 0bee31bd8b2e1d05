"""Loads, stores, moves and conversions of addresses (section 9.7.9)."""

from __future__ import annotations

from zluda.compiler.lower import sums
from zluda.compiler.lower.affine import Affine
from zluda.compiler.lower.context import LLVM_TYPES
from zluda.compiler.lower.function import POINTER_OPCODES, FunctionLowering, Structural, structural
from zluda.compiler.lower.params import Piece
from zluda.compiler.lower.values import BITS, SHARED, Value, cast
from zluda.ptx.layout import SIZES
from zluda.ptx.tree import Address, Float, Integer, Name, Offset, Operand, Space, Vector

_SPACES = frozenset(["global", "const", "shared", "local", "param"])
_SCOPES = ("cta", "cluster", "gpu", "sys")

IGNORED = ("prefetch", "prefetchu", "applypriority", "discard", "pmevent")
"""Hints: they change nothing that a program can see (discard leaves values undefined, what was there is one)."""


class _Access:
    """What the modifiers of an ld or st say."""

    def __init__(self, c: FunctionLowering) -> None:
        modifiers = c.mods
        self.space = next((s for s in (m.partition("::")[0] for m in modifiers) if s in _SPACES), "generic")
        self.count = next((int(m[1:]) for m in modifiers if m in ("v2", "v4", "v8")), 1)
        self.type = c.type
        if self.type not in SIZES or self.type not in LLVM_TYPES or self.type == "pred":
            c.unsupported(f"memory accesses of type .{self.type} are not lowered")
        self.bytes = SIZES[self.type]
        self.llvm = {"half": "i16", "<2 x half>": "i32"}.get(LLVM_TYPES[self.type], LLVM_TYPES[self.type])
        self.ordering = next((m for m in modifiers if m in ("acquire", "release", "relaxed", "mmio")), None)
        self.volatile = "volatile" in modifiers or "mmio" in modifiers
        self.scope = next((m for m in modifiers if m in _SCOPES), "sys")
        self.constant = "nc" in modifiers or self.space == "const"


def _items(c: FunctionLowering, operand: Operand, access: _Access) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != access.count:
        c.unsupported(f"{len(items)} registers for {access.count} elements")
    return items


@structural("ld", "ldu")
def load(c: FunctionLowering) -> None:
    access = _Access(c)
    target, address = c.operands[0], c.operands[1]
    items = _items(c, target, access)
    if access.space == "param" and isinstance(address, Address) and isinstance(address.base, Name):
        if address.base.name in c.body.parameters:
            _load_scalar(c, access, items, address.base.name, address.offset)
            return
        whole = c.parameters
        if whole is not None and address.base.name in whole.places and address.base.name not in whole.in_memory:
            _load_pieces(c, access, items, whole.places[address.base.name].offset + address.offset)
            return
    space = "local" if access.space == "param" else access.space
    pointer = c.access(address, space, access.bytes * access.count)
    for item, value in zip(items, _loaded(c, access, pointer), strict=True):
        _give(c, item, access.type, Value(access.llvm, value))


def _give(c: FunctionLowering, item: Operand, type: str, value: Value) -> None:
    """Set a register to a loaded element, narrow ones extended by the type's sign (section 9.4.1)."""
    if isinstance(item, Name):
        if item.name != "_":
            c.write(item.name, c.widened(item.name, value, type.startswith("s")))
        return
    c.set(item, type, cast(c.w, value, LLVM_TYPES[type]))


def _loaded(c: FunctionLowering, access: _Access, pointer: Value) -> list[str]:
    kind, size = access.llvm, access.bytes
    acquire = access.ordering == "acquire"
    if access.ordering is not None and access.count == 1 and size >= 4 and not access.volatile:
        integer = f"i{size * 8}"
        scope = c.target.sync_scope(access.scope)
        order = "acquire" if acquire else "monotonic"
        value = c.op(f"load atomic {integer}, {pointer.type} {pointer.name} {scope}{order}, align {size}")
        return [cast(c.w, Value(integer, value), kind)]
    volatile = "volatile " if access.volatile or access.ordering is not None else ""
    values: list[str] = []
    per = min(access.count, max(1, 16 // size)) if access.count * size > 16 else access.count
    for first in range(0, access.count, per):
        part = c.moved(pointer, first * size)
        if per == 1:
            values.append(c.op(f"load {volatile}{kind}, {part.type} {part.name}, align {size}{_invariant(c, access)}"))
            continue
        align = per * size if access.count * size <= 16 else 16
        vector = c.op(f"load {volatile}<{per} x {kind}>, {part.type} {part.name}, align {align}{_invariant(c, access)}")
        values.extend(c.op(f"extractelement <{per} x {kind}> {vector}, i32 {index}") for index in range(per))
    if acquire:
        c.target.fence(c, access.scope, "acquire")
    return values


def _invariant(c: FunctionLowering, access: _Access) -> str:
    return f", !invariant.load {c.unit.writer.metadata('!{}')}" if access.constant and not access.volatile else ""


def _load_scalar(c: FunctionLowering, access: _Access, items: tuple[Operand, ...], name: str, offset: int) -> None:
    """Read a scalar parameter, which is kept as a register."""
    value = c.read(name)
    if (
        len(items) == 1
        and offset == 0
        and (value.is_pointer or value.type == SHARED or BITS[value.type] == access.bytes * 8)
    ):
        _give(c, items[0], access.type, value)
        return
    if value.is_pointer or value.type == SHARED:
        value = Value("i64", c.generic_number(value))
    bits = BITS[value.type]
    whole = cast(c.w, value, f"i{bits}")
    for index, item in enumerate(items):
        shift = (offset + index * access.bytes) * 8
        if shift < 0 or shift + access.bytes * 8 > bits:
            c.unsupported(f"reads beyond the parameter {name}")
        part = c.op(f"lshr i{bits} {whole}, {shift}") if shift else whole
        _give(c, item, access.type, Value(access.llvm, cast(c.w, Value(f"i{bits}", part), access.llvm)))


def _load_pieces(c: FunctionLowering, access: _Access, items: tuple[Operand, ...], offset: int) -> None:
    assert c.parameters is not None
    for index, item in enumerate(items):
        piece = c.parameters.piece(offset + index * access.bytes, access.bytes)
        assert piece is not None
        _give(c, item, access.type, piece_value(c, piece))


def piece_value(c: FunctionLowering, piece: Piece) -> Value:
    """A piece of the parameter block as its argument holds it."""
    return Value(c.ptr("global") if piece.pointer else f"i{piece.size * 8}", piece.name)


@structural("st", "stu")
def store(c: FunctionLowering) -> None:
    access = _Access(c)
    address, source = c.operands[0], c.operands[1]
    items = _items(c, source, access)
    base = address.base if isinstance(address, Address) else None
    if access.space == "param" and isinstance(base, Name) and base.name in c.body.parameters:
        assert isinstance(address, Address)
        _store_scalar(c, access, items, base.name, address.offset)
        return
    space = "local" if access.space == "param" else access.space
    pointer = c.access(address, space, access.bytes * access.count)
    values = [_taken(c, item, access) for item in items]
    kind, size = access.llvm, access.bytes
    release = access.ordering == "release"
    if access.ordering is not None and access.count == 1 and size >= 4 and not access.volatile:
        integer = f"i{size * 8}"
        scope = c.target.sync_scope(access.scope)
        order = "release" if release else "monotonic"
        value = cast(c.w, Value(kind, values[0]), integer)
        c.void(f"store atomic {integer} {value}, {pointer.type} {pointer.name} {scope}{order}, align {size}")
        return
    if release:
        c.target.fence(c, access.scope, "release")
    volatile = "volatile " if access.volatile or access.ordering is not None else ""
    per = min(access.count, max(1, 16 // size)) if access.count * size > 16 else access.count
    for first in range(0, access.count, per):
        part = c.moved(pointer, first * size)
        if per == 1:
            c.void(f"store {volatile}{kind} {values[first]}, {part.type} {part.name}, align {size}")
            continue
        vector = "poison"
        for index in range(per):
            vector = c.op(f"insertelement <{per} x {kind}> {vector}, {kind} {values[first + index]}, i32 {index}")
        align = per * size if access.count * size <= 16 else 16
        c.void(f"store {volatile}<{per} x {kind}> {vector}, {part.type} {part.name}, align {align}")


def _taken(c: FunctionLowering, item: Operand, access: _Access) -> str:
    """An operand as the bits that a store writes; a floating-point register may be stored as any type of its size."""
    if isinstance(item, Float | Integer):
        return cast(c.w, Value(LLVM_TYPES[access.type], c.get(item, access.type)), access.llvm)
    return c.get(item, {"i16": "b16", "i32": "b32"}.get(access.llvm, access.type))


def _store_scalar(c: FunctionLowering, access: _Access, items: tuple[Operand, ...], name: str, offset: int) -> None:
    """Write a scalar parameter, which is kept as a register, or a part of it."""
    kind = c.body.register_type(name)
    assert kind is not None
    bits = BITS[LLVM_TYPES[kind]]
    if len(items) == 1 and offset == 0:
        item = items[0]
        if isinstance(item, Name) and access.bytes * 8 == bits and c.body.register_type(item.name) is not None:
            value = c.read(item.name)
            if value.is_pointer or value.type == SHARED or BITS[value.type] == bits:
                c.write(name, value)
                return
        if access.bytes * 8 >= bits:
            value = Value(access.llvm, _taken(c, item, access))
            c.write(name, Value(f"i{bits}", cast(c.w, value, f"i{bits}")))
            return
    held = c.read(name)
    whole = c.generic_number(held) if held.is_pointer or held.type == SHARED else cast(c.w, held, f"i{bits}")
    for index, item in enumerate(items):
        shift = (offset + index * access.bytes) * 8
        if shift < 0 or shift + access.bytes * 8 > bits:
            c.unsupported(f"writes beyond the parameter {name}")
        mask = ((1 << access.bytes * 8) - 1) << shift
        part = cast(c.w, Value(access.llvm, _taken(c, item, access)), f"i{access.bytes * 8}")
        part = cast(c.w, Value(f"i{access.bytes * 8}", part), f"i{bits}")
        if shift:
            part = c.op(f"shl i{bits} {part}, {shift}")
        keep = ~mask & (1 << bits) - 1
        keep = keep - (1 << bits) if keep >> (bits - 1) else keep
        cleared = c.op(f"and i{bits} {whole}, {keep}")
        whole = c.op(f"or i{bits} {cleared}, {part}")
    c.write(name, Value(f"i{bits}", whole))


# --- moves ----------------------------------------------------------------------------------------------


@structural("mov")
def move(c: FunctionLowering) -> None:
    target, source = c.operands[0], c.operands[1]
    type = c.type
    if isinstance(source, Vector) and isinstance(target, Name):
        _move_register(c, target.name, c.packed(source.items, SIZES[type] * 8 if type in SIZES else 0))
        return
    if isinstance(target, Name) and isinstance(source, Name | Offset):
        if target.name == "_":
            return
        if isinstance(source, Offset):
            value = c.address_of(source)
        else:
            value = c.value(source.name)
        _move_register(c, target.name, value)
        return
    c.set(target, type, c.get(source, type))


def _move_register(c: FunctionLowering, name: str, value: Value) -> None:
    kind = c.body.register_type(name)
    if kind == "pred" and value.type == "i8":
        value = Value("i1", c.as_type(value, "i1"))
    c.write(name, c.widened(name, value))


# --- addresses ------------------------------------------------------------------------------------------


@structural("cvta")
def convert_address(c: FunctionLowering) -> None:
    target, source = c.operands[0], c.operands[1]
    if not isinstance(target, Name):
        c.unsupported("the destination is no register")
    space = next((s for s in (m.partition("::")[0] for m in c.mods) if s in _SPACES), None)
    if space is None:
        c.unsupported("the instruction names no state space")
    value = _address_value(c, source)
    if space == "shared":
        if "to" in c.mods:
            value = Value("i64", c.shared_offset(value))
        else:
            value = Value(SHARED, _window_offset(c, value))
    elif not value.is_pointer and value.type != SHARED and target.name in c.classes:
        value = c.coerce(value, c.classes[target.name])
    c.write(target.name, c.widened(target.name, value))


def _window_offset(c: FunctionLowering, value: Value) -> str:
    """An address in the shared window as an i64."""
    if value.type == SHARED:
        return value.name
    if value.is_pointer:
        return c.op(f"ptrtoint {value.type} {value.name} to i64")
    return cast(c.w, value, "i64")


def _address_value(c: FunctionLowering, operand: Operand) -> Value:
    match operand:
        case Name(name):
            return c.value(name)
        case Offset():
            return c.address_of(operand)
        case Integer(value):
            return Value("i64", str(value))
        case _:
            c.unsupported("an operand of this kind is no address")


@structural("isspacep")
def is_in_space(c: FunctionLowering) -> None:
    """Answered where the address is known to come from one space; a flat address does not tell (section 9.7.9.19)."""
    space = next((s for s in (m.partition("::")[0] for m in c.mods) if s in _SPACES), None)
    source = c.operands[1]
    found = None
    if isinstance(source, Name):
        variable = c.unit.space_of(c.body, source.name)
        if c.body.register_type(source.name) is not None:
            held = c.read(source.name)
            kinds = {SHARED: "shared", c.ptr("global"): "global", c.ptr("local"): "local", c.ptr("shared"): "shared"}
            found = kinds.get(held.type)
        elif variable is not None:
            found = "global" if variable is Space.CONST else variable.value
    if found is None or space is None:
        c.unsupported("the address may lie in any state space, which this target cannot tell apart")
    c.set(c.operands[0], "pred", "true" if found == space else "false")


@structural(*IGNORED)
def ignored(c: FunctionLowering) -> None:
    """A hint."""


# --- pointer arithmetic ---------------------------------------------------------------------------------


def _kept(c: FunctionLowering) -> str | None:
    """The destination of an instruction, when it is kept as a pointer."""
    target = c.operands[0] if c.operands else None
    if isinstance(target, Name) and target.name in c.classes and not c.has("cc"):
        return target.name
    return None


def _adds(c: FunctionLowering) -> Structural | None:
    base = c.routine.bases.get(c.instruction.offset)
    return _add if _kept(c) and base is not None and base in c.classes else None


def _multiplies(c: FunctionLowering) -> Structural | None:
    base = c.operands[3] if len(c.operands) > 3 else None
    fits = c.has("lo") or (c.has("wide") and c.mods[-1] in ("s32", "u32"))
    return _mad if _kept(c) and fits and isinstance(base, Name) and base.name in c.classes else None


def _selects(c: FunctionLowering) -> Structural | None:
    return _select if _kept(c) else None


POINTER_OPCODES.update(add=_adds, sub=_adds, mad=_multiplies, selp=_selects)


def _select(c: FunctionLowering) -> None:
    target = c.operands[0]
    assert isinstance(target, Name)
    space = c.classes[target.name]
    a, b = (c.coerce(_selectable(c, o), space) for o in c.operands[1:3])
    kind = "i64" if a.type == SHARED else a.type
    predicate = c.get(c.operands[3], "pred")
    c.write(target.name, Value(a.type, c.op(f"select i1 {predicate}, {kind} {a.name}, {kind} {b.name}")))


def _selectable(c: FunctionLowering, operand: Operand) -> Value:
    if isinstance(operand, Name):
        return c.value(operand.name)
    return Value("i64", c.get(operand, "u64"))


def _add(c: FunctionLowering) -> None:
    target, first, second = c.operands[:3]
    assert isinstance(target, Name)
    base = c.routine.bases[c.instruction.offset]
    other = second if isinstance(first, Name) and first.name == base else first
    held = c.read(base)
    sign = -1 if c.name == "sub" else 1
    known = sums.of_operand(c, other, 64)
    if known is None:
        known = Affine(64, 0, ((c.get(other, "s64"), 1),))
    c.write(target.name, c.further(held, known.times(sign)))


def _mad(c: FunctionLowering) -> None:
    target, a, b, base = c.operands
    assert isinstance(target, Name) and isinstance(base, Name)
    known = sums.product(c, a, b, 32 if c.has("wide") else 64)
    if known is None:
        if c.has("wide"):
            x, y = (sums.extended(c, c.get(o, c.type), c.type == "s32") for o in (a, b))
        else:
            x, y = c.get(a, "s64"), c.get(b, "s64")
        known = Affine(64, 0, ((c.op(f"mul i64 {x}, {y}"), 1),))
    c.write(target.name, c.further(c.read(base.name), known))
