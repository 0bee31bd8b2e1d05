"""`zluda env`: the variables that `zluda run` sets."""

from __future__ import annotations

import json as json_module
import os
import shlex
from typing import Annotated

import typer

from zluda.cli import environment


def env(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of shell lines.")] = False,
    library: Annotated[bool, typer.Option("--library", help="Print only the folder of libcuda.so.1.")] = False,
    include: Annotated[bool, typer.Option("--include", help="Print only the folder of cuda.h.")] = False,
) -> None:
    """Print the variables that `zluda run` sets.

    As lines for a shell, to be used so: eval "$(zluda env)"

    Only ZLUDA_DRIVER is not among them: it names a process that `zluda run` starts for one program.
    """
    try:
        if library:
            typer.echo(environment.library_directory())
            return
        if include:
            typer.echo(environment.include_directory())
            return
        variables = environment.variables(os.environ)
    except environment.NotInstalled as error:
        typer.echo(f"zluda env: {error}", err=True)
        raise typer.Exit(1) from None
    if json:
        typer.echo(json_module.dumps(variables, indent=2))
    else:
        for name, value in variables.items():
            typer.echo(f"export {name}={shlex.quote(value)}")
