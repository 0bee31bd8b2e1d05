"""`zluda run`: start a program so that it finds Zluda where it looks for CUDA."""

from __future__ import annotations

from typing import Annotated

import typer

from zluda.cli.launch import launch


def run(
    program: Annotated[
        list[str], typer.Argument(help="The program and its arguments, after `--`.", metavar="PROGRAM [ARGUMENTS]...")
    ],
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            "-b",
            help="Sets ZLUDA_BACKEND: the backends to use, best first; each must be usable. `!name` excludes one.",
            metavar="NAMES",
        ),
    ] = None,
) -> None:
    """Run an unmodified CUDA program.

    zluda run -- PROGRAM ARGUMENTS

    The program replaces this process: its exit status, signals and streams are its own. An unknown program gives 127,
    one that cannot be executed 126, as in a shell.
    """
    raise typer.Exit(launch(program, None if backend is None else {"ZLUDA_BACKEND": backend}))
