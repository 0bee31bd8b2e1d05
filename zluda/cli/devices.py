"""`zluda devices`: what was found, what was chosen, and why the rest was passed over."""

from __future__ import annotations

import json as json_module
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from zluda.backend.info import DeviceInfo
    from zluda.backend.selection import Selection


def devices(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List devices: chosen, usable, passed over and why.

    ZLUDA_BACKEND and CUDA_VISIBLE_DEVICES count as they would for a program. Exit status 1: no device was chosen.
    """
    from zluda.backend.selection import SelectionError, select

    try:
        selection = select(os.environ)
    except SelectionError as error:
        if json:
            typer.echo(json_module.dumps({"error": str(error)}, indent=2))
        else:
            typer.echo(f"zluda devices: {error}", err=True)
        raise typer.Exit(1) from None
    if json:
        typer.echo(json_module.dumps(_as_json(selection), indent=2))
    else:
        _print(selection)
    if not selection.chosen:
        raise typer.Exit(1)


def _state(selection: Selection, device: DeviceInfo) -> str:
    return f"chosen, CUDA device {selection.chosen.index(device)}" if device in selection.chosen else "usable"


def _as_json(selection: Selection) -> dict[str, Any]:
    return {
        "devices": [
            {
                "ordinal": selection.chosen.index(device) if device in selection.chosen else None,
                "state": "chosen" if device in selection.chosen else "usable",
                "uuid_text": device.uuid_text,
                **device.model_dump(mode="json", exclude={"uuid"}),
            }
            for device in selection.usable
        ],
        "passed_over": [entry.model_dump() for entry in selection.passed_over],
        "stacks": [
            {
                "backend": report.backend,
                "version": report.backend_version,
                "runtime": report.runtime,
                "devices": len(report.devices),
                "seconds": round(report.seconds, 3),
            }
            for report in selection.reports.values()
        ],
    }


def _print(selection: Selection) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(title="Devices", title_justify="left")
    for column in ("state", "device", "kind", "by", "memory", "driver"):
        table.add_column(column, overflow="fold")
    for device in selection.usable:
        table.add_row(
            _state(selection, device),
            escape(device.name),
            device.kind.value,
            escape(device.backend),
            f"{device.total_memory / 2**30:.1f} GiB",
            escape(device.driver_version),
        )
    if selection.usable:
        console.print(table)
    else:
        console.print("No device can be used.")
    stacks = Table(title="Stacks", title_justify="left")
    for column in ("backend", "version", "runtime", "devices"):
        stacks.add_column(column, overflow="fold")
    for report in selection.reports.values():
        runtime = escape(report.runtime) or "not found"
        stacks.add_row(escape(report.backend), escape(report.backend_version), runtime, str(len(report.devices)))
    console.print(stacks)
    if selection.passed_over:
        passed = Table(title="Passed over", title_justify="left")
        for column in ("what", "why", "what to do"):
            passed.add_column(column, overflow="fold")
        for entry in selection.passed_over:
            passed.add_row(escape(entry.what), escape(entry.why), escape(entry.remedy))
        console.print(passed)
