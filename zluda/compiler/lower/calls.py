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


@structural("call")
def call(c: FunctionLowering) -> None:
    name = callee(c.instruction)
    routine = c.unit.routines.get(name) if name is not None else None
    if routine is None or routine.signature is None:
        c.unsupported("calls through a register are not lowered", "call the function by name")
    place = next(i for i, o in enumerate(c.operands) if isinstance(o, Name))
    results = _group(c.operands[place - 1]) if place else ()
    arguments = _group(c.operands[place + 1]) if len(c.operands) > place + 1 else ()
    function, signature = routine.function, routine.signature
    if len(arguments) != len(function.parameters) or len(results) != len(function.returns):
        c.unsupported(
            f"{name} takes {len(function.parameters)} arguments and gives {len(function.returns)} results, "
            f"here are {len(arguments)} and {len(results)}"
        )
    passed = [
        (kind, _argument(c, operand, kind, variable, routine))
        for operand, variable, kind in zip(arguments, function.parameters, signature.parameters, strict=True)
    ]
    outs: list[tuple[Operand, Variable, str]] = []
    if signature.out:
        for operand, variable in zip(results, function.returns, strict=True):
            pointer = _out(c, operand, variable)
            outs.append((operand, variable, pointer))
            passed.append((c.ptr("local"), pointer))
    passed.extend(hidden_parameters(c.unit, signature.hidden))
    convergent = " convergent" if routine.convergent else ""
    text = call_text(c.target.function_convention, signature.result, signature.name, passed, convergent)
    if signature.result == "void":
        c.void(text)
    else:
        _receive(c, results[0], Value(signature.result, c.op(text)))
    for operand, variable, pointer in outs:
        if is_scalar(variable):
            kind = LLVM_TYPES[variable.type]
            _receive(c, operand, Value(kind, c.op(f"load {kind}, {c.ptr('local')} {pointer}")))
    if "exit" in signature.hidden:
        _leave_if_ended(c)


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
