"""Addresses: from what a register holds to an LLVM pointer, and arithmetic that keeps pointers pointers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from typing import cast as cast_type

from zluda.compiler.lower import sums
from zluda.compiler.lower.affine import Affine, fits, wrapped
from zluda.compiler.lower.body import Body
from zluda.compiler.lower.provenance import CLASSES
from zluda.compiler.lower.unit import Routine, Unit, pointer_type
from zluda.compiler.lower.values import SHARED, Value, cast, is_literal
from zluda.compiler.lower.writer import FunctionWriter
from zluda.compiler.target.base import Target
from zluda.ptx.layout import SIZES, size_of
from zluda.ptx.tree import Address, Element, Linkage, Name, Offset, Operand, Space

UNITS = {1: "i8", 2: "i16", 4: "i32", 8: "i64", 16: "<4 x i32>"}
"""Types to count an index in, by their bytes."""

_EXACT_OFFSET = 1 << 24
"""Offsets below this are added after a 32-bit shared address is widened: nothing that lies in a block can wrap then."""


if TYPE_CHECKING:
    from zluda.compiler.lower.function import FunctionLowering


class Addressing:
    """The part of FunctionLowering that deals in addresses."""

    unit: Unit
    routine: Routine
    body: Body
    target: Target
    w: FunctionWriter
    places: dict[str, str]

    def unsupported(self, reason: str, hint: str | None = None) -> NoReturn:
        raise NotImplementedError

    def value(self, name: str) -> Value:
        raise NotImplementedError

    def ptr(self, space: str) -> str:
        """The LLVM pointer type of a space."""
        return pointer_type(self.target, space)

    def further(self, pointer: Value, distance: Affine) -> Value:
        """A pointer or shared offset some bytes further on, counted from where its root is."""
        if pointer.type == SHARED:
            known = sums.of_value(Value("i64", pointer.name, pointer.affine))
            whole = known.plus(distance) if known is not None else None
            step = self.add_offset(sums.total(self.lowering, distance), distance.constant)
            number = step if pointer.name == "0" else self.w.op(f"add i64 {pointer.name}, {step}")
            return Value(SHARED, number, whole)
        base = pointer.affine or Affine(64)
        whole = base.plus(distance)
        root = pointer.root or pointer.name
        if whole is None:
            root, whole = pointer.name, distance
        name = root
        if whole.terms:
            unit = whole.granule
            index = sums.total(self.lowering, whole, unit)
            name = self.lowering.once(f"getelementptr {UNITS[unit]}, {pointer.type} {root}, i64 {index}")
        if whole.constant:
            name = self.lowering.once(f"getelementptr i8, {pointer.type} {name}, i64 {whole.constant}")
        return Value(pointer.type, name, whole, root)

    @property
    def lowering(self) -> FunctionLowering:
        return cast_type("FunctionLowering", self)

    # --- one pointer as another ---

    def space_cast(self, value: Value, space: str) -> Value:
        """A pointer in another address space, by way of the generic one."""
        want, generic = self.ptr(space), self.ptr("generic")
        if value.type == want:
            return value
        if value.type != generic and want != generic:
            value = self.space_cast(value, "generic")
        return Value(want, self.w.op(f"addrspacecast {value.type} {value.name} to {want}"))

    def coerce(self, value: Value, space: str) -> Value:
        """A value as a register of a class keeps it: a pointer, or an offset for `shared`."""
        if space == "shared":
            return Value(SHARED, self.shared_offset(value))
        if value.type == SHARED:
            value = self.shared_pointer(value.name)
        if value.is_pointer:
            return self.space_cast(value, space)
        number = cast(self.w, value, "i64")
        want = self.ptr(space)
        if number == "0":
            return Value(want, "null")
        return Value(want, self.w.op(f"inttoptr i64 {number} to {want}"))

    def generic_number(self, value: Value) -> str:
        """A pointer or shared offset as the i64 that a program sees as its generic address."""
        if value.type == SHARED:
            self.unit.shared_escapes = True
            if self.unit.integer_shared:
                return self.w.op(f"add i64 {self.shared_base()}, {value.name}")
            value = self.shared_pointer(value.name)
        if value.name == "null":
            return "0"
        if value.type == self.ptr("local") or value.type == self.ptr("shared"):
            value = self.space_cast(value, "generic")
        return self.w.op(f"ptrtoint {value.type} {value.name} to i64")

    # --- shared memory ---

    def shared_base(self) -> str:
        """The shared block's address as a number."""
        return self.w.op(f"ptrtoint {self.ptr('shared')} %shared to i64")

    def shared_pointer(self, offset: str) -> Value:
        """A pointer into the shared block; offset is an i64."""
        kind = self.ptr("shared")
        if self.unit.integer_shared:
            number = self.w.op(f"add i64 {self.shared_base()}, {offset}")
            return Value(kind, self.w.op(f"inttoptr i64 {number} to {kind}"))
        if offset == "0":
            return Value(kind, "%shared")
        return Value(kind, self.w.op(f"getelementptr inbounds i8, {kind} %shared, i64 {offset}"))

    def shared_offset(self, value: Value) -> str:
        """The i64 offset into the shared block of a generic address."""
        if value.type == SHARED:
            return value.name
        pointer = value if value.is_pointer else self.coerce(value, "generic")
        pointer = self.space_cast(pointer, "shared")
        number = self.w.op(f"ptrtoint {pointer.type} {pointer.name} to i64")
        return self.w.op(f"sub i64 {number}, {self.shared_base()}")

    # --- named variables ---

    def address_of(self, operand: Name | Offset) -> Value:
        """The address of a variable (a pointer; the offset, an i64, of a shared one) or the number of a function."""
        name = operand.name
        offset = operand.offset if isinstance(operand, Offset) else 0
        variable = self.unit.variable(self.body, name)
        if variable is None:
            number = self.unit.data.functions.get(name)
            if number is None:
                self.unsupported(f"nothing here is called {name}")
            return Value("i64", str(number + offset))
        if variable.space is Space.SHARED:
            return Value("i64", str(self.shared_place(name) + offset))
        if variable.space in (Space.GLOBAL, Space.CONST):
            place = self.unit.data.places.get(name)
            if place is None:
                if variable.linkage is Linkage.EXTERN:
                    self.unsupported(
                        f"{name} is extern and this module does not define it",
                        "link the module with the one that defines it",
                    )
                self.unsupported(f"{name} is declared where variables of its kind are not lowered")
            return self.moved(Value(self.ptr("global"), "%module"), place.offset + offset)
        if name in self.places:
            return self.moved(Value(self.ptr("local"), self.places[name]), offset)
        if variable.space is Space.LOCAL:
            align = max(variable.align or 0, SIZES[variable.type] * variable.vector)
            size = size_of(variable)
            if variable is self.unit.variables.get(name):
                self.unsupported(f"{name} is a .local variable outside of functions, which is not lowered")
            space = self.target.space("local")
            self.places[name] = self.w.alloca(f"[{size} x i8]", align, space)
            return self.moved(Value(self.ptr("local"), self.places[name]), offset)
        if variable.space is Space.PARAM:
            space = self.target.space("local")
            align = max(variable.align or 0, 8)
            self.places[name] = self.w.alloca(f"[{size_of(variable)} x i8]", align, space)
            return self.moved(Value(self.ptr("local"), self.places[name]), offset)
        self.unsupported(f"{name} is a .{variable.space.value} variable, whose address is not lowered")

    def shared_place(self, name: str) -> int:
        return self.unit.shared.offset(self.routine.function.name, name)

    def moved(self, pointer: Value, offset: int) -> Value:
        """A pointer or shared offset some bytes further on."""
        if not offset:
            return pointer
        return self.further(pointer, Affine(64, offset))

    def add_offset(self, number: str, offset: int) -> str:
        if is_literal(number):
            return str(int(number) + offset)
        return self.w.op(f"add i64 {number}, {offset}") if offset else number

    # --- address operands ---

    def pointer(self, address: Operand, space: str, access_bytes: int) -> tuple[str, str]:
        """Context.pointer: also takes an Element."""
        found = self.access(address, space.partition("::")[0], access_bytes)
        return found.name, found.type

    def access(self, address: Operand, space: str, size: int) -> Value:
        """The pointer that an address operand means, for an access of so many bytes to a state space."""
        if isinstance(address, Element):
            return self._element(address, space)
        if not isinstance(address, Address):
            self.unsupported("an address in brackets belongs here")
        base = address.base
        if base is None:
            if space == "shared":
                return self.shared_pointer(str(address.offset))
            return self.coerce(Value("i64", str(address.offset)), "global" if space == "const" else space)
        if not isinstance(base, Name):
            self.unsupported("an address of this kind is not lowered")
        if self.body.register_type(base.name) is None and not base.name.startswith("%"):
            found = self.address_of(Offset(base.name, address.offset))
            if self.unit.space_of(self.body, base.name) is Space.SHARED:
                return self.shared_pointer(found.name)
            if not found.is_pointer:
                self.unsupported(f"{base.name} is no variable")
            return found
        return self._based(self.value(base.name), address.offset, space, size)

    def _based(self, value: Value, offset: int, space: str, size: int) -> Value:
        if space == "shared" or value.type == SHARED:
            return self._in_shared(value, offset, size)
        if not value.is_pointer:
            if value.type != "i64":
                self.unsupported("a 32-bit address outside of shared memory", "declare `.address_size 64`")
            value = self.coerce(value, CLASSES.get(space, "generic") if space != "local" else "generic")
        value = self.moved(value, offset)
        wanted = CLASSES.get(space)
        if wanted == "global":
            return self.space_cast(value, "global")
        return value

    def _in_shared(self, value: Value, offset: int, size: int) -> Value:
        """A pointer into the shared block from an address in the shared window, or from a shared pointer's offset."""
        if value.is_pointer:
            # A register that was taken for a generic pointer holds the window address as its bits.
            value = Value("i64", self.w.op(f"ptrtoint {value.type} {value.name} to i64"))
        elif value.type == SHARED:
            value = Value("i64", value.name, value.affine)
        elif value.type not in ("i32", "i64"):
            value = Value("i32", cast(self.w, value, "i32"))
        if is_literal(value.name):
            return self.shared_pointer(str(int(value.name) + offset))
        if self.unit.integer_shared:
            return self.shared_pointer(self._shared_number(value, offset))
        known = sums.of_value(value)
        assert known is not None
        known = Affine(known.bits, wrapped(known.constant + offset, known.bits), known.terms)
        index = self._element_index(known, size)
        if index is not None:
            kind = self.ptr("shared")
            pointer = self.lowering.once(f"getelementptr inbounds {UNITS[size]}, {kind} %shared, i64 {index}")
            return Value(kind, pointer)
        return self.shared_pointer(self._shared_number(value, offset))

    def _element_index(self, found: Affine, size: int) -> str | None:
        """An address in the shared window as an i64 number of elements; None where that is not exact or no use.

        Values whose range is known make a sum that does not wrap, so dividing their scales is exact. What is left is
        32 bits of a small number of bytes (a block is far smaller than 2^31), and divisible, as accesses are aligned.
        """
        c, ranges = self.lowering, self.lowering.ranges
        if size not in UNITS or size == 1:
            return None
        if found.bits == 32:
            near = tuple((value, scale) for value, scale in found.terms if value in ranges and scale % size == 0)
        else:
            near = tuple((value, scale) for value, scale in found.terms if scale % size == 0)
        if not near:
            return None
        rest = Affine(found.bits, found.constant, tuple(term for term in found.terms if term not in near))
        lanes = Affine(found.bits, 0, near)
        if found.bits == 32:
            if not fits(lanes.interval(ranges), 31):
                return None
            lanes = Affine(64, 0, tuple((sums.extended(c, value, signed=True), scale) for value, scale in near))
        index = sums.total(c, lanes, size)
        if not rest.terms and rest.constant % size == 0 and abs(rest.constant) < _EXACT_OFFSET:
            return self.add_offset(index, rest.constant // size)
        remainder = sums.total(c, rest)
        if rest.constant:
            remainder = c.once(f"add i{rest.bits} {remainder}, {rest.constant}")
        remainder = c.once(f"ashr exact i{rest.bits} {remainder}, {size.bit_length() - 1}")
        if rest.bits == 32:
            remainder = c.once(f"sext i32 {remainder} to i64")
        return c.once(f"add i64 {index}, {remainder}")

    def _shared_number(self, value: Value, offset: int) -> str:
        """The i64 offset in the block of an address in the shared window."""
        name = value.name
        if value.type == "i64":
            return self.add_offset(name, offset)
        if abs(offset) >= _EXACT_OFFSET:
            name, offset = self.w.op(f"add i32 {name}, {offset}"), 0
        return self.add_offset(self.lowering.once(f"sext i32 {name} to i64"), offset)

    def _element(self, element: Element, space: str) -> Value:
        variable = self.unit.variable(self.body, element.name)
        if variable is None:
            self.unsupported(f"nothing here is called {element.name}")
        size = SIZES[variable.type] * variable.vector
        start = self.address_of(Offset(element.name, element.offset * size))
        if element.index is None:
            index = "0"
        else:
            held = self.value(element.index.name)
            index = cast(self.w, held, "i64") if not held.is_pointer else self.generic_number(held)
            index = self.w.op(f"mul i64 {index}, {size}")
        if variable.space is Space.SHARED:
            return self.shared_pointer(self.w.op(f"add i64 {start.name}, {index}"))
        if CLASSES.get(space) not in (None, CLASSES.get(variable.space.value)):
            self.unsupported(f"{element.name} is not in .{space} memory")
        return Value(start.type, self.w.op(f"getelementptr i8, {start.type} {start.name}, i64 {index}"))
