"""One function while it is lowered: registers, operands and blocks. It is the Context that handlers see."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from zluda.compiler.lower import special, sums
from zluda.compiler.lower.affine import Affine
from zluda.compiler.lower.context import HANDLERS, LLVM_TYPES, Context
from zluda.compiler.lower.flow import ENDS, Flow, Keeping
from zluda.compiler.lower.params import KernelParameters
from zluda.compiler.lower.pointers import Addressing
from zluda.compiler.lower.unit import Routine, Unit, pointer_type
from zluda.compiler.lower.values import BITS, SHARED, Value, cast, float_literal, integer_literal, rounded
from zluda.compiler.lower.writer import FunctionWriter, call_text, quoted
from zluda.ptx.tree import (
    Component,
    Float,
    Instruction,
    Integer,
    Name,
    Negative,
    Not,
    Offset,
    Operand,
    Vector,
)

Structural = Callable[["FunctionLowering"], None]

STRUCTURAL: dict[str, Structural] = {}
"""Handlers of instructions that need more than a Context: memory, calls, control flow."""


POINTER_OPCODES: dict[str, Callable[[FunctionLowering], Structural | None]] = {}
"""Opcodes that compute addresses: gives the handler for an instruction whose result is kept as a pointer, or None."""


def structural(*names: str) -> Callable[[Structural], Structural]:
    def register(handler: Structural) -> Structural:
        for name in names:
            STRUCTURAL[name] = handler
        return handler

    return register


class FunctionLowering(Addressing, Context):
    """Lowers the instructions of one routine into a FunctionWriter."""

    def __init__(self, unit: Unit, routine: Routine, flow: Flow, parameters: KernelParameters | None = None) -> None:
        self.unit, self.routine, self.flow, self.parameters = unit, routine, flow, parameters
        self.body = routine.body
        self.classes = routine.classes
        self.target = unit.target
        self.stack = self.ptr("local")
        self.w = FunctionWriter()
        self.keeping = Keeping(flow)
        self.rooted = self._rooted()
        self.single: dict[str, Value] = {}
        self.local: dict[str, Value] = {}
        self.slots: dict[str, tuple[str, str]] = {}
        self.places: dict[str, str] = {}
        """Pointers to variables in local memory: .local, and .param aggregates."""
        self.specials: dict[tuple[str, str | None], tuple[str, str]] = {}
        self.flags: dict[str, str] = {}
        self.ranges: dict[str, tuple[int, int]] = {}
        """Known bounds of i32 values."""
        self.computed: dict[str, str] = {}
        """What `once` has computed in this block."""
        self.block_number = 0
        self.guarded = False
        self.instruction = Instruction(routine.function.offset, special.NO_OPCODE, ())

    # --- the function as a whole ---

    def lower(self, header: str, prologue: Callable[[FunctionLowering], None]) -> str:
        """The definition; `prologue` fills the entry block."""
        self.w.begin_prologue()
        prologue(self)
        special.prologue(self)
        for name in sorted(self.keeping.undefined_at_start):
            pointer, kind = self._slot(name)
            self.w.void(f"store {kind} zeroinitializer, {self.stack} {pointer}")
        self.w.end_prologue()
        for number in self.flow.order:
            self._block(number)
        return self.w.render(header, self.label(0))

    def label(self, number: int) -> str:
        return f"b{number}"

    def _block(self, number: int) -> None:
        self.block_number = number
        self.local = {}
        self.computed = {}
        block = self.flow.blocks[number]
        self.w.start(self.label(number))
        for index in range(block.first, block.last):
            self.instruction = self.body.instructions[index]
            self._instruction(index)
        if self.w.open:
            if block.last < len(self.body.instructions) or number + 1 < len(self.flow.blocks):
                self.w.branch(self.label(number + 1))
            else:
                STRUCTURAL["ret"](self)

    def _instruction(self, index: int) -> None:
        instruction = self.instruction
        name = instruction.opcode.name
        handler: Structural | None = STRUCTURAL.get(name) or HANDLERS.get(name)
        if handler is None:
            self.unsupported("this instruction is not lowered")
        if name in POINTER_OPCODES:
            handler = POINTER_OPCODES[name](self) or handler
        guard = instruction.guard
        if guard is None or name in ENDS:
            self._follow(handler)
            return
        then, join = self.block("then"), self.block("join")
        self.cond(self.guard_value(), then, join)
        self.w.start(then)
        saved, computed = dict(self.local), dict(self.computed)
        self.guarded = True
        handler(self)
        self.guarded = False
        self.computed = computed
        for written in self.keeping.written[index]:
            saved.pop(written, None)
        self.local = saved
        self.w.start(join)

    def _follow(self, handler: Structural) -> None:
        """Run a handler, and keep what is known of the integer it computes."""
        target = self.operands[0] if self.operands else None
        if self.name not in sums.FOLLOWED or not isinstance(target, Name) or target.name in self.classes:
            handler(self)
            return
        known, bounds = sums.result(self), sums.range_of_result(self)
        handler(self)
        values = self.single if target.name in self.single else self.local
        value = values.get(target.name)
        if value is None or value.type not in ("i32", "i64"):
            return
        if known is not None and f"i{known.bits}" == value.type:
            values[target.name] = value._replace(affine=known)
        elif bounds is not None and value.type == "i32":
            self.ranges[value.name] = bounds

    def once(self, text: str) -> str:
        """The result of an instruction without effects, emitted once a block."""
        name = self.computed.get(text)
        if name is None:
            name = self.computed[text] = self.w.op(text)
        return name

    def guard_value(self) -> str:
        guard = self.instruction.guard
        assert guard is not None
        operand: Operand = Not(Name(guard.name)) if guard.negated else Name(guard.name)
        return self.get(operand, "pred")

    # --- registers ---

    def register_llvm(self, name: str) -> str:
        """The LLVM type in which a register is kept by default."""
        if name in self.classes:
            found = self.classes[name]
            return SHARED if found == "shared" else pointer_type(self.target, found)
        kind = self.body.register_type(name)
        assert kind is not None
        found_type = LLVM_TYPES.get(kind)
        if found_type is None:
            self.unsupported(f"registers of type .{kind} are not lowered")
        return {"half": "i16", "<2 x half>": "i32", "<2 x i16>": "i32"}.get(found_type, found_type)

    def read(self, name: str) -> Value:
        """What a register holds, in whatever type it was written."""
        value = self.local.get(name) or self.single.get(name)
        if value is not None:
            return value
        kind = self.register_llvm(name)
        if name in self.keeping.slots:
            pointer, stored = self._slot(name)
            result = self.w.op(f"load {stored}, {self.stack} {pointer}")
            if name in self.rooted:
                value = self._from_root(name, result)
            else:
                value = Value(SHARED if kind == SHARED else stored, result)
            self.local[name] = value
            return value
        # Never written, or not on this way: the ISA leaves the value open.
        if kind.startswith("ptr"):
            return Value(kind, "null")
        return Value(kind, {"float": "0.0", "double": "0.0", "i1": "false"}.get(kind, "0"))

    def write(self, name: str, value: Value) -> None:
        """Give a register a value of its own width."""
        found = self.classes.get(name)
        if found is not None:
            value = self.coerce(value, found)
        elif value.is_pointer or value.type == SHARED:
            value = Value("i64", self.generic_number(value))
        if name in self.keeping.single:
            self.single[name] = value
            return
        self.local[name] = value
        if name in self.keeping.slots and (self.guarded or self.keeping.stored(name, self.block_number)):
            pointer, kind = self._slot(name, value.type)
            if name in self.rooted:
                value = Value("i64", self._to_root(name, value))
            stored = value.name if value.is_pointer or value.type == SHARED else cast(self.w, value, kind)
            self.w.void(f"store {kind} {stored}, {self.stack} {pointer}")

    def _slot(self, name: str, kind: str | None = None) -> tuple[str, str]:
        found = self.slots.get(name)
        if found is None:
            kind = kind or self.register_llvm(name)
            if kind == SHARED or name in self.rooted:
                kind = "i64"
            elif kind.startswith("<"):
                kind = f"i{BITS[kind]}"
            elif kind == "half":
                kind = "i16"
            elif kind == "i1":
                kind = "i8"
            found = self.slots[name] = (self.w.alloca(kind, space=self.target.space("local")), kind)
        return found

    def _rooted(self) -> dict[str, tuple[str, int]]:
        """Registers in slots that are always so many elements behind another register: kept as that number.

        A device's compiler that looks for neighbouring elements loses sight of a pointer that moves in a loop.
        """
        found = {}
        for name, (root, granule) in self.routine.roots.items():
            keeping = self.keeping
            if name not in keeping.slots or root not in keeping.single or self.classes.get(root) != self.classes[name]:
                continue
            home = keeping.defined[root][0][0]
            places = {block for block, *_ in (*keeping.defined[name], *keeping.used.get(name, ()))}
            if all(self.flow.dominates(home, block) for block in places) and name not in keeping.undefined_at_start:
                found[name] = (root, granule)
        return found

    def _from_root(self, name: str, index: str) -> Value:
        root, granule = self.rooted[name]
        return self.further(self.read(root), Affine(64, 0, ((index, granule),)))

    def _to_root(self, name: str, value: Value) -> str:
        """How many elements a pointer lies behind the root of a register."""
        root, granule = self.rooted[name]
        base = self.read(root)
        if (value.root or value.name) == (base.root or base.name):
            zero = Affine(64)
            distance = (value.affine or zero).plus(base.affine or zero, -1)
            if distance is not None and not (
                distance.constant % granule or any(s % granule for _, s in distance.terms)
            ):
                index = sums.total(self, distance, granule)
                steps = distance.constant // granule
                return self.add_offset(index, steps)
        a, b = (self.w.op(f"ptrtoint {v.type} {v.name} to i64") for v in (value, base))
        difference = self.w.op(f"sub i64 {a}, {b}")
        return self.w.op(f"ashr exact i64 {difference}, {granule.bit_length() - 1}") if granule > 1 else difference

    # --- Context: operands ---

    def get(self, operand: Operand, type: str) -> str:
        want = LLVM_TYPES.get(type)
        if want is None:
            self.unsupported(f"values of type .{type} are not lowered")
        match operand:
            case Name(name):
                return self.as_type(self.value(name), want)
            case Integer(value):
                return self._integer(value, want)
            case Float():
                return self._float(operand, want)
            case Not(inner):
                return self.w.op(f"xor i1 {self.get(inner, 'pred')}, true")
            case Negative(inner):
                value_name = self.get(inner, type)
                if want in ("half", "float", "double"):
                    return self.w.op(f"fneg {want} {value_name}")
                return self.w.op(f"sub {want} 0, {value_name}")
            case Component(name, component):
                if self.body.register_type(name) is not None:
                    self.unsupported("selecting a part of a register is not lowered")
                return self.as_type(Value(*special.register(self, name, component)), want)
            case Offset(name, _):
                return self.as_type(self.address_of(operand), want)
            case Vector(items):
                return self.as_type(self.packed(items, BITS[want]), want)
            case _:
                self.unsupported("an operand of this kind cannot be read here")

    def value(self, name: str) -> Value:
        """The value of a named register, special register, variable or function."""
        if self.body.register_type(name) is not None:
            return self.read(name)
        if name.startswith("%"):
            return Value(*special.register(self, name, None))
        if name == "WARP_SZ":
            return Value("i32", "32")
        return self.address_of(Name(name))

    def as_type(self, value: Value, want: str) -> str:
        if value.is_pointer or value.type == SHARED:
            value = Value("i64", self.generic_number(value))
        if value.type == "i8" and want == "i1":
            return self.w.op(f"trunc i8 {value.name} to i1")
        return cast(self.w, value, want)

    def _integer(self, value: int, want: str) -> str:
        if want in ("half", "float", "double"):
            if value:
                self.unsupported("an integer constant stands where a floating-point one belongs")
            return "0.0" if want != "half" else "0xH0000"
        if want.startswith("<"):
            return self.w.op(f"bitcast i{BITS[want]} {integer_literal(value, BITS[want])} to {want}")
        return integer_literal(value, BITS[want])

    def _float(self, constant: Float, want: str) -> str:
        bits = BITS[want]
        if want in ("half", "float", "double"):
            return float_literal(rounded(constant, bits), bits)
        if constant.width != bits:
            self.unsupported(f"a {constant.width}-bit floating-point constant stands where {bits} bits are read")
        if want.startswith("<"):
            return self.w.op(f"bitcast i{bits} {integer_literal(constant.bits, bits)} to {want}")
        return integer_literal(constant.bits, bits)

    def packed(self, items: tuple[Operand, ...], bits: int) -> Value:
        """The items of a vector side by side in an integer, the first lowest (section 9.7.9.6, mov)."""
        each = bits // len(items)
        if each * len(items) != bits or each not in (8, 16, 32, 64):
            self.unsupported(f"{len(items)} items do not make {bits} bits")
        result = ""
        for index, item in enumerate(items):
            part = self.w.op(f"zext i{each} {self.get(item, f'b{each}')} to i{bits}")
            if index:
                part = self.w.op(f"shl i{bits} {part}, {index * each}")
                part = self.w.op(f"or i{bits} {result}, {part}")
            result = part
        return Value(f"i{bits}", result)

    def set(self, operand: Operand, type: str, value: str) -> None:
        have = LLVM_TYPES.get(type)
        if have is None:
            self.unsupported(f"values of type .{type} are not lowered")
        if isinstance(operand, Vector):
            self._unpack(operand.items, Value(have, value))
            return
        if not isinstance(operand, Name):
            self.unsupported("an operand of this kind cannot be written here")
        if operand.name == "_":
            return
        self.write(operand.name, self.widened(operand.name, Value(have, value), type.startswith("s")))

    def widened(self, register: str, value: Value, signed: bool = False) -> Value:
        """A value extended or cut to the width of a register."""
        kind = self.body.register_type(register)
        if kind is None:
            self.unsupported(f"{register} is not a register")
        if kind == "pred" or value.type == "i1":
            if kind != "pred" or value.type != "i1":
                self.unsupported(f"{register} is a .{kind} register, which cannot hold this result")
            return value
        want = LLVM_TYPES.get(kind)
        if want is None:
            self.unsupported(f"registers of type .{kind} are not lowered")
        if value.is_pointer or value.type == SHARED:
            if BITS[want] == 64:
                return value
            value = Value("i64", self.generic_number(value))
        if BITS[want] == BITS[value.type]:
            return value
        integer = f"i{BITS[want]}"
        return Value(integer, cast(self.w, value, integer, signed))

    def _unpack(self, items: tuple[Operand, ...], value: Value) -> None:
        bits = BITS[value.type]
        each = bits // len(items)
        if each not in (8, 16, 32, 64):
            self.unsupported(f"{len(items)} items do not make {bits} bits")
        whole = cast(self.w, value, f"i{bits}")
        for index, item in enumerate(items):
            if isinstance(item, Name) and item.name == "_":
                continue
            part = self.w.op(f"lshr i{bits} {whole}, {index * each}") if index else whole
            self.set(item, f"b{each}", self.w.op(f"trunc i{bits} {part} to i{each}"))

    # --- Context: emission ---

    def op(self, text: str) -> str:
        return self.w.op(text)

    def void(self, text: str) -> None:
        self.w.void(text)

    def intrinsic(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        types = ", ".join(kind for kind, _ in arguments)
        self.unit.writer.declare(name, f"declare {result} @{quoted(name)}({types})")
        return self._call(call_text("", result, name, arguments), result)

    def builtin(
        self, name: str, result: str, *arguments: tuple[str, str], convergent: bool = False, pure: bool = False
    ) -> str:
        types = ", ".join(kind for kind, _ in arguments)
        attributes = (" convergent" if convergent else "") + " nounwind" + (" willreturn memory(none)" if pure else "")
        convention = self.target.function_convention
        self.unit.writer.declare(name, f"declare {convention} {result} @{quoted(name)}({types}){attributes}")
        return self._call(call_text(convention, result, name, arguments, attributes), result)

    def _call(self, text: str, result: str) -> str:
        if result == "void":
            self.w.void(text)
            return ""
        return self.w.op(text)

    def declare(self, name: str, text: str) -> None:
        self.unit.writer.declare(name, text)

    def block(self, hint: str = "b") -> str:
        return self.w.fresh(f"{hint}.")

    def start(self, label: str) -> None:
        self.w.start(label)

    def branch(self, label: str) -> None:
        self.w.branch(label)

    def cond(self, condition: str, then: str, otherwise: str) -> None:
        self.w.cond(condition, then, otherwise)

    def slot(self, llvm_type: str, align: int = 0) -> str:
        return self.w.alloca(llvm_type, align, self.target.space("local"))

    def flag(self, name: str) -> str:
        found = self.flags.get(name)
        if found is None:
            found = self.flags[name] = self.slot("i32")
        return found

    # --- Context: the kernel around ---

    @property
    def flat(self) -> bool:
        return self.unit.flat

    def kernel_needs(self, capability: str) -> None:
        self.unit.uses.add(capability)

    def unsupported(self, reason: str, hint: str | None = None) -> NoReturn:
        text = f"{self.instruction.opcode}: {reason}" if self.instruction.opcode.name else reason
        self.unit.unsupported(self.instruction.offset, text, hint, self.routine.function.name)
