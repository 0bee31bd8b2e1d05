"""Extended-precision arithmetic on the carry flag CC.CF (section 9.7.2)."""

from __future__ import annotations

from zluda.compiler.lower.context import Context, lowers, width
from zluda.compiler.lower.ops._emit import resize, sources
from zluda.compiler.lower.ops.integer import product


def _carry_in(c: Context, llvm: str) -> str:
    """The flag as 0 or 1."""
    return resize(c, c.op(f"load i32, ptr {c.flag('CC.CF')}"), 32, int(llvm[1:]), False)


def _carry_out(c: Context, *carries: str) -> None:
    """Writes the flag when the instruction says .cc: whether any of these i1 is true."""
    if not c.has("cc"):
        return
    flag = carries[0]
    for carry in carries[1:]:
        flag = c.op(f"or i1 {flag}, {carry}")
    c.void(f"store i32 {c.op(f'zext i1 {flag} to i32')}, ptr {c.flag('CC.CF')}")


def _sum(c: Context, type: str, a: str, b: str, *, carry: bool) -> None:
    """a + b, with the flag added when `carry`."""
    llvm = f"i{width(type)}"
    total = c.op(f"add {llvm} {a}, {b}")
    carries = [c.op(f"icmp ult {llvm} {total}, {a}")]
    if carry:
        before, total = total, c.op(f"add {llvm} {total}, {_carry_in(c, llvm)}")
        carries.append(c.op(f"icmp ult {llvm} {total}, {before}"))
    _carry_out(c, *carries)
    c.set(c.operands[0], type, total)


def add_cc(c: Context) -> None:
    type = c.type
    a, b = sources(c, type)
    _sum(c, type, a, b, carry=False)


@lowers("addc")
def addc(c: Context) -> None:
    type = c.type
    a, b = sources(c, type)
    _sum(c, type, a, b, carry=True)


def _subtract(c: Context, borrow: bool) -> None:
    type = c.type
    llvm = f"i{width(type)}"
    a, b = sources(c, type)
    borrows = [c.op(f"icmp ult {llvm} {a}, {b}")]
    rest = c.op(f"sub {llvm} {a}, {b}")
    if borrow:
        taken = _carry_in(c, llvm)
        borrows.append(c.op(f"icmp ult {llvm} {rest}, {taken}"))
        rest = c.op(f"sub {llvm} {rest}, {taken}")
    _carry_out(c, *borrows)
    c.set(c.operands[0], type, rest)


def sub_cc(c: Context) -> None:
    _subtract(c, borrow=False)


@lowers("subc")
def subc(c: Context) -> None:
    _subtract(c, borrow=True)


def _multiply_add(c: Context, carry: bool) -> None:
    type = c.type
    if c.has("wide"):
        c.unsupported("mad with a carry has no .wide")
    a, b, addend = sources(c, type)
    _, value = product(c, type, a, b)
    _sum(c, type, value, addend, carry=carry)


def mad_cc(c: Context) -> None:
    _multiply_add(c, carry=False)


@lowers("madc")
def madc(c: Context) -> None:
    _multiply_add(c, carry=True)
