"""Assemble every PTX module of the cases with NVIDIA's ptxas, where that is installed: is it valid PTX?

    python tools/conformance/check_ptxas.py [--ptxas PATH] [NAME ...]

Output goes to /dev/null; nothing that ptxas makes is kept. Status 77 where there is no ptxas.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "spec" / "conformance" / "ptx"
SKIPPED = 77


def assemble(ptxas: str, path: Path) -> str | None:
    """What ptxas has against the module; None if nothing."""
    target = re.search(r"^\.target\s+(sm_\d+\w?)", path.read_text(encoding="utf-8"), re.MULTILINE)
    if target is None:
        return "no .target directive"
    command = [ptxas, f"-arch={target[1]}", "-O0", str(path), "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr or done.stdout).strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", default=shutil.which("ptxas"))
    parser.add_argument("names", nargs="*", help="modules (file names without .ptx); all if none is named")
    arguments = parser.parse_args()
    if not arguments.ptxas:
        print("skipped: no ptxas on PATH (it comes with the CUDA toolkit or PyPI's nvidia-cuda-nvcc)")
        return SKIPPED
    paths = [FOLDER / f"{name}.ptx" for name in arguments.names] or sorted(FOLDER.glob("*.ptx"))
    bad = 0
    for path in paths:
        complaint = assemble(arguments.ptxas, path)
        if complaint:
            bad += 1
            print(f"{path.name}: {complaint}")
    print(f"{len(paths) - bad} of {len(paths)} modules assemble")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
