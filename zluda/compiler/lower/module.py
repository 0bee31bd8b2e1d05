"""Kernels of a module with what they reach, each lowered as a unit of its own into one LLVM module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from zluda.backend.info import Argument, ArgumentKind, KernelSignature
from zluda.compiler.kernel import KernelInfo
from zluda.compiler.lower import calls, control, data, flow, leavers, memory, ops, params, roots, scan, shared, webs
from zluda.compiler.lower.body import flatten
from zluda.compiler.lower.function import FunctionLowering
from zluda.compiler.lower.indirect import Candidates
from zluda.compiler.lower.provenance import infer
from zluda.compiler.lower.unit import Routine, Unit, hidden_parameters, signature
from zluda.compiler.lower.values import Value
from zluda.compiler.lower.writer import ModuleWriter, attachments, quoted
from zluda.compiler.target.base import Target
from zluda.ptx import layout
from zluda.ptx.errors import PtxUnsupported
from zluda.ptx.index import ModuleIndex
from zluda.ptx.tree import Function, Instruction, Space, Variable

HANDLER_MODULES = (calls, control, memory, ops)
"""Rooms whose handlers are found in the tables of context and function."""

SUBGROUP_SIZE = 32
"""Lanes of a warp."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """LLVM IR text with what launches need to know of its kernels."""

    ir: str
    kernels: tuple[KernelInfo, ...]


def lower(index: ModuleIndex, entries: Sequence[str], target: Target) -> Lowered:
    """Lower some kernels of a module, and only what they reach.

    Raises PtxUnsupported for what has no lowering, PtxSyntaxError for text the grammar does not allow, KeyError for a
    kernel the module does not have.
    """
    if index.address_size != 64:
        raise PtxUnsupported(
            index.source, 0, "modules with 32-bit addresses are not lowered", hint="compile for 64 bits"
        )
    block = data.layout(index.variables.values(), index.functions)
    writer = ModuleWriter()
    kernels = []
    for entry in entries:
        lowering = _KernelLowering(index, entry, target, block)
        kernels.append(lowering.run(writer))
    return Lowered(writer.render(target.triple, target.datalayout), tuple(kernels))


class _KernelLowering:
    def __init__(self, index: ModuleIndex, entry: str, target: Target, block: data.DataLayout) -> None:
        self.index, self.entry, self.target, self.block = index, entry, target, block
        self._candidates = Candidates(index)

    def run(self, writer: ModuleWriter) -> KernelInfo:
        unit = self._unit(writer)
        functions, info = self._emit(unit)
        if unit.shared_escapes and not unit.integer_shared:
            # A kernel must not make some shared addresses from the block's pointer and some from its number (facts).
            unit.integer_shared = True
            functions, info = self._emit(unit)
        for function in functions:
            writer.add(function)
        return info

    # --- what the kernel reaches ---

    def _unit(self, writer: ModuleWriter) -> Unit:
        index = self.index
        unit = Unit(self.entry, index.source, self.target, writer, self.block, index.variables)
        self._reach(unit, self.entry, index.function(self.entry), [])
        order = _callees_first(unit, self.entry)
        self._needs(unit)
        self._keep_together(unit)
        for name in order:
            routine = unit.routines[name]
            body = routine.body = webs.split(routine.body)
            found = infer(body, partial(unit.space_of, body), partial(_pointer_parameters, unit))
            routine.classes, routine.bases = found.classes, found.bases
            routine.roots = roots.find(body, found)
            if not routine.function.entry:
                routine.signature = signature(unit, routine)
        unit.shared = shared.layout(self._shared_variables(unit))
        self._flatness(unit)
        return unit

    def _reach(self, unit: Unit, name: str, function: Function, path: list[int]) -> None:
        if function.body is None:
            where = path[-1] if path else function.offset
            unit.unsupported(
                where,
                f"{name} has no body in this module",
                "link the module with the one that defines it; the CUDA runtime's own functions are not there yet",
            )
        body = flatten(function, self.index.source)
        found = scan.scan(body, partial(unit.space_of, body), self._is_function)
        unit.routines[name] = Routine(function, body, found)
        for instruction in found.indirect:
            candidates = self._candidates.of_call(body, instruction)
            if not candidates:
                unit.unsupported(
                    instruction.offset, f"{instruction.opcode}: no function of this module fits the call", None, name
                )
            unit.indirect[instruction.offset] = candidates
            found.calls.extend((candidate, instruction.offset) for candidate in candidates)
        for called, offset in found.calls:
            resolved = self.index.aliases.get(called, called)
            if resolved not in unit.routines:
                self._reach(unit, resolved, self.index.function(resolved), [*path, offset])
            if called != resolved:
                unit.routines[called] = unit.routines[resolved]

    def _is_function(self, name: str) -> bool:
        if name in calls.SYSTEM:
            return False
        return name in self.index.functions or name in self.index.aliases

    def _needs(self, unit: Unit) -> None:
        """Hidden arguments and convergence, from what is called too, until nothing changes."""
        own: dict[str, set[str]] = {}
        convergent: dict[str, bool] = {}
        for name, routine in unit.routines.items():
            found = routine.scan
            own[name] = {need for need in ("module", "shared", "block") if getattr(found, need)}
            if found.exit is not None:
                own[name].add("exit")
            convergent[name] = found.warp or found.barrier
        changed = True
        while changed:
            changed = False
            for name, routine in unit.routines.items():
                for called, _ in routine.scan.calls:
                    if own[called] - own[name] or (convergent[called] and not convergent[name]):
                        own[name] |= own[called]
                        convergent[name] |= convergent[called]
                        changed = True
        for name, routine in unit.routines.items():
            routine.needs = frozenset(own[name])
            routine.convergent = convergent[name]

    def _shared_variables(self, unit: Unit) -> list[tuple[str | None, Variable]]:
        """Shared variables that the kernel or what it calls names, with the function that owns each."""
        found: dict[tuple[str | None, str], Variable] = {}
        for routine in unit.routines.values():
            for name in sorted(routine.scan.variables):
                local = routine.body.variables.get(name)
                variable = local or unit.variables[name]
                if variable.space is Space.SHARED:
                    found[routine.function.name if local else None, name] = variable
        return [(owner, variable) for (owner, _), variable in found.items()]

    def _flatness(self, unit: Unit) -> None:
        unit.flat = any(routine.scan.warp for routine in unit.routines.values())
        if unit.flat:
            unit.uses.add("warp")
        else:
            for routine in unit.routines.values():
                routine.needs -= {"block"}
                if routine.signature is not None:
                    routine.signature = signature(unit, routine)

    def _keep_together(self, unit: Unit) -> None:
        """Let threads that leave the kernel early go on to its barriers with the others."""
        barriers = {name for name, routine in unit.routines.items() if routine.scan.barrier}
        changed = True
        while changed:
            before = len(barriers)
            barriers |= {n for n, r in unit.routines.items() if any(called in barriers for called, _ in r.scan.calls)}
            changed = len(barriers) != before
        if not barriers:
            return
        unit.uses.add("barrier")
        for routine in unit.routines.values():
            if routine.scan.exit is not None and not routine.function.entry:
                unit.unsupported(
                    routine.scan.exit,
                    "exit: threads end in a device function of a kernel that has barriers",
                    "return to the kernel and end the thread there",
                    routine.function.name,
                )

        def calls_barrier(instruction: Instruction) -> bool:
            if instruction.opcode.name != "call":
                return False
            called = unit.indirect.get(instruction.offset) or (scan.callee(instruction),)
            return any(name in barriers for name in called)

        kernel = unit.routines[self.entry]
        kernel.body = leavers.keep_together(kernel.body, calls_barrier)

    # --- emission ---

    def _emit(self, unit: Unit) -> tuple[list[str], KernelInfo]:
        texts = []
        for name in _callees_first(unit, self.entry):
            routine = unit.routines[name]
            if not routine.function.entry:
                texts.append(self._device_function(unit, routine))
        text, info = self._kernel(unit, unit.routines[self.entry])
        return [*texts, text], info

    def _device_function(self, unit: Unit, routine: Routine) -> str:
        found = routine.signature
        assert found is not None
        lowering = FunctionLowering(unit, routine, flow.build(routine.body))
        local = lowering.ptr("local")
        arguments: list[tuple[str, str]] = []
        for variable, kind in zip(routine.function.parameters, found.parameters, strict=True):
            name = quoted(f"in.{variable.name}")
            arguments.append((kind, f"%{name}"))
            if variable.name not in routine.body.registers:
                lowering.places[variable.name] = f"%{name}"
        for result in found.out:
            name = quoted(f"out.{result}")
            arguments.append((local, f"%{name}"))
            if result not in routine.body.registers:
                lowering.places[result] = f"%{name}"
        values = [value for _, value in arguments]
        arguments.extend(hidden_parameters(unit, found.hidden))

        def prologue(c: FunctionLowering) -> None:
            for variable, kind, value in zip(routine.function.parameters, found.parameters, values, strict=False):
                if variable.name in routine.body.registers:
                    c.write(variable.name, Value(kind, value))
            c.single.update(c.local)

        listed = ", ".join(f"{kind} {value}" for kind, value in arguments)
        convergent = " convergent" if routine.convergent else ""
        header = (
            f"define internal {self.target.function_convention} {found.result} "
            f"@{quoted(found.name)}({listed}) nounwind{convergent}"
        )
        return lowering.lower(header, prologue)

    def _kernel(self, unit: Unit, routine: Routine) -> tuple[str, KernelInfo]:
        function = routine.function
        plan = params.plan(routine.body, routine.classes)
        lowering = FunctionLowering(unit, routine, flow.build(routine.body), plan)
        arguments = [(lowering.ptr("global") if p.pointer else f"i{p.size * 8}", p.name) for p in plan.pieces]
        described = [piece.argument for piece in plan.pieces]
        packed = -(-plan.total // 8) * 8
        hidden = []
        if "module" in routine.needs:
            hidden.append("module")
            arguments.append((lowering.ptr("global"), "%module"))
            described.append(Argument(kind=ArgumentKind.POINTER, offset=packed, size=8))
            packed += 8
        if unit.flat and "block" in routine.needs:
            hidden.append("block")
            for axis in "xyz":
                arguments.append(("i32", f"%block.{axis}"))
                described.append(Argument(kind=ArgumentKind.VALUE, offset=packed, size=4))
                packed += 4
            packed += 4
        if not hidden:
            packed = plan.total
        if "shared" in routine.needs:
            arguments.append((lowering.ptr("shared"), "%shared"))
            described.append(Argument(kind=ArgumentKind.SHARED))
        header = self._kernel_header(unit, routine, arguments)
        text = lowering.lower(header, lambda c: _kernel_prologue(c, plan))
        directives = dict(function.directives)
        required = _block_shape(directives.get("reqntid"))
        info = KernelInfo(
            name=function.name,
            parameters=tuple(plan.places[p.name] for p in function.parameters),
            parameter_bytes=plan.total,
            hidden=tuple(hidden),
            signature=KernelSignature(
                name=function.name,
                arguments=tuple(described),
                packed_size=packed,
                required_subgroup_size=SUBGROUP_SIZE if unit.flat else None,
            ),
            static_shared_bytes=unit.shared.static_bytes,
            flat=unit.flat,
            local_bytes=_local_bytes(unit),
            const_bytes=self.block.const_bytes,
            max_threads=_product(directives.get("reqntid") or directives.get("maxntid")),
            required_block=required,
            ptx_version=self.index.version,
            sm=_sm(self.index.targets),
            uses=tuple(sorted(unit.uses)),
        )
        return text, info

    def _kernel_header(self, unit: Unit, routine: Routine, arguments: list[tuple[str, str]]) -> str:
        required = _block_shape(dict(routine.function.directives).get("reqntid"))
        if required is not None and unit.flat:
            required = (required[0] * required[1] * required[2], 1, 1)
        nodes = self.target.kernel_metadata(subgroup_size=SUBGROUP_SIZE if unit.flat else None, required_block=required)
        listed = ", ".join(f"{kind} {value}" for kind, value in arguments)
        convergent = " convergent" if routine.convergent else ""
        return (
            f"define {self.target.kernel_convention} void @{quoted(routine.function.name)}({listed}) "
            f"nounwind{convergent}{attachments(unit.writer, nodes)}"
        )


def _kernel_prologue(c: FunctionLowering, plan: params.KernelParameters) -> None:
    """Parameters that are read as memory go into local memory; the flag for threads that end is cleared."""
    local = c.ptr("local")
    for name in sorted(plan.in_memory):
        place = plan.places[name]
        space = c.target.space("local")
        base = c.w.alloca(f"[{place.size} x i8]", max(16, place.align), space)
        c.places[name] = base
        for at, size in params.words(place.size):
            piece = plan.piece(place.offset + at, size)
            assert piece is not None
            pointer = c.moved(Value(local, base), at)
            c.void(f"store i{size * 8} {piece.name}, {local} {pointer.name}, align {size}")
    if any("exit" in r.needs for r in c.unit.routines.values() if not r.function.entry):
        c.w.named_alloca("%exit", "i8", c.target.space("local"))
        c.void(f"store i8 0, {local} %exit")


def _callees_first(unit: Unit, entry: str) -> list[str]:
    """Names of the unit's functions, what is called before what calls it; a cycle is cut where it is met again."""
    order: list[str] = []
    seen: set[int] = set()

    def visit(name: str) -> None:
        routine = unit.routines[name]
        if id(routine) in seen:
            return
        seen.add(id(routine))
        for called, _ in routine.scan.calls:
            visit(called)
        order.append(name)

    visit(entry)
    return order


def _pointer_parameters(unit: Unit, name: str) -> tuple[bool, ...]:
    routine = unit.routines.get(name)
    if routine is None or routine.signature is None:
        return ()
    return tuple(kind.startswith("ptr") for kind in routine.signature.parameters)


def _block_shape(numbers: tuple[int, ...] | None) -> tuple[int, int, int] | None:
    if not numbers:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _product(numbers: tuple[int, ...] | None) -> int | None:
    shape = _block_shape(numbers)
    return shape[0] * shape[1] * shape[2] if shape else None


def _sm(targets: Sequence[str]) -> int:
    for name in targets:
        if name.startswith("sm_"):
            return int("".join(ch for ch in name[3:] if ch.isdigit()))
    return 0


def _local_bytes(unit: Unit) -> int:
    routines: Mapping[int, Routine] = {id(r): r for r in unit.routines.values()}
    return sum(
        layout.size_of(v) for r in routines.values() for v in r.body.variables.values() if v.space is Space.LOCAL
    )
