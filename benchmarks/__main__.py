"""`python -m benchmarks [NAME ...] [--json FILE]`: run the measurements and print them as a table."""

from __future__ import annotations

import json as json_module
import platform
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import measurements
from benchmarks.harness import Bench, Row, workspace


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Which ones: {', '.join(measurements.ALL)}. All if none is named.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Also write the rows to this file.")] = None,
) -> None:
    """Measure the project's road beside what it is compared with, in one run."""
    chosen = names or list(measurements.ALL)
    if unknown := [name for name in chosen if name not in measurements.ALL]:
        raise typer.BadParameter(f"no measurement called {', '.join(unknown)}; there are {', '.join(measurements.ALL)}")
    console = Console()
    rows: list[tuple[str, Row]] = []
    with workspace() as folder:
        bench = Bench(Path(folder))
        for name in chosen:
            with console.status(f"measuring {name}"):
                rows += [(name, row) for row in measurements.ALL[name](bench)]
    table = Table(title=f"Zluda on {platform.processor() or platform.machine()}, Python {platform.python_version()}")
    for column in ("measure", "ours", "beside", "ratio", "target", ""):
        table.add_column(column, justify="left" if column in ("measure", "") else "right")
    for _, row in rows:
        verdict = {None: "", True: "met", False: "MISSED"}[row.met]
        table.add_row(
            row.what, row.ours, row.reference, f"{row.ratio:.2f}" if row.ratio is not None else "", row.target, verdict
        )
    console.print(table)
    if json:
        json.write_text(json_module.dumps([{"group": name, **row.as_dict()} for name, row in rows], indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
