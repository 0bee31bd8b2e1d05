"""A conformance case as plain data, read from spec/conformance/*.toml.

The format is declared, documented and validated in zluda/spec/conformance.py; this reader takes what is valid.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .bits import WIDTHS, BitsError, Element, decode

FORMAT = 1
Triple = tuple[int, int, int]


class CaseError(ValueError):
    """A case file that cannot be read."""


@dataclass(frozen=True)
class Argument:
    """One kernel argument: `value` (its bytes) or a buffer: `in`, `out` or `inout` (the address of device memory)."""

    kind: str
    type: str
    name: str
    width: int
    bits: tuple[Element, ...] = ()
    expected: tuple[Element, ...] = ()
    mask: tuple[int, ...] = ()
    align: int = 0
    ulp: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    any_order: bool = False
    passed: bool = True

    @property
    def is_buffer(self) -> bool:
        return self.kind != "value"

    @property
    def count(self) -> int:
        """Elements of the buffer."""
        return len(self.bits) or len(self.expected)


@dataclass(frozen=True)
class Case:
    """One kernel, one launch, the bits that must come out."""

    id: str
    group: str
    tier: str
    section: str
    needs: tuple[str, ...]
    ptx: str
    ptx_name: str
    kernel: str
    grid: Triple
    block: Triple
    shared: int
    arguments: tuple[Argument, ...]
    note: str = ""


def case_from_table(table: Mapping[str, Any], *, group: str, data: Mapping[str, str], folder: Path) -> Case:
    """The case that one `[[case]]` table of a file describes; `data` is the file's table of shared texts."""
    try:
        if "text" in table:
            ptx, ptx_name = str(table["text"]), f"{table['id']}.ptx"
        else:
            ptx_name = str(table["ptx"])
            ptx = (folder / ptx_name).read_text(encoding="utf-8")
        return Case(
            id=table["id"],
            group=group,
            tier=table.get("tier", "smoke"),
            section=table["section"],
            needs=tuple(table.get("needs", ())),
            ptx=ptx,
            ptx_name=ptx_name,
            kernel=table["kernel"],
            grid=_triple(table["grid"]),
            block=_triple(table["block"]),
            shared=table.get("shared", 0),
            arguments=tuple(_argument(entry, data) for entry in table["argument"]),
            note=table.get("note", ""),
        )
    except (KeyError, OSError, BitsError) as error:
        raise CaseError(f"case {table.get('id')}: {type(error).__name__}: {error}") from error


def read_cases(path: Path) -> Iterator[Case]:
    """All cases of one TOML file."""
    with path.open("rb") as file:
        table = tomllib.load(file)
    if table.get("format") != FORMAT:
        raise CaseError(f"{path}: format {table.get('format')}, this reader knows {FORMAT}")
    for entry in table["case"]:
        yield case_from_table(entry, group=table["group"], data=table.get("data", {}), folder=path.parent)


def _triple(values: Any) -> Triple:
    x, y, z = (*values, 1, 1)[:3]
    return int(x), int(y), int(z)


def _argument(table: Mapping[str, Any], data: Mapping[str, str]) -> Argument:
    width = WIDTHS[table["type"]]

    def elements(key: str) -> tuple[Element, ...]:
        text = table.get(key, "")
        return tuple(decode(data[text[1:]] if text.startswith("$") else text, width))

    return Argument(
        kind=table["kind"],
        type=table["type"],
        name=table.get("name", ""),
        width=width,
        bits=elements("bits"),
        expected=elements("expected"),
        mask=tuple(element if isinstance(element, int) else 0 for element in elements("mask")),
        align=table.get("align", width),
        ulp=table.get("ulp", 0),
        absolute=table.get("absolute", 0.0),
        relative=table.get("relative", 0.0),
        any_order=table.get("order", "exact") == "any",
        passed=table.get("passed", True),
    )
