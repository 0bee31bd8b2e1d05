"""spec/driver_api against NVIDIA's own Python bindings, which are made from the same header by others."""

from __future__ import annotations

import re

import pytest
from cuda.bindings import driver as bindings

from zluda.spec.driver_api import driver_api
from zluda.spec.protocol import _HANDLES

API = driver_api()
ELSEWHERE = re.compile(r"EGL|VDPAU|cuGLGetDevices|cuGraphicsGL|cuGraphicsResourceGetMappedEgl")
"""Functions of cudaEGL.h, cudaGL.h and cudaVDPAU.h."""


def test_every_function_of_the_bindings_is_listed() -> None:
    theirs = {n for n in dir(bindings) if re.match(r"cu[A-Z]", n) and callable(getattr(bindings, n))}
    theirs = {n for n in theirs if not isinstance(getattr(bindings, n), type) and not ELSEWHERE.search(n)}
    symbols, names = {f.symbol for f in API.function}, {f.name for f in API.function}
    assert len(theirs) > 400
    assert theirs <= names | symbols
    # One name the header gives to a form of another function, and one that only older headers have.
    assert names - theirs <= {"cuGraphInstantiateWithFlags", "cuProfilerInitialize"}


@pytest.mark.parametrize("enum", API.enum, ids=lambda e: e.name)
def test_numbers_are_those_of_the_bindings(enum) -> None:
    theirs = getattr(bindings, enum.name)
    for name, value in enum.values:
        if name != "CU_LAUNCH_ATTRIBUTE_MAX":
            assert int(getattr(theirs, name)) & 0xFFFF_FFFF == value & 0xFFFF_FFFF, name


def test_handles_that_travel_are_handles() -> None:
    declared = {t.name: t.declaration for t in API.type}
    for handle in _HANDLES:
        assert re.fullmatch(rf"struct \w+ \*{handle}", declared[handle])


def test_a_plain_name_stands_for_a_listed_form() -> None:
    forms = {f.symbol: f.name for f in API.function}
    for name, symbol in API.plain.items():
        assert forms[symbol] == name or (name, symbol) == ("cuGraphInstantiate", "cuGraphInstantiateWithFlags")
