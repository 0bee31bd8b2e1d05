"""`zluda compile`: the code a device would get for a PTX file, for looking inside."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from zluda.compiler.kernel import CompileRequest


class TargetName(StrEnum):
    SPIRV = "spirv"


class Emit(StrEnum):
    IMAGE = "image"
    LLVM = "llvm"
    ASM = "asm"


FEATURES = (
    "bit-instructions",
    "float-atomics",
    "float64-atomics",
    "fp16",
    "fp64",
    "int64-atomics",
    "kernel-clock",
    "subgroup-ballot",
    "subgroup-shuffle",
    "subgroup-size-32",
    "subgroups",
)
"""A target that has everything: what a given device lacks is said when a program runs on it."""


def compile_ptx(
    file: Annotated[Path, typer.Argument(help="A PTX file; `-` for standard input.", allow_dash=True)],
    target: Annotated[TargetName, typer.Option(help="What to compile for.")] = TargetName.SPIRV,
    emit: Annotated[
        Emit, typer.Option(help="The device image, the LLVM IR it is made from, or its disassembly.")
    ] = Emit.IMAGE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write; `-` or nothing: standard output, which for an image must be no terminal.",
        ),
    ] = None,
    entry: Annotated[
        list[str] | None, typer.Option("--entry", "-e", help="Only this kernel, with what it reaches; may be repeated.")
    ] = None,
) -> None:
    """Compile a PTX file, for looking inside.

    zluda compile kernel.ptx --target spirv -o kernel.spv

    Errors name the kernel, line, column and instruction. Exit status 1: the file was refused; 2: it could not be read,
    or the result not written.
    """
    from zluda.backend.info import TargetInfo
    from zluda.compiler.errors import CompileError
    from zluda.compiler.kernel import CompileRequest

    to_stdout = output is None or str(output) == "-"
    for stream, wanted in ((sys.stdin, str(file) == "-"), (sys.stdout, to_stdout)):
        if wanted and stream is None:  # Python's sign that the descriptor was closed before it started
            typer.echo("zluda compile: standard input or output is closed: name a file", err=True)
            raise typer.Exit(2)
    if emit is Emit.IMAGE and to_stdout and sys.stdout.isatty():
        typer.echo(
            "zluda compile: an image is not for a terminal: name a file with -o, or ask for --emit asm", err=True
        )
        raise typer.Exit(2)
    name = "<stdin>" if str(file) == "-" else str(file)
    try:
        ptx = (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode("utf-8", "surrogateescape")
    except OSError as error:
        typer.echo(f"zluda compile: {file}: {error.strerror}", err=True)
        raise typer.Exit(2) from None
    request = CompileRequest(
        ptx=ptx, name=name, entries=tuple(entry or ()), target=TargetInfo(name=f"{target.value}64", features=FEATURES)
    )
    try:
        result = _text(request, emit)
    except CompileError as error:
        typer.echo(f"zluda compile: {error}", err=True)
        if error.log:
            typer.echo(error.log, err=True)
        raise typer.Exit(1) from None
    if output is None or to_stdout:
        sys.stdout.buffer.write(result)
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(result)
    except OSError as error:
        typer.echo(f"zluda compile: {output}: {error.strerror}", err=True)
        raise typer.Exit(2) from None


def _text(request: CompileRequest, emit: Emit) -> bytes:
    if emit is Emit.LLVM:
        from zluda.compiler.portable import lower_request

        return lower_request(request).ir.encode()
    from zluda.compiler.service import CompileService

    service = CompileService(None, workers=1)
    try:
        image = service.compile(request).image
    finally:
        service.close()
    if emit is Emit.ASM:
        from zluda.compiler.validate import disassemble

        return disassemble(image.data).encode()
    return image.data
