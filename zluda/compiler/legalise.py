"""Rewrites of correct IR that LLVM's SPIR-V back end gets wrong, where the lowering cannot see them coming.

`zext (trunc x)`: the back end folds the pair, and what it folded before, into an `and` of x in x's own width, which is
invalid when that is not the result's. The two arise from different instructions, through a register that is written in
one width and read in another, so no handler could know. Here the pair becomes an explicit `and` in the result's width.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

_TYPE = r"(?:<(\d+) x )?i(\d+)>?"
_TRUNC = re.compile(rf"^\s*(%[\w.$-]+) = trunc (?:nuw |nsw )*{_TYPE} ([^\s,]+) to {_TYPE}")
_ZEXT = re.compile(rf"^(\s*)(%[\w.$-]+) = zext (?:nneg )?{_TYPE} (%[\w.$-]+) to {_TYPE}(.*)$")


class Truncation(NamedTuple):
    """What a truncated value comes from: an operand that is no truncation itself, and its width."""

    source: str
    width: int


def truncations(lines: list[str]) -> dict[str, Truncation]:
    """The truncated values of one function's lines, through chains of truncations."""
    direct = {
        match[1]: Truncation(match[4], int(match[3]))
        for line in lines
        if " trunc " in line and (match := _TRUNC.match(line))
    }
    for name, found in direct.items():
        while (deeper := direct.get(found.source)) is not None:
            found = deeper
        direct[name] = found
    return direct


def legalise(ir: str) -> str:
    """The same IR with the rewrites that SPIR-V emission needs."""
    if " zext " not in ir or " trunc " not in ir:
        return ir
    result: list[str] = []
    for function in _functions(ir.split("\n")):
        known = truncations(function)
        result.extend(_widen(line, known, ir) if known and " zext " in line else line for line in function)
    return "\n".join(result)


def _functions(lines: list[str]) -> list[list[str]]:
    """The lines cut before each definition."""
    starts = [number for number, line in enumerate(lines) if line.startswith("define")]
    bounds = [0, *starts, len(lines)]
    return [lines[start:end] for start, end in pairwise(bounds)]


def _widen(line: str, known: dict[str, Truncation], ir: str) -> str:
    match = _ZEXT.match(line)
    if match is None or match[5] not in known:
        return line
    indent, name, lanes, narrow, operand, _, wide, rest = match.groups()
    source, width = known[operand]
    mask = (1 << int(narrow)) - 1
    from_type, to_type, constant = f"i{width}", f"i{wide}", str(mask)
    if lanes:
        constant = f"<{', '.join([f'i{wide} {mask}'] * int(lanes))}>"
        from_type, to_type = f"<{lanes} x {from_type}>", f"<{lanes} x {to_type}>"
    if width == int(wide):
        return f"{indent}{name} = and {to_type} {source}, {constant}{rest}"
    fitted = f"{name}.fit"
    while f"{fitted} = " in ir:
        fitted += ".fit"
    cast = "trunc" if width > int(wide) else "zext"
    return (
        f"{indent}{fitted} = {cast} {from_type} {source} to {to_type}\n"
        f"{indent}{name} = and {to_type} {fitted}, {constant}{rest}"
    )
