"""LLVM IR text to device code: SPIR-V modules, and AMDGPU objects and assembly for looking inside.

LLVM runs in a process of its own, `zluda.compiler.emitter`, which starts with the first module and stays for the next.
Run the lint first: this only tells that LLVM gave up, the lint tells why.
"""

from __future__ import annotations

import atexit
import os
import threading

from zluda.compiler.errors import REPORT, CompileError
from zluda.compiler.process import Process, how_it_ended, with_fatal_line

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


class _Emitter:
    """This process's emitter, if it has one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Process | None = None

    def start(self) -> None:
        with self._lock:
            self._running()

    def _running(self) -> Process:
        if self._process is None or not self._process.alive:
            self.drop()
            self._process = Process("LLVM emitter", "zluda.compiler.emitter", new_session=False)
        return self._process

    def drop(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    def emit(self, form: str, ir: str, processor: str) -> bytes:
        with self._lock:
            process = self._running()
            process.wait_until_ready()
            process.send("emission", {"form": form, "processor": processor}, ir.encode())
            answer, code = process.receive("emission")
            said = process.said()
        match answer["type"]:
            case "done":
                return code
            case "error":
                raise CompileError.from_wire(answer["error"])
        message = with_fatal_line(f"LLVM {how_it_ended(answer['status'])} when it emitted the module", said)
        raise CompileError(f"{message}\n{REPORT}", kind="died", log=said)


_emitter = _Emitter()


def _after_fork() -> None:
    """The emitter belongs to the parent: a child starts its own."""
    global _emitter
    _emitter = _Emitter()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _emitter.drop())


def start() -> None:
    """Starts the emitter without waiting for it, if it is not there yet. Raises CompileError (died)."""
    _emitter.start()


def spirv(ir: str) -> bytes:
    """A SPIR-V module, not yet validated.

    Raises CompileError: `internal` for IR that LLVM's parser or verifier refuses, `died` for what it cannot select.
    """
    return _emitter.emit("spirv", ir, "")


def amdgcn_object(ir: str, processor: str) -> bytes:
    """A relocatable AMDGPU ELF object, not linked, for a gfx name. Raises CompileError."""
    return _emitter.emit("amdgcn-object", ir, _processor(processor))


def amdgcn_assembly(ir: str, processor: str) -> str:
    """AMDGPU assembly text for a gfx name. Raises CompileError."""
    return _emitter.emit("amdgcn-assembly", ir, _processor(processor)).decode()


def _processor(name: str) -> str:
    """A known gfx name, without the `:sramecc+:xnack-` that HIP appends. Raises CompileError."""
    bare = name.partition(":")[0]
    if bare not in GFX_PROCESSORS:
        known = ", ".join(sorted(GFX_PROCESSORS, key=lambda gfx: (len(gfx), gfx)))
        raise CompileError(
            f"{name!r} is no processor that AMDGPU code is emitted for; known are {known}", kind="unsupported"
        )
    return bare
