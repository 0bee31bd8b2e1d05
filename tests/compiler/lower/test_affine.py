"""Sums of scaled values, against arithmetic modulo 2^bits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zluda.compiler.lower.affine import Affine, fits, wrapped

VALUES = {"%a": 3, "%b": 0xFFFFFFF0, "%c": 0x7FFFFFFF}
numbers = st.integers(-(1 << 66), 1 << 66)
sums = st.recursive(
    st.sampled_from([*VALUES]) | numbers,
    lambda inner: (
        st.tuples(st.just("+"), inner, inner)
        | st.tuples(st.just("-"), inner, inner)
        | st.tuples(st.just("*"), inner, numbers)
    ),
    max_leaves=6,
)


def value_of(tree: object) -> int:
    match tree:
        case str():
            return VALUES[tree]
        case int():
            return tree
        case ("+", a, b):
            return value_of(a) + value_of(b)
        case ("-", a, b):
            return value_of(a) - value_of(b)
        case ("*", a, factor):
            return value_of(a) * factor
    raise AssertionError(tree)


def affine_of(tree: object, bits: int) -> Affine | None:
    match tree:
        case str():
            return Affine(bits, 0, ((tree, 1),))
        case int():
            return Affine(bits, wrapped(tree, bits))
        case ("*", a, factor):
            inner = affine_of(a, bits)
            return inner.times(factor) if inner is not None else None
        case (sign, a, b):
            first, second = affine_of(a, bits), affine_of(b, bits)
            if first is None or second is None:
                return None
            return first.plus(second, 1 if sign == "+" else -1)
    raise AssertionError(tree)


@given(sums, st.sampled_from([32, 64]))
def test_sums_are_right_modulo_the_width(tree: object, bits: int) -> None:
    found = affine_of(tree, bits)
    if found is None:
        return
    got = found.constant + sum(VALUES[name] * scale for name, scale in found.terms)
    assert (got - value_of(tree)) % (1 << bits) == 0
    assert all(scale % found.granule == 0 for _, scale in found.terms)
    limit = 1 << (bits - 1)
    assert all(-limit <= n < limit for n in (found.constant, *(scale for _, scale in found.terms)))
    interval = found.interval({name: (value, value) for name, value in VALUES.items()})
    assert interval == (got, got)


def test_fits() -> None:
    assert fits((-(1 << 31), (1 << 31) - 1))
    assert not fits((0, 1 << 31))
    assert not fits((-(1 << 31) - 1, 0))
    assert not fits(None)
