"""Run random operations for a long time, and watch both processes: memory, descriptors and threads must stay flat.

    python tools/soak.py SECONDS [--threads N] [--json FILE]

The program is tests/client/programs/stress.c, whose results are all checked. Status 1: a wrong result, or growth.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from zluda.cli import environment

ROOT = Path(__file__).resolve().parents[1]
SETTLED = 0.25
"""Share of the time in which everything reaches its size."""
GROWTH = {"MiB": 8.0, "descriptors": 2.0, "threads": 2.0}
"""How much more the last quarter may have than the one behind SETTLED; memory also 3 %."""


def build(folder: Path) -> Path:
    """The program, on the installed client."""
    program = folder / "stress"
    include, library = environment.include_directory(), environment.library_directory()
    source = ROOT / "tests" / "client" / "programs" / "stress.c"
    command = ["cc", "-std=c11", "-O2", source, f"-I{include}", f"-L{library}", "-l:libcuda.so.1", "-lpthread"]
    subprocess.run([*command, "-o", program], check=True)
    return program


def driver_of(tag: str, program: int) -> int | None:
    """The driver process of the program that was started with ZLUDA_SOAK=tag."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != program:
            try:
                if f"ZLUDA_SOAK={tag}".encode() not in (entry / "environ").read_bytes():
                    continue
                if b"zluda.server" in (entry / "cmdline").read_bytes():
                    return int(entry.name)
            except OSError:
                continue
    return None


def sample(process: int) -> dict[str, float]:
    """What a process holds now. Raises OSError once it is gone."""
    folder = Path(f"/proc/{process}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
    # Anonymous memory: the window's pages are the program's data, and its own business.
    return {
        "MiB": int(status["RssAnon"].split()[0]) / 1024,
        "descriptors": len(list((folder / "fd").iterdir())),
        "threads": int(status["Threads"]),
    }


def watch(command: list[str], seconds: float, tag: str) -> tuple[int, str, dict[str, list[dict[str, float]]]]:
    """Run the program to its end. Its status, what it said, and the samples of both processes, one a second."""
    samples: dict[str, list[dict[str, float]]] = {"program": [], "driver": []}
    variables: Mapping[str, str] = {**os.environ, **environment.variables(os.environ), "ZLUDA_SOAK": tag}
    variables = {"ZLUDA_LOG": "error", **variables}
    # A file: nobody reads along, and a full pipe would stop both processes.
    output = tempfile.TemporaryFile("w+")  # noqa: SIM115 - read at the end
    process = subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT)
    driver = None
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("soaking", total=seconds)
        start = time.monotonic()
        while process.poll() is None:
            driver = driver or driver_of(tag, process.pid)
            for name, pid in (("program", process.pid), ("driver", driver)):
                try:
                    samples[name].append(sample(pid)) if pid else None
                except (OSError, KeyError):
                    continue  # it is just ending
            progress.update(task, completed=min(seconds, time.monotonic() - start))
            time.sleep(1)
    output.seek(0)
    return process.returncode, output.read(), samples


def growth(samples: list[dict[str, float]], what: str) -> tuple[float, float, bool]:
    """Medians of the quarter behind SETTLED and of the last, and whether the difference is allowed."""
    values = [s[what] for s in samples][:-1]
    quarter = max(1, len(values) // 4)
    first = int(len(values) * SETTLED)
    before, after = median(values[first : first + quarter]), median(values[-quarter:])
    allowed = GROWTH[what] + (0.03 * before if what == "MiB" else 0)
    return before, after, after - before <= allowed


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, samples included")
    options = parser.parse_args()
    if options.seconds < 10:
        parser.error("less than 10 seconds say nothing about growth")
    seed = random.randrange(2**32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        command = [str(program), str(options.threads), "0", str(seed), str(options.seconds)]
        status, said, samples = watch(command, options.seconds, uuid.uuid4().hex)
    if status:
        print(f"seed {seed}: the program ended with status {status}:\n{said}", file=sys.stderr)
        return 1
    table = Table(title=f"seed {seed}, {options.threads} threads: {said.split()[-2]} operations, all right")
    for column in ("process", "what", "settled", "at the end", "verdict"):
        table.add_column(column)
    flat = True
    for name, of in samples.items():
        for what in GROWTH:
            before, after, allowed = growth(of, what)
            flat &= allowed
            table.add_row(name, what, f"{before:.1f}", f"{after:.1f}", "flat" if allowed else "grows")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps({"seed": seed, "flat": flat, "said": said, "samples": samples}))
    return not flat


if __name__ == "__main__":
    sys.exit(main())
