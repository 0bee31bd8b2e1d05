"""`zluda spec`: what the specification lists, and how much of it is built."""

from __future__ import annotations

import json as json_module
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from zluda.spec.driver_api import DriverApi

app = typer.Typer(
    name="spec", help="Show what the specification lists, and how much of it is built.", no_args_is_help=True
)

SUPPORT = ("full", "partial", "none")


@app.command("driver")
def driver(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    support: Annotated[
        str | None, typer.Option("--support", metavar="LEVEL", help="Only those that are full, partial or none.")
    ] = None,
) -> None:
    """List every entry point of the CUDA driver API with its support.

    full: as the manual has it. partial: what is missing stands beside it. none: CUDA_ERROR_NOT_SUPPORTED.
    """
    from zluda.spec.driver_api import driver_api

    if support is not None and support not in SUPPORT:
        raise typer.BadParameter(f"{support!r} is none of {', '.join(SUPPORT)}", param_hint="--support")
    api = driver_api()
    rows = [_row(api, symbol) for symbol in sorted(f.symbol for f in api.function)]
    rows = [row for row in rows if support in (None, row["support"])]
    if json:
        typer.echo(json_module.dumps({"cuda": api.version, **_counts(api), "functions": rows}, indent=2))
    else:
        _print(api, rows)


def _row(api: DriverApi, symbol: str) -> dict[str, Any]:
    function = next(f for f in api.function if f.symbol == symbol)
    per_thread = f"{symbol}_{function.per_thread}" if function.per_thread else None
    return {
        "name": function.name,
        "symbol": symbol,
        "per_thread_symbol": per_thread,
        "since": function.since,
        "support": function.support,
        "note": function.note,
    }


def _counts(api: DriverApi) -> dict[str, dict[str, int]]:
    """How many are built: of the names, each by the form that a C program gets, and of the symbols."""
    forms = {f.symbol: f.support for f in api.function}
    names: Counter[str] = Counter(forms[api.plain.get(name, name)] for name in {f.name for f in api.function})
    symbols: Counter[str] = Counter(forms.values())
    return {"names": {s: names[s] for s in SUPPORT}, "symbols": {s: symbols[s] for s in SUPPORT}}


def _print(api: DriverApi, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"CUDA driver API {_dotted(api.version)}", title_justify="left")
    for column in ("symbol", "since", "support", "note"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(row["symbol"], _dotted(row["since"]), row["support"], row["note"])
    console.print(table)
    for what, counts in _counts(api).items():
        typer.echo(f"{what}: {sum(counts.values())}, " + ", ".join(f"{n} {level}" for level, n in counts.items()))


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
