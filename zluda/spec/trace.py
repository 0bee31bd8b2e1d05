"""What a trace of driver API calls holds of each, which the client writes and `zluda trace` reads.

An entry point's number counts the exported symbols, per-thread forms included, in the order of the specification.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Literal, NamedTuple

from zluda.spec.c_types import Scalar, Structure, c_type
from zluda.spec.driver_api import Function, Parameter, driver_api

_COUNT = re.compile(r"p?(num|nb|count|max|capacity)", re.IGNORECASE)
_MOST = 512
"""Bytes of a structure that is kept."""


class Entry(NamedTuple):
    """An exported symbol; `per_thread`: its default stream is the thread's own."""

    symbol: str
    function: Function
    per_thread: bool


@cache
def entries() -> tuple[Entry, ...]:
    """All, by number."""
    found: list[Entry] = []
    for function in driver_api().function:
        found.append(Entry(function.symbol, function, False))
        if function.per_thread:
            found.append(Entry(f"{function.symbol}_{function.per_thread}", function, True))
    return tuple(found)


def pointee(function: Function, parameter: Parameter) -> Literal["", "text", "texts", "value"]:
    """What is kept of that which a parameter points to, once the call has succeeded.

    text: a string. texts: the string that an address found there points to. value: one number, handle or plain
    structure. Arrays are not kept, as nothing here says how long they are: whatever stands beside a count may be one.
    """
    kind = parameter.type
    if not kind.endswith("*"):
        return ""
    pointed = kind.removeprefix("const ").removesuffix("*").strip()
    if pointed == "char" and (kind.startswith("const ") or parameter.direction != "in"):
        return "text"
    beside = any(_COUNT.match(p.name) for p in function.parameters if p.name != parameter.name)
    if beside and not _COUNT.match(parameter.name):
        return ""
    if parameter.direction != "in" and kind == "const char **":
        return "texts"
    what = c_type(pointed)
    if parameter.direction == "in" and not (kind.startswith("const ") and isinstance(what, Structure)):
        return ""
    if isinstance(what, Scalar) or (isinstance(what, Structure) and what.size <= _MOST):
        return "value"
    return ""


@cache
def identity() -> bytes:
    """16 bytes that differ whenever the numbers, or what is kept, do."""
    kept = [(e.symbol, [(p.name, p.type, pointee(e.function, p)) for p in e.function.parameters]) for e in entries()]
    return hashlib.sha256(repr(kept).encode()).digest()[:16]
