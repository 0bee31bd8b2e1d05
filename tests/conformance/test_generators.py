"""The committed cases are what the generators make, and the files are valid."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from zluda.spec import conformance
from zluda.testing.portable import read_cases

ROOT = Path(__file__).resolve().parents[2]


def test_regenerating_gives_the_committed_files() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/conformance/generate.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", conformance.files(), ids=lambda path: path.stem)
def test_file_is_valid(path: Path) -> None:
    checked = conformance.read(path)
    cases = list(read_cases(path))
    assert [case.id for case in cases] == [case.id for case in checked.case]
    for case in cases:
        for argument in case.arguments:
            if argument.kind == "inout":
                assert len(argument.bits) == len(argument.expected), case.id
            if argument.mask:
                assert len(argument.mask) == len(argument.expected), case.id


def test_every_generated_ptx_is_used_and_every_case_has_its_kernel() -> None:
    used = set()
    for path in conformance.files():
        for case in read_cases(path):
            used.add(case.ptx_name)
            assert f".entry {case.kernel}(" in case.ptx, case.id
    present = {f"ptx/{path.name}" for path in (conformance.folder() / "ptx").glob("*.ptx")}
    assert used == present


def test_needs_are_capabilities() -> None:
    table = tomllib.loads((ROOT / "spec" / "capabilities.toml").read_text(encoding="utf-8"))
    known = {entry["id"] for entry in table["capability"]}
    for path in conformance.files():
        for case in read_cases(path):
            assert set(case.needs) <= known, case.id


def test_ids_are_unique_and_tell_their_group() -> None:
    ids = [case.id for path in conformance.files() for case in read_cases(path)]
    assert len(ids) == len(set(ids)) >= 100


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
def test_ptxas_takes_every_module() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/conformance/check_ptxas.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
