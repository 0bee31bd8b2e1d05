"""Becoming a CUDA program: what `zluda run` does once its options are read."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence

from zluda.cli import environment


def launch(program: Sequence[str], extra: Mapping[str, str] | None = None) -> int:
    """Replace this process by `program`, in the environment where it finds Zluda, with the variables `extra` besides.

    Returns only if that fails, with the exit status a shell would give: 127 for an unknown program, 126 for one that
    cannot be executed, 1 if Zluda itself is not installed whole.
    """
    try:
        added = environment.variables(os.environ)
    except environment.NotInstalled as error:
        return _failed(str(error), 1)
    path = shutil.which(program[0])
    if path is None:
        exists = os.path.exists(program[0])  # noqa: PTH110 - pathlib costs more than all the rest here
        return _failed(f"{program[0]}: " + ("not executable" if exists else "no such program"), 126 if exists else 127)
    # Python ignores these two; a program expects the default.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(path, list(program), {**os.environ, **added, **(extra or {})})
    except OSError as error:
        return _failed(f"{path}: {error.strerror}", 126)


def _failed(message: str, status: int) -> int:
    print(f"zluda run: {message}", file=sys.stderr)
    return status
