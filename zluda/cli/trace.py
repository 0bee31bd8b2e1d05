"""`zluda trace`: every driver API call of a program, as text or as a timeline."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from zluda.trace.follow import Follower

POLL_SECONDS = 0.05


class Format(StrEnum):
    TEXT = "text"
    CHROME = "chrome"


def trace(
    program: Annotated[
        list[str] | None,
        typer.Argument(help="The program and its arguments, after `--`.", metavar="PROGRAM [ARGUMENTS]..."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; nothing: standard error, for text only.")
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="A line per call, or a JSON timeline with threads and streams as tracks, for Perfetto."
        ),
    ] = Format.TEXT,
    read: Annotated[
        Path | None,
        typer.Option("--read", help="Instead of running a program: a folder that one wrote under ZLUDA_TRACE."),
    ] = None,
) -> None:
    """Run a program and show its driver API calls.

    zluda trace -- PROGRAM ARGUMENTS

    Of each: parameters, result, duration. Children of the program are traced too. The exit status is the program's;
    2: the trace could not be written or read.
    """
    if bool(program) == (read is not None):
        raise typer.BadParameter("give a program, after `--`, or --read FOLDER")
    if form is Format.CHROME and output is None:
        raise typer.BadParameter("a timeline goes to a file: name one with -o", param_hint="--format")
    if read is not None and not read.is_dir():
        _fail(f"{read}: no such folder")
    file = _open(output)
    if read is not None:
        _read(read, file, form)
    else:
        _run(program or [], file, form)


def _fail(message: str) -> None:
    typer.echo(f"zluda trace: {message}", err=True)
    raise typer.Exit(2)


def _open(output: Path | None) -> TextIO:
    if output is None:
        if sys.stderr is None:
            raise typer.Exit(2)
        return sys.stderr
    try:
        return output.open("w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        _fail(f"{output}: {error.strerror}")
        raise AssertionError from None


def _follower(folder: Path, file: TextIO, form: Format, origin: int | None, consume: bool) -> Follower:
    from zluda.trace.chrome import ChromeWriter
    from zluda.trace.files import Trace
    from zluda.trace.follow import Follower
    from zluda.trace.text import TextWriter

    trace = Trace(folder, consume)
    if origin is None:
        origin = trace.earliest()
    writer = ChromeWriter(file, origin) if form is Format.CHROME else TextWriter(file, origin)
    return Follower(trace, writer)


def _read(folder: Path, file: TextIO, form: Format) -> None:
    from zluda.trace.files import UnreadableTrace

    try:
        _follower(folder, file, form, None, False).finish()
        file.flush()
    except (OSError, UnreadableTrace) as error:
        _fail(str(error))


def _run(program: list[str], file: TextIO, form: Format) -> None:
    import contextlib
    import shutil
    import tempfile
    import time

    from zluda.cli.child import Child
    from zluda.trace.files import UnreadableTrace

    origin = time.monotonic_ns()
    try:
        folder = Path(tempfile.mkdtemp(prefix="zluda-trace-"))
    except OSError as error:
        _fail(f"no folder for the trace: {error.strerror}")
        return
    try:
        running = Child(program, {"ZLUDA_TRACE": str(folder)}, "trace")
        failure = ""
        try:
            follower = _follower(folder, file, form, origin, True)
            while not running.ended(POLL_SECONDS):
                follower.step()
            follower.finish()
            file.flush()
        except OSError as error:
            failure = f"the trace stops here: {error.strerror}"
        except UnreadableTrace as error:
            failure = str(error)
        running.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if failure:
        with contextlib.suppress(OSError):  # it may be standard error that cannot be written
            typer.echo(f"zluda trace: {failure}", err=True)
    status = running.leave()
    raise typer.Exit(status or (2 if failure else 0))
