"""Write spec/conformance/*.toml and the PTX modules that generators make.

python tools/conformance/generate.py            write what changed
python tools/conformance/generate.py --check    only say what would change; status 1 if anything
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _build

GENERATORS = (
    "gen_integer",
    "gen_bits",
    "gen_float",
    "gen_half",
    "gen_math",
    "gen_convert",
    "gen_compare",
    "gen_memory",
    "gen_threads",
    "gen_atomics",
    "gen_programs",
)
"""Modules of this folder with a function `generate() -> list[CaseFile]`."""


def generate() -> dict[str, str]:
    """Every generated file: its path below spec/conformance to its text."""
    files: dict[str, str] = {}
    for name in GENERATORS:
        for case_file in importlib.import_module(name).generate():
            for path, text in case_file.render(f"{name}.py").items():
                assert path not in files, path
                files[path] = text
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = 0
    for path, text in generate().items():
        place = _build.folder() / path
        if place.exists() and place.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(f"{'stale' if check else 'wrote'} {path}")
        if not check:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
