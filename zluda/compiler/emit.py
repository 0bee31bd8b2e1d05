"""LLVM IR text to device code, through llvmlite: SPIR-V modules, and AMDGPU objects and assembly for looking inside.

LLVM aborts the process on what it cannot select: run the lint first, and run all of this in a compile worker.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from zluda.compiler.errors import REPORT, CompileError

SPIRV_TRIPLE = "spirv64-unknown-unknown"
AMDGCN_TRIPLE = "amdgcn-amd-amdhsa"

SPIRV_EXTENSIONS = (
    "SPV_EXT_shader_atomic_float_add",
    "SPV_KHR_bit_instructions",
)
"""Extensions LLVM may use. By name: with all of them allowed it makes invalid modules."""

GFX_PROCESSORS = frozenset(
    f"gfx{number}"
    for numbers in (
        (900, 906, 908, "90a", 942, 950),
        (1010, 1011, 1012, 1030, 1031, 1032, 1033, 1034, 1035, 1036),
        (1100, 1101, 1102, 1103, 1150, 1151, 1152, 1153, 1200, 1201),
    )
    for number in numbers
)
"""Processors that code is emitted for. LLVM only warns about a name it does not know, and emits for another one."""

_CODEGEN_LEVEL = 0
"""The device's compiler optimises; LLVM's optimiser before emission recreates forms the back end cannot take."""

_LOCK = threading.Lock()


@cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("", "--spirv-ext=" + ",".join(f"+{name}" for name in SPIRV_EXTENSIONS))


def identity() -> str:
    """Names the emitter: `llvmlite 0.50.0, LLVM 22.1.0`."""
    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


@contextmanager
def parsed(ir: str) -> Iterator[Any]:
    """A verified llvmlite module, for as long as the block lasts. Raises CompileError (internal).

    Module and context are closed in that order: the collector, left to itself, may free the context first and crash.
    """
    context = llvm.create_context()
    module = None
    try:
        try:
            module = llvm.parse_assembly(ir, context=context)
            module.verify()
        except RuntimeError as error:
            said = str(error).strip()
            message = f"The lowering made IR that LLVM refuses: {said}\n{REPORT}"
            raise CompileError(message, kind="internal", log=said) from None
        yield module
    finally:
        if module is not None:
            module.close()
        context.close()


def _machine(triple: str, processor: str = "") -> Any:
    """A fresh TargetMachine: one that has emitted a module aborts or crashes at random on the next."""
    _initialise()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, opt=_CODEGEN_LEVEL, codemodel="default", reloc="pic" if triple == AMDGCN_TRIPLE else "default"
    )


def _processor(name: str) -> str:
    """A known gfx name, without the `:sramecc+:xnack-` that HIP appends. Raises CompileError."""
    bare = name.partition(":")[0]
    if bare not in GFX_PROCESSORS:
        known = ", ".join(sorted(GFX_PROCESSORS, key=lambda gfx: (len(gfx), gfx)))
        raise CompileError(
            f"{name!r} is no processor that AMDGPU code is emitted for; known are {known}", kind="unsupported"
        )
    return bare


def spirv(ir: str) -> bytes:
    """A SPIR-V module, not yet validated. Raises CompileError for IR that LLVM's parser or verifier refuses."""
    with _LOCK, parsed(ir) as module:
        machine = _machine(SPIRV_TRIPLE)
        return _in_child(lambda: bytes(machine.emit_object(module)))


def _in_child(work: Callable[[], bytes]) -> bytes:
    """The result of a function run in a forked child.

    LLVM's SPIR-V back end keeps the ids of basic blocks by address from one module to the next, so the second module
    of a process gets ids twice as soon as memory is used again: of 60 emissions of six kernels, 55 were invalid.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(work())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        how = f"was ended by signal {-status}" if status < 0 else "failed"
        raise CompileError(f"LLVM {how} while it emitted SPIR-V\n{REPORT}", kind="died")
    return data


def amdgcn_object(ir: str, processor: str) -> bytes:
    """A relocatable AMDGPU ELF object, not linked, for a gfx name. Raises CompileError."""
    name = _processor(processor)
    with _LOCK, parsed(ir) as module:
        return bytes(_machine(AMDGCN_TRIPLE, name).emit_object(module))


def amdgcn_assembly(ir: str, processor: str) -> str:
    """AMDGPU assembly text for a gfx name. Raises CompileError."""
    name = _processor(processor)
    with _LOCK, parsed(ir) as module:
        return str(_machine(AMDGCN_TRIPLE, name).emit_assembly(module))
