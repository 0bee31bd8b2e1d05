"""`zluda run`: start a program so that it finds Zluda where it looks for CUDA."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from zluda.cli import environment


def run(
    program: Annotated[
        list[str], typer.Argument(help="The program and its arguments, after `--`.", metavar="PROGRAM [ARGUMENTS]...")
    ],
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            "-b",
            help="Sets ZLUDA_BACKEND: backend names in order of preference; `!name` excludes.",
            metavar="NAMES",
        ),
    ] = None,
) -> None:
    """Run an unmodified CUDA program: zluda run -- PROGRAM ARGUMENTS.

    The program replaces this process: its exit status, signals and streams are its own. An unknown program gives 127,
    one that cannot be executed 126, as in a shell.
    """
    try:
        added = environment.variables(os.environ)
    except environment.NotInstalled as error:
        typer.echo(f"zluda run: {error}", err=True)
        raise typer.Exit(1) from None
    if backend is not None:
        added["ZLUDA_BACKEND"] = backend
    path = shutil.which(program[0])
    if path is None:
        exists = Path(program[0]).exists()
        typer.echo(f"zluda run: {program[0]}: " + ("not executable" if exists else "no such program"), err=True)
        raise typer.Exit(126 if exists else 127)
    try:
        os.execve(path, program, {**os.environ, **added})
    except OSError as error:
        typer.echo(f"zluda run: {path}: {error.strerror}", err=True)
        raise typer.Exit(126) from None
