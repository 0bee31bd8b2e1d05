"""Calls of device functions (section 9.7.12.5)."""

from __future__ import annotations

from zluda.compiler.lower import control
from zluda.compiler.lower.body import is_scalar
from zluda.compiler.lower.context import LLVM_TYPES
from zluda.compiler.lower.function import FunctionLowering, structural
from zluda.compiler.lower.scan import callee
from zluda.compiler.lower.unit import Routine, hidden_parameters
from zluda.compiler.lower.values import Value
from zluda.compiler.lower.writer import call_text
from zluda.ptx.tree import Group, Name, Operand, Variable

SYSTEM = frozenset(["__assertfail"])
"""Functions of the CUDA runtime that are called by name without a body."""


@structural("call")
def call(c: FunctionLowering) -> None:
    name = callee(c.instruction)
    place = next((i for i, o in enumerate(c.operands) if isinstance(o, Name)), 0)
    results = _group(c.operands[place - 1]) if place else ()
    arguments = _group(c.operands[place + 1]) if len(c.operands) > place + 1 else ()
    candidates = c.unit.indirect.get(c.instruction.offset)
    if candidates is not None:
        _call_indirect(c, Name(name or ""), candidates, results, arguments)
        return
    routine = c.unit.routines.get(name or "")
    if routine is None:
        if name in SYSTEM:
            c.target.trap(c)
            return
        c.unsupported(f"nothing here is called {name}")
    for operand, value in zip(results, _invoke(c, routine, results, arguments), strict=True):
        if value is not None:
            _receive(c, operand, value)


def _call_indirect(
    c: FunctionLowering,
    register: Name,
    candidates: tuple[str, ...],
    results: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> None:
    """A call through a register: a switch over the numbers that are the addresses of the functions it may hold."""
    wrong, join = c.block("wrong"), c.block("called")
    number = c.get(register, "u64")
    labels = [c.block("case") for _ in candidates]
    cases = " ".join(
        f"i64 {c.unit.data.functions[name]}, label %{label}" for name, label in zip(candidates, labels, strict=True)
    )
    c.w.terminate(f"switch i64 {number}, label %{wrong} [ {cases} ]")
    slots: dict[int, tuple[str, str]] = {}
    # What is read for one case must not be taken for known in another.
    saved, computed = dict(c.local), dict(c.computed)
    for name, label in zip(candidates, labels, strict=True):
        c.local, c.computed = dict(saved), dict(computed)
        c.start(label)
        for place, value in enumerate(_invoke(c, c.unit.routines[name], results, arguments)):
            if value is None:
                continue
            kind = value.type if not value.is_pointer else "i64"
            pointer, _ = slots.setdefault(place, (c.slot(kind), kind))
            c.void(f"store {kind} {c.as_type(value, kind)}, {c.stack} {pointer}")
        c.branch(join)
    c.start(wrong)
    c.target.trap(c)
    c.local, c.computed = saved, computed
    c.start(join)
    for place, (pointer, kind) in slots.items():
        _receive(c, results[place], Value(kind, c.op(f"load {kind}, {c.stack} {pointer}")))


def _invoke(
    c: FunctionLowering, routine: Routine, results: tuple[Operand, ...], arguments: tuple[Operand, ...]
) -> list[Value | None]:
    """Call a function; its scalar results, None for aggregates, which are where the caller wants them."""
    function, signature = routine.function, routine.signature
    assert signature is not None
    if len(arguments) != len(function.parameters) or len(results) != len(function.returns):
        c.unsupported(
            f"{function.name} takes {len(function.parameters)} arguments and gives {len(function.returns)} results, "
            f"here are {len(arguments)} and {len(results)}"
        )
    passed = [
        (kind, _argument(c, operand, kind, variable, routine))
        for operand, variable, kind in zip(arguments, function.parameters, signature.parameters, strict=True)
    ]
    outs: list[str] = []
    if signature.out:
        outs = [_out(c, operand, variable) for operand, variable in zip(results, function.returns, strict=True)]
        passed.extend((c.stack, pointer) for pointer in outs)
    passed.extend(hidden_parameters(c.unit, signature.hidden))
    convergent = " convergent" if routine.convergent else ""
    text = call_text(c.target.function_convention, signature.result, signature.name, passed, convergent)
    found: list[Value | None] = []
    if signature.result == "void":
        c.void(text)
    else:
        found.append(Value(signature.result, c.op(text)))
    for variable, pointer in zip(function.returns, outs, strict=False):
        kind = LLVM_TYPES[variable.type]
        found.append(Value(kind, c.op(f"load {kind}, {c.stack} {pointer}")) if is_scalar(variable) else None)
    if "exit" in signature.hidden:
        _leave_if_ended(c)
    return found


def _group(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Group) else ()


def _argument(c: FunctionLowering, operand: Operand, kind: str, variable: Variable, routine: Routine) -> str:
    if not is_scalar(variable):
        if not isinstance(operand, Name):
            c.unsupported("an aggregate is passed by the name of a .param variable")
        found = c.address_of(operand)
        if not found.is_pointer:
            c.unsupported(f"{operand.name} is no .param variable")
        return c.space_cast(found, "local").name
    if kind.startswith("ptr"):
        value = c.value(operand.name) if isinstance(operand, Name) else Value("i64", c.get(operand, "u64"))
        return c.coerce(value, routine.classes[variable.name]).name
    return c.as_type(_scalar(c, operand, variable), kind)


def _scalar(c: FunctionLowering, operand: Operand, variable: Variable) -> Value:
    if isinstance(operand, Name):
        return c.value(operand.name)
    return Value(LLVM_TYPES[variable.type], c.get(operand, variable.type))


def _out(c: FunctionLowering, operand: Operand, variable: Variable) -> str:
    """Where a result that goes through a pointer is written: the caller's .param variable, or a slot for a scalar."""
    if is_scalar(variable):
        return c.slot(LLVM_TYPES[variable.type])
    if not isinstance(operand, Name):
        c.unsupported("an aggregate is returned to the name of a .param variable")
    return c.address_of(operand).name


def _receive(c: FunctionLowering, operand: Operand, value: Value) -> None:
    if isinstance(operand, Name) and operand.name != "_":
        held = c.widened(operand.name, value)
        c.write(operand.name, held)


def _leave_if_ended(c: FunctionLowering) -> None:
    flag = c.op(f"load i8, {c.ptr('local')} %exit")
    ended, alive = c.block("ended"), c.block("alive")
    c.cond(c.op(f"icmp ne i8 {flag}, 0"), ended, alive)
    c.start(ended)
    control.abandon(c)
    c.start(alive)
