"""atom and red (section 9.7.13): scalars of 16, 32 and 64 bits in global, shared and generic memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zluda.compiler.lower.context import Context, llvm_type, lowers, width
from zluda.compiler.lower.ops import floating
from zluda.compiler.lower.ops._emit import elementwise, from_bits, is_float, select, target, to_bits
from zluda.ptx.tree import Name, Operand

_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
_FAILURE = {"monotonic": "monotonic", "acquire": "acquire", "release": "monotonic", "acq_rel": "acquire"}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_SPACES = {"global": "global", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared"}
_DIRECT = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg"}


class _Place:
    """Where an atomic works, and how: pointer, scope and order."""

    def __init__(self, c: Context, address: Operand, access_bytes: int) -> None:
        space = next((_SPACES[m] for m in c.mods if m in _SPACES), "generic")
        self.pointer, self.type = c.pointer(address, space, access_bytes)
        self.scope = c.target.sync_scope(next((m for m in c.mods if m in _SCOPES), "gpu"))
        self.order = next((_ORDERS[m] for m in c.mods if m in _ORDERS), "monotonic")

    def update(self, c: Context, operation: str, llvm: str, value: str) -> str:
        """atomicrmw; the old value."""
        align = _bytes(llvm)
        return c.op(
            f"atomicrmw {operation} {self.type} {self.pointer}, {llvm} {value} {self.scope}{self.order}, align {align}"
        )

    def exchange(self, c: Context, llvm: str, expected: str, value: str) -> tuple[str, str]:
        """cmpxchg; (the old value, an i1 that tells whether it was the expected one)."""
        pair = c.op(
            f"cmpxchg {self.type} {self.pointer}, {llvm} {expected}, {llvm} {value} "
            f"{self.scope}{self.order} {_FAILURE[self.order]}, align {_bytes(llvm)}"
        )
        result = f"{{ {llvm}, i1 }} {pair}"
        return c.op(f"extractvalue {result}, 0"), c.op(f"extractvalue {result}, 1")

    def loop(self, c: Context, llvm: str, compute: Callable[[str], str]) -> str:
        """Replaces a word by a function of it, by compare-and-swap until nobody came between; the old word."""
        seen_slot = c.slot(llvm)
        start = c.op(f"load atomic {llvm}, {self.type} {self.pointer} {self.scope}monotonic, align {_bytes(llvm)}")
        c.void(f"store {llvm} {start}, ptr {seen_slot}")
        again, done = c.block("again"), c.block("done")
        c.branch(again)
        c.start(again)
        seen = c.op(f"load {llvm}, ptr {seen_slot}")
        old, won = self.exchange(c, llvm, seen, compute(seen))
        c.void(f"store {llvm} {old}, ptr {seen_slot}")
        c.cond(won, done, again)
        c.start(done)
        return c.op(f"load {llvm}, ptr {seen_slot}")


def _bytes(llvm: str) -> int:
    return {"float": 4, "double": 8}.get(llvm) or int(llvm[1:]) // 8


@lowers("atom", "red")
def atomic(c: Context) -> None:
    result = c.operands[0] if c.name == "atom" else None
    address, *operands = c.operands[1:] if c.name == "atom" else c.operands
    operation = next((m for m in c.mods if m in _OPERATIONS), None)
    type = c.type
    if operation is None or c.has("async") or any(m.startswith("v") and m[1:].isdigit() for m in c.mods):
        c.unsupported(f"{c.instruction.opcode} is not lowered")
    if type == "b128" or "mmio" in c.mods or any("mbarrier" in m for m in c.mods):
        c.unsupported(f"{c.instruction.opcode} is not lowered")
    bits = width(type)
    if bits == 64:
        c.kernel_needs("atomics.int64")
    if bits == 16:
        old = _halfword(c, operation, type, address, operands)
    elif operation == "cas":
        place = _Place(c, address, bits // 8)
        llvm = f"i{bits}"
        expected, value = (c.get(operand, f"b{bits}") for operand in operands[:2])
        old, _ = place.exchange(c, llvm, expected, value)
        type = f"b{bits}"
    else:
        place = _Place(c, address, bits // 8)
        old = _update(c, place, operation, type, operands[0])
    if result is not None and not (isinstance(result, Name) and result.name == "_"):
        c.set(result, type, old)


def _update(c: Context, place: _Place, operation: str, type: str, operand: Operand) -> str:
    """The old value, of the LLVM type of `type`."""
    llvm = f"i{width(type)}"
    if is_float(type) or type in ("f16x2", "bf16x2"):
        return _update_float(c, place, operation, type, operand)
    value = c.get(operand, type)
    if operation in _DIRECT:
        return place.update(c, _DIRECT[operation], llvm, value)
    if operation in ("min", "max"):
        return place.update(c, ("" if type[0] == "s" else "u") + operation, llvm, value)
    if operation == "inc":
        # d = (old >= b) ? 0 : old + 1
        return place.loop(
            c,
            llvm,
            lambda old: select(c, c.op(f"icmp uge {llvm} {old}, {value}"), llvm, "0", c.op(f"add {llvm} {old}, 1")),
        )

    def decrease(old: str) -> str:
        # d = (old == 0 || old > b) ? b : old - 1
        zero = c.op(f"icmp eq {llvm} {old}, 0")
        above = c.op(f"icmp ugt {llvm} {old}, {value}")
        return select(c, c.op(f"or i1 {zero}, {above}"), llvm, value, c.op(f"sub {llvm} {old}, 1"))

    return place.loop(c, llvm, decrease)


def _update_float(c: Context, place: _Place, operation: str, type: str, operand: Operand) -> str:
    llvm = llvm_type(type)
    value = c.get(operand, type)
    if operation not in ("add", "min", "max"):
        c.unsupported(f"{c.instruction.opcode} does not exist")
    if operation == "add" and llvm in target(c).float_atomics:
        return place.update(c, "fadd", llvm, value)
    old = place.loop(c, f"i{width(type)}", lambda word: _float_step(c, operation, type, word, value))
    return from_bits(c, type, old)


def _float_step(c: Context, operation: str, type: str, word: str, value: str) -> str:
    """The bits of the new value from the bits of the old one."""
    if operation != "add":
        c.unsupported(f"{c.instruction.opcode} is not lowered")
    old = from_bits(c, type, word)

    def add(element: str, values: Sequence[str]) -> str:
        floating.need(c, element)
        return floating.arithmetic(c, "add", element, values[0], values[1], "rn")

    return to_bits(c, type, elementwise(c, type, [old, value], add))


def _halfword(c: Context, operation: str, type: str, address: Operand, operands: list[Operand]) -> str:
    """16-bit atomics work on the 32-bit word around: devices have none of their own."""
    place = _Place(c, address, 2)
    raw = c.op(f"ptrtoint {place.type} {place.pointer} to i64")
    offset = c.op(f"and i64 {raw}, 2")
    place.pointer = c.op(f"getelementptr i8, {place.type} {place.pointer}, i64 {c.op(f'sub i64 0, {offset}')}")
    shift = c.op(f"trunc i64 {c.op(f'shl i64 {offset}, 3')} to i32")
    mask = c.op(f"shl i32 65535, {shift}")
    kept_mask = c.op(f"xor i32 {mask}, -1")
    values = [c.get(operand, type) for operand in operands[:2]]

    def part(word: str) -> str:
        return c.op(f"trunc i32 {c.op(f'lshr i32 {word}, {shift}')} to i16")

    def compute(word: str) -> str:
        old = part(word)
        if operation == "cas":
            same = c.op(f"icmp eq i16 {old}, {values[0]}")
            new = select(c, same, "i16", values[1], old)
        elif operation == "exch":
            new = to_bits(c, type, values[0])
        elif operation == "add" and is_float(type):
            new = _float_step(c, "add", type, old, values[0])
        else:
            c.unsupported(f"{c.instruction.opcode} is not lowered")
        raised = c.op(f"shl i32 {c.op(f'zext i16 {new} to i32')}, {shift}")
        return c.op(f"or i32 {c.op(f'and i32 {word}, {kept_mask}')}, {raised}")

    return from_bits(c, type, part(place.loop(c, "i32", compute)))
