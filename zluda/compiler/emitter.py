"""The process that runs LLVM: IR text in, device code out, each module in a forked child of its own.

LLVM 22's SPIR-V back end keeps a table of basic blocks in a static variable (llvm-project issue 160613): the second
module of a process is invalid or wrong at random. A child per module makes each the first, and what LLVM aborts on
ends that child. Started by `zluda.compiler.emit`; it has one thread and imports nothing but llvmlite, so that forking
it is cheap and safe.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from zluda.compiler.channel import Channel
from zluda.compiler.errors import REPORT, CompileError

SPIRV_TRIPLE = "spirv64-unknown-unknown"
AMDGCN_TRIPLE = "amdgcn-amd-amdhsa"

SPIRV_EXTENSIONS = (
    "SPV_EXT_shader_atomic_float_add",
    "SPV_KHR_bit_instructions",
    "SPV_KHR_shader_clock",
)
"""Extensions LLVM may use. By name: with all of them allowed it makes invalid modules."""

_CODEGEN_LEVEL = 0
"""The device's compiler optimises; LLVM's optimiser before emission recreates forms the back end cannot take."""

_PR_SET_PDEATHSIG = 1


@cache
def initialise() -> None:
    """Sets LLVM up: targets, and the options that may be given once per process."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("", "--spirv-ext=" + ",".join(f"+{name}" for name in SPIRV_EXTENSIONS))


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


def _emit(form: str, ir: str, processor: str) -> bytes:
    """Device code of a form that `zluda.compiler.emit` names. To be called once in a process."""
    initialise()
    triple = SPIRV_TRIPLE if form == "spirv" else AMDGCN_TRIPLE
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, opt=_CODEGEN_LEVEL, codemodel="default", reloc="pic" if triple == AMDGCN_TRIPLE else "default"
    )
    with parsed(ir) as module:
        if form == "amdgcn-assembly":
            return str(machine.emit_assembly(module)).encode()
        return bytes(machine.emit_object(module))


def _child(channel: Channel, header: dict[str, Any], ir: bytes) -> None:
    # The emitter has one thread: this fires when the emitter itself ends.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    try:
        code = _emit(header["form"], ir.decode(), header["processor"])
    except CompileError as error:
        channel.send({"type": "error", "error": error.to_wire()})
    else:
        channel.send({"type": "done"}, code)


def _fork(channel: Channel, header: dict[str, Any], ir: bytes) -> int | None:
    """Runs one request in a child; the child's status, or None when the other end of the channel is gone."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _child(channel, header, ir)
            status = 0
        except BaseException:  # noqa: BLE001 - printed for the starter; nothing may leave the child
            traceback.print_exc()
        finally:
            os._exit(status)
    handle = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.register(channel.fileno(), 0)
        ready = dict(poll.poll())
        if handle not in ready:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) if handle in ready else None
    finally:
        os.close(handle)


def main(descriptor: int, _parent: int) -> None:
    """Serve the socket `descriptor` until its other end is gone."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    channel = Channel(socket.socket(fileno=descriptor))
    initialise()
    channel.send({"type": "ready"})
    while True:
        try:
            header, ir = channel.receive()
            status = _fork(channel, header, ir)
            if status is None:
                return
            if status != 0:
                channel.send({"type": "died", "status": status})
        except EOFError:
            return
