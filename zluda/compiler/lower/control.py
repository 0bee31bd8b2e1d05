"""Branches, returns and ends of threads (section 9.7.12)."""

from __future__ import annotations

from zluda.compiler.lower.flow import branch_targets
from zluda.compiler.lower.function import FunctionLowering, structural


@structural("bra")
def branch(c: FunctionLowering) -> None:
    (target,) = branch_targets(c.instruction, c.body)
    label = c.label(c.flow.block_of[target])
    if c.instruction.guard is None:
        c.branch(label)
    else:
        c.cond(c.guard_value(), label, c.label(c.block_number + 1))


@structural("brx")
def branch_indexed(c: FunctionLowering) -> None:
    """brx.idx: an index outside the list is undefined (section 9.7.12.4); it goes to the first target here."""
    labels = [c.label(c.flow.block_of[t]) for t in branch_targets(c.instruction, c.body)]
    if c.instruction.guard is not None:
        taken = c.block("taken")
        c.cond(c.guard_value(), taken, c.label(c.block_number + 1))
        c.start(taken)
    index = c.get(c.operands[0], "u32")
    cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(labels))
    c.w.terminate(f"switch i32 {index}, label %{labels[0]} [ {cases} ]")


def _guarded(c: FunctionLowering) -> bool:
    """Begin the block of a guarded return, exit or trap. Its end goes on to the next block."""
    if c.instruction.guard is None or c.instruction.opcode.name not in ("ret", "exit", "trap"):
        return False
    leave = c.block("leave")
    c.cond(c.guard_value(), leave, c.label(c.block_number + 1))
    c.start(leave)
    return True


@structural("ret")
def leave(c: FunctionLowering) -> None:
    """Return from the function; from a kernel, the thread ends."""
    _guarded(c)
    emit_return(c)


def emit_return(c: FunctionLowering) -> None:
    signature = c.routine.signature
    if signature is None or signature.result == "void":
        if signature is not None:
            for variable in c.routine.function.returns:
                if variable.name in c.body.registers:
                    value = c.read(variable.name)
                    stored = c.as_type(value, c.register_llvm(variable.name)) if not value.is_pointer else value.name
                    kind = value.type if value.is_pointer else c.register_llvm(variable.name)
                    c.void(f"store {kind} {stored}, {c.ptr('local')} %out.{variable.name}")
        c.w.terminate("ret void")
        return
    (variable,) = c.routine.function.returns
    value = c.read(variable.name)
    if signature.result.startswith("ptr"):
        result = c.coerce(value, c.classes[variable.name]).name
    else:
        result = c.as_type(value, signature.result)
    c.w.terminate(f"ret {signature.result} {result}")


@structural("exit")
def end_thread(c: FunctionLowering) -> None:
    """The thread ends, wherever it is: a device function tells its caller through the hidden argument `exit`."""
    _guarded(c)
    abandon(c)


def abandon(c: FunctionLowering) -> None:
    """Leave a function on the way out of the kernel."""
    if not c.routine.function.entry:
        c.void(f"store i8 1, {c.ptr('local')} %exit")
    _return_nothing(c)


def _return_nothing(c: FunctionLowering) -> None:
    signature = c.routine.signature
    if signature is None or signature.result == "void":
        c.w.terminate("ret void")
    else:
        zero = "null" if signature.result.startswith("ptr") else "zeroinitializer"
        c.w.terminate(f"ret {signature.result} {zero}")


@structural("trap")
def trap(c: FunctionLowering) -> None:
    _guarded(c)
    c.target.trap(c)
    _return_nothing(c)
