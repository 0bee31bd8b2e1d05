"""A function's body without its nesting: one list of instructions, unique names, what each reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from zluda.ptx.errors import PtxSyntaxError, PtxUnsupported
from zluda.ptx.source import Source
from zluda.ptx.tree import (
    Address,
    Block,
    Component,
    Element,
    Float,
    Function,
    Group,
    Guard,
    Instruction,
    Integer,
    Label,
    Name,
    Negative,
    Not,
    Offset,
    Operand,
    Pair,
    Prototype,
    Space,
    Statement,
    Targets,
    Variable,
    Vector,
)

NO_RESULT = frozenset(
    [
        "st",
        "stu",
        "red",
        "bar",
        "barrier",
        "bra",
        "brx",
        "call",
        "ret",
        "exit",
        "trap",
        "brkpt",
        "membar",
        "fence",
        "prefetch",
        "prefetchu",
        "discard",
        "applypriority",
        "nanosleep",
        "pmevent",
        "sust",
        "sured",
        "stmatrix",
        "cp",
        "griddepcontrol",
        "setmaxnreg",
        "stackrestore",
        "multimem",
        "tensormap",
        "clusterlaunchcontrol",
    ]
)
"""Opcodes without a destination register, whatever their first operand is."""

_WITH_RESULT = (("bar", "red"), ("barrier", "red"), ("multimem", "ld_reduce"))


@dataclass(slots=True)
class Body:
    """The body of one function."""

    function: Function
    source: Source
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    """Label to the index of the instruction it stands before (the length of the list at the end)."""
    registers: dict[str, str] = field(default_factory=dict)
    """Register to its type; scalar parameters of device functions and of calls count as registers."""
    variables: dict[str, Variable] = field(default_factory=dict)
    """Everything else that is declared inside: .local, .shared, .param aggregates."""
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    families: dict[str, tuple[str, int]] = field(default_factory=dict)
    accesses: dict[int, tuple[Instruction, list[str], list[str]]] = field(default_factory=dict)
    """What `writes` and `reads` found before, by the instruction's identity."""
    parameters: set[str] = field(default_factory=set)
    """Those registers that are scalar `.param` variables in truth: st.param writes them, ld.param reads them."""

    def register_type(self, name: str) -> str | None:
        """The type of a register, None when the name is none."""
        found = self.registers.get(name)
        if found is None:
            prefix = name.rstrip("0123456789")
            family = self.families.get(prefix)
            if family is not None and len(prefix) < len(name) and int(name[len(prefix) :]) < family[1]:
                found = self.registers[name] = family[0]
        return found


def is_scalar(variable: Variable) -> bool:
    return not variable.shape and variable.vector == 1


class _Scope:
    """What names mean inside one `{ }`: those that had to be renamed, since everything ends up in one list."""

    __slots__ = ("families", "names")

    def __init__(self, outer: _Scope | None = None) -> None:
        self.names: dict[str, str] = dict(outer.names) if outer else {}
        self.families: dict[str, list[tuple[str, int]]] = dict(outer.families) if outer else {}
        """Prefix of a parameterised set to its new prefix and size, the innermost set last."""

    def __bool__(self) -> bool:
        return bool(self.names or self.families)

    def resolve(self, name: str) -> str:
        found = self.names.get(name)
        if found is None and self.families:
            prefix = name.rstrip("0123456789")
            if prefix != name:
                for renamed, count in reversed(self.families.get(prefix, ())):
                    if int(name[len(prefix) :]) < count:
                        return renamed + name[len(prefix) :]
        return found or name


class _Flattener:
    def __init__(self, function: Function, source: Source) -> None:
        self.body = Body(function, source)
        self.taken: set[str] = set()
        self.serial = 0
        self.outermost = _Scope()

    def error(self, offset: int, message: str) -> PtxSyntaxError:
        return PtxSyntaxError(self.body.source, offset, message, function=self.body.function.name)

    def run(self) -> Body:
        body, function = self.body, self.body.function
        for variable in function.parameters + function.returns:
            self.taken.add(variable.name)
            if variable.space is Space.REG or (not function.entry and is_scalar(variable)):
                body.registers[variable.name] = variable.type
                if variable.space is Space.PARAM:
                    body.parameters.add(variable.name)
            else:
                body.variables[variable.name] = variable
        self.walk(function.body or [], self.outermost)
        return body

    def declare(self, name: str, scope: _Scope) -> str:
        """A unique name for one declared in a scope."""
        if name not in self.taken and not scope.families and self.body.register_type(name) is None:
            self.taken.add(name)
            scope.names.pop(name, None)
            return name
        unique = scope.names[name] = f"{name}{self.mark()}"
        self.taken.add(unique)
        return unique

    def mark(self) -> str:
        # '!' is in no PTX identifier, and stands last so that no digit ends the name: it is no member of a family.
        self.serial += 1
        return f"!{self.serial}!"

    def walk(self, statements: list[Statement], scope: _Scope) -> None:
        body = self.body
        for statement in statements:
            if isinstance(statement, Variable):
                self.variable(statement, scope)
            elif isinstance(statement, Label | Targets | Prototype):
                self.declare(statement.name, scope)
        for statement in statements:
            if isinstance(statement, Instruction):
                body.instructions.append(_renamed(statement, scope.resolve) if scope else statement)
            elif isinstance(statement, Label):
                name = scope.resolve(statement.name)
                if name in body.labels:
                    raise self.error(statement.offset, f"the label {statement.name} is defined twice")
                body.labels[name] = len(body.instructions)
            elif isinstance(statement, Block):
                self.walk(statement.statements, _Scope(scope))
            elif isinstance(statement, Targets):
                body.targets[scope.resolve(statement.name)] = tuple(scope.resolve(t) for t in statement.targets)
            elif isinstance(statement, Prototype):
                body.prototypes[scope.resolve(statement.name)] = statement

    def variable(self, variable: Variable, scope: _Scope) -> None:
        body = self.body
        if variable.space is Space.REG:
            if variable.vector != 1 or variable.shape:
                raise PtxUnsupported(
                    body.source, variable.offset, "vector registers are not lowered", function=body.function.name
                )
            if variable.count is None:
                body.registers[self.declare(variable.name, scope)] = variable.type
                return
            prefix = variable.name
            if prefix in body.families or scope is not self.outermost:
                prefix += self.mark()
                outer = scope.families.get(variable.name, [])
                scope.families[variable.name] = [*outer, (prefix, variable.count)]
            body.families[prefix] = (variable.type, variable.count)
            return
        name = self.declare(variable.name, scope)
        if variable.space is Space.PARAM and is_scalar(variable):
            body.registers[name] = variable.type
            body.parameters.add(name)
        else:
            body.variables[name] = variable if name == variable.name else replace(variable, name=name)


def flatten(function: Function, source: Source) -> Body:
    """The body of a function with names made unique. Raises PtxSyntaxError, PtxUnsupported."""
    return _Flattener(function, source).run()


def _renamed(instruction: Instruction, resolve: Callable[[str], str]) -> Instruction:
    guard = instruction.guard
    if guard is not None:
        guard = Guard(resolve(guard.name), guard.negated)
    operands = tuple(renamed_operand(o, resolve) for o in instruction.operands)
    return Instruction(instruction.offset, instruction.opcode, operands, guard)


def renamed_operand(operand: Operand, resolve: Callable[[str], str]) -> Operand:
    """An operand with other names."""
    match operand:
        case Name(name):
            new = resolve(name)
            return operand if new == name else Name(new)
        case Component(name, component):
            return Component(resolve(name), component)
        case Not(inner):
            return Not(Name(resolve(inner.name)))
        case Negative(inner):
            renamed = renamed_operand(inner, resolve)
            assert isinstance(renamed, Name | Component)
            return Negative(renamed)
        case Offset(name, offset):
            return Offset(resolve(name), offset)
        case Element(name, index, offset):
            return Element(resolve(name), Name(resolve(index.name)) if index else None, offset)
        case Address(base, offset, extra):
            inner_base = renamed_operand(base, resolve) if base is not None else None
            assert inner_base is None or isinstance(inner_base, Name | Component)
            return Address(inner_base, offset, tuple(renamed_operand(o, resolve) for o in extra))
        case Vector(items):
            return Vector(tuple(renamed_operand(o, resolve) for o in items))
        case Group(items):
            return Group(tuple(renamed_operand(o, resolve) for o in items))
        case Pair(first, second):
            return Pair(renamed_operand(first, resolve), renamed_operand(second, resolve))
        case _:
            return operand


# --- what an instruction reads and writes ---------------------------------------------------------------


def names(operand: Operand) -> Iterator[str]:
    """All identifiers in an operand."""
    match operand:
        case Name(name) | Component(name, _) | Offset(name, _):
            yield name
        case Not(inner) | Negative(inner):
            yield inner.name
        case Element(name, index, _):
            yield name
            if index is not None:
                yield index.name
        case Address(base, _, extra):
            if base is not None:
                yield from names(base)
            for item in extra:
                yield from names(item)
        case Vector(items) | Group(items):
            for item in items:
                yield from names(item)
        case Pair(first, second):
            yield from names(first)
            yield from names(second)


def has_result(instruction: Instruction) -> bool:
    """Whether the first operand is written."""
    opcode = instruction.opcode
    if not instruction.operands or isinstance(instruction.operands[0], Address):
        return False
    if opcode.name not in NO_RESULT:
        return True
    return bool(opcode.modifiers) and any(name == opcode.name and m in opcode.modifiers for name, m in _WITH_RESULT)


def writes(instruction: Instruction, body: Body) -> list[str]:
    """Registers that an instruction writes, scalar parameters among them."""
    return _accesses(instruction, body)[1]


def reads(instruction: Instruction, body: Body) -> list[str]:
    """Registers that an instruction reads, its guard among them."""
    return _accesses(instruction, body)[2]


def _accesses(instruction: Instruction, body: Body) -> tuple[Instruction, list[str], list[str]]:
    known = body.accesses.get(id(instruction))
    if known is None:
        # Holding the instruction keeps its identity from being given to another.
        written = _writes(instruction, body)
        known = body.accesses[id(instruction)] = (instruction, written, _reads(instruction, body, written))
    return known


def _writes(instruction: Instruction, body: Body) -> list[str]:
    opcode, operands = instruction.opcode, instruction.operands
    if opcode.name == "st":
        base = operands[0].base if isinstance(operands[0], Address) else None
        return [base.name] if isinstance(base, Name) and base.name in body.parameters else []
    if opcode.name == "call":
        written = isinstance(operands[0], Group) and len(operands) > 1
    else:
        written = has_result(instruction)
    return _registers(operands[:1], body) if written else []


def _reads(instruction: Instruction, body: Body, written: list[str]) -> list[str]:
    opcode, operands = instruction.opcode, instruction.operands
    if opcode.name == "call":
        first = 1 if isinstance(operands[0], Group) and len(operands) > 1 else 0
    elif opcode.name == "st":
        first = 1 if written else 0
    else:
        first = 1 if has_result(instruction) else 0
    found = _registers(operands[first:], body)
    if instruction.guard is not None and body.register_type(instruction.guard.name) is not None:
        found.append(instruction.guard.name)
    if opcode.name == "ret":
        found.extend(v.name for v in body.function.returns if v.name in body.registers)
    return found


def _registers(operands: tuple[Operand, ...], body: Body) -> list[str]:
    found = []
    for operand in operands:
        if isinstance(operand, Name):
            if body.register_type(operand.name) is not None:
                found.append(operand.name)
        elif not isinstance(operand, Integer | Float):
            found.extend(n for n in names(operand) if body.register_type(n) is not None)
    return found
