"""What is installed: the wheels hold what a user needs, and the locked requirements are locked."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def build(source: Path, folder: Path) -> zipfile.ZipFile:
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", str(folder)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


def test_the_wheel_holds_client_and_specification(tmp_path: Path) -> None:
    with build(ROOT, tmp_path) as wheel:
        names = set(wheel.namelist())
        header = wheel.read("zluda/client/include/cuda.h").decode()
    assert {"zluda/client/lib/libcuda.so.1", "zluda/py.typed"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for path in (ROOT / "spec").rglob("*.toml"):
        assert f"zluda/spec/data/{path.relative_to(ROOT / 'spec')}" in names
    for path in (ROOT / "zluda").rglob("*.py"):
        assert str(path.relative_to(ROOT)) in names
    assert not [name for name in names if name.endswith((".c", ".o", "CMakeLists.txt"))]
    assert re.search(r"\bcuLaunchKernel\w*\(", header)


@pytest.mark.parametrize("backend", ["opencl", "rocm", "level_zero"])
def test_backends_are_found_by_entry_point(backend: str, tmp_path: Path) -> None:
    with build(ROOT / "backends" / backend, tmp_path) as wheel:
        (points,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
        text = wheel.read(points).decode()
    assert re.search(rf"\[zluda\]\n{backend} = zluda_{backend}\b", text)


@pytest.mark.parametrize("name", ["run.txt", "test.txt"])
def test_requirements_are_pinned(name: str) -> None:
    lines = [line for line in (ROOT / "requirements" / name).read_text().splitlines() if not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.match(r"[\w.\-]+==[\w.]+( ; |$)", line), line


def test_the_lock_satisfies_what_the_distributions_ask_for() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    locked = {}
    for name in ("run.txt", "test.txt"):
        for line in (ROOT / "requirements" / name).read_text().splitlines():
            if line and not line.startswith("#"):
                requirement = Requirement(line)
                (pin,) = requirement.specifier
                locked[canonicalize_name(requirement.name)] = pin.version
    for project in (ROOT, *(ROOT / "backends").iterdir()):
        for text in tomllib.loads((project / "pyproject.toml").read_text())["project"].get("dependencies", ()):
            requirement = Requirement(text)
            if not requirement.name.startswith("zluda"):
                assert locked[canonicalize_name(requirement.name)] in requirement.specifier, text
