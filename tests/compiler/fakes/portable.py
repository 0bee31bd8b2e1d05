"""Stands in for zluda.compiler.portable in a worker: the "PTX" of a request is a line of commands that it obeys."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from pathlib import Path

from zluda.backend.info import Argument, ArgumentKind, Image, KernelSignature
from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompiledImage, CompileRequest, KernelInfo
from zluda.ptx.errors import PtxSyntaxError, PtxUnsupported
from zluda.ptx.source import Source


def kernel(name: str, uses: tuple[str, ...] = ()) -> KernelInfo:
    signature = KernelSignature(
        name=name, arguments=(Argument(kind=ArgumentKind.POINTER, offset=0, size=8),), packed_size=8
    )
    return KernelInfo(
        name=name,
        parameters=(),
        parameter_bytes=8,
        hidden=(),
        signature=signature,
        static_shared_bytes=0,
        flat=False,
        uses=uses,
    )


def compile_portable(request: CompileRequest) -> CompiledImage:
    uses: tuple[str, ...] = ()
    source = Source(request.ptx, request.name)
    for word in request.ptx.split():
        command, _, value = word.partition("=")
        match command:
            case "abort":
                print("LLVM ERROR: cannot select: a flux capacitor", file=sys.stderr, flush=True)
                os.abort()
            case "segv":
                ctypes.string_at(0)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                print("LLVM ERROR: unable to legalize", file=sys.stderr, flush=True)
                os._exit(int(value))
            case "sleep":
                time.sleep(float(value))
            case "spin":
                while True:
                    pass
            case "raise":
                raise ZeroDivisionError("something unforeseen")
            case "syntax":
                at = source.text.index(word)
                raise CompileError.from_ptx(
                    PtxSyntaxError(source, at, "expected a comma", function="f", hint="add one")
                )
            case "unsupported":
                raise CompileError.from_ptx(PtxUnsupported(source, source.text.index(word), "no tcgen05", function="g"))
            case "internal":
                raise CompileError("the lint found something", log="all of it")
            case "warp":
                uses = ("warp",)
            case "log":
                logging.getLogger("zluda.compiler.lower").warning("a word of warning: %s", value)
            case "print":
                print("noise on standard output", flush=True)
            case "mark":
                with Path(value).open("a") as file:
                    file.write(f"{os.getpid()}\n")
            case "pid" | "":
                pass
            case "wait":
                while not Path(value).exists():
                    time.sleep(0.005)
            case other:
                raise AssertionError(f"unknown command {other}")
    data = bytes(range(256)) * 4 + str(os.getpid()).encode()
    kernels = tuple(kernel(name, uses) for name in request.entries)
    image = Image(format="spirv", data=data, kernels=tuple(k.signature for k in kernels))
    return CompiledImage(image=image, kernels=kernels)
