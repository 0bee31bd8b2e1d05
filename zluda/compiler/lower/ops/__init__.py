"""Instruction handlers, one file per group; importing this package registers them all."""

from zluda.compiler.lower.ops import (
    approximate,
    arithmetic,
    atomics,
    barrier,
    bits,
    carry,
    compare,
    convert,
    floating,
    integer,
    video,
    warp,
)

__all__ = [
    "approximate",
    "arithmetic",
    "atomics",
    "barrier",
    "bits",
    "carry",
    "compare",
    "convert",
    "floating",
    "integer",
    "video",
    "warp",
]
