"""Becoming a CUDA program: what `zluda run` does once its options are read."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence

from zluda.cli import ahead, environment


def launch(program: Sequence[str], extra: Mapping[str, str] | None = None, command: str = "run") -> int:
    """Replace this process by `program`, in the environment where it finds Zluda, with the variables `extra` besides.
    `command` is what the user has called, for messages.

    Returns only if that fails, with the exit status a shell would give: 127 for an unknown program, 126 for one that
    cannot be executed, 1 if Zluda itself is not installed whole.
    """
    try:
        added = environment.variables(os.environ)
    except environment.NotInstalled as error:
        return _failed(command, str(error), 1)
    path = shutil.which(program[0])
    if path is None:
        return _missing(command, program[0])
    # Python ignores these two; a program expects the default.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    variables = {**os.environ, **added, **(extra or {})}
    variables |= ahead.start(variables)
    try:
        os.execve(path, list(program), variables)
    except OSError as error:
        return _failed(command, f"{path}: {error.strerror}", 126)


def _missing(command: str, name: str) -> int:
    isfile, exists = os.path.isfile(name), os.path.exists(name)  # noqa: PTH110, PTH113 - pathlib costs more than the rest
    if os.sep in name:
        return _failed(
            command, f"{name}: " + ("not executable" if exists else "no such program"), 126 if exists else 127
        )
    if not isfile:
        return _failed(command, f"{name}: no such program on PATH", 127)
    if os.access(name, os.X_OK):
        return _failed(command, f"{name}: not on PATH; did you mean .{os.sep}{name}?", 127)
    return _failed(command, f"{name}: not on PATH; the file in this folder is not executable", 127)


def _failed(command: str, message: str, status: int) -> int:
    print(f"zluda {command}: {message}", file=sys.stderr)
    return status
