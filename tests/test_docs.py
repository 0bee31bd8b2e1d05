"""The readme says what is true: its commands, options, variables and files exist, and its Python runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SOURCES = [p for d in ("zluda", "backends") for p in (ROOT / d).rglob("*") if p.suffix in (".py", ".c", ".h")]


def help_of(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "zluda", *command, "--help"], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_every_command_is_in_the_readme_and_the_other_way_round() -> None:
    listed = re.findall(r"^  (\w+)  ", help_of().split("Commands:")[1], flags=re.M)
    assert set(listed) == set(re.findall(r"^\| `zluda (\w+)", README, flags=re.M))


@pytest.mark.parametrize("command", sorted(set(re.findall(r"zluda (\w+)[^`\n]* (?=--)", README)) - {"run"}))
def test_options_in_the_readme_exist(command: str) -> None:
    text = help_of(command)
    for line in re.findall(rf"zluda {command}[^`\n|]*", README):
        for option in re.findall(r"(?<!\S)--\w[\w-]*", line):
            assert option in text, f"zluda {command} has no {option}"


def test_files_named_in_the_documents_exist() -> None:
    for document in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text()):
            assert (ROOT / target).exists(), f"{document} links to {target}"


def test_environment_variables_are_documented() -> None:
    used = {name for path in SOURCES for name in re.findall(r'"(ZLUDA_[A-Z_]+)=?"', path.read_text())}
    documented = set(re.findall(r"`(ZLUDA_[A-Z_]+)`", README))
    assert used == documented


def test_the_python_in_the_readme_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=dict(os.environ), timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[0.", "3.", "6.", "9.]"]


def test_what_the_readme_builds_is_ignored() -> None:
    built = re.findall(r"^    cc .* -o (\S+)$", README, flags=re.M)
    ignored = (ROOT / ".gitignore").read_text().split()
    assert built and all(f"/{name}" in ignored for name in built)


def test_the_cuda_version_in_the_readme_is_that_of_the_header() -> None:
    version = tomllib.loads((ROOT / "spec/driver_api/types.toml").read_text())
    (major,) = re.findall(r"`cuda.h` is that of CUDA (\d+)", README)
    assert int(major) == version["version"] // 1000
