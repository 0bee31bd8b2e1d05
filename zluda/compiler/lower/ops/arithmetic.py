"""Opcodes that integers and floating-point numbers share: each goes to the rules of its type."""

from __future__ import annotations

from zluda.compiler.lower.context import Context, lowers
from zluda.compiler.lower.ops import approximate, carry, floating, integer


@lowers("add", "sub")
def add_sub(c: Context) -> None:
    if floating.is_floating(c.type):
        floating.binary(c)
    elif c.has("cc"):
        (carry.add_cc if c.name == "add" else carry.sub_cc)(c)
    else:
        integer.binary(c, c.name)


@lowers("mul")
def mul(c: Context) -> None:
    if floating.is_floating(c.type):
        floating.binary(c)
    else:
        integer.mul(c)


@lowers("mad")
def mad(c: Context) -> None:
    if floating.is_floating(c.type):
        floating.fma(c)
    elif c.has("cc"):
        carry.mad_cc(c)
    else:
        integer.mad(c)


@lowers("div")
def div(c: Context) -> None:
    if floating.is_floating(c.type):
        approximate.divide(c)
    else:
        integer.divide(c)


@lowers("abs")
def absolute(c: Context) -> None:
    (floating if floating.is_floating(c.type) else integer).absolute(c)


@lowers("neg")
def negate(c: Context) -> None:
    (floating if floating.is_floating(c.type) else integer).negate(c)


@lowers("min", "max")
def extreme(c: Context) -> None:
    (floating if floating.is_floating(c.type) else integer).extreme(c)
