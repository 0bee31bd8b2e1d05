"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import zluda
from zluda.cli import compile as compile_command
from zluda.cli import devices, env, run, spec, trace

app = typer.Typer(
    name="zluda",
    help="Run unmodified CUDA programs on devices that are not NVIDIA's.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"zluda {zluda.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


app.command("run", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})(run.run)
app.command("trace", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})(trace.trace)
app.command("devices")(devices.devices)
app.command("compile")(compile_command.compile_ptx)
app.command("env")(env.env)
app.add_typer(spec.app)
