"""A driver over the fake backend."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests are collected with import-mode=importlib, so the helper beside them is made importable by name here.
_path = Path(__file__).with_name("fake_backend.py")
_spec = importlib.util.spec_from_file_location("core_fake_backend", _path)
assert _spec is not None and _spec.loader is not None
fake = importlib.util.module_from_spec(_spec)
sys.modules["core_fake_backend"] = fake
_spec.loader.exec_module(fake)

from zluda.core import Context, Driver  # noqa: E402


class Bench:
    """A driver with one fake device, its parts at hand."""

    def __init__(self, host_reaching: bool = True) -> None:
        self.window = fake.FakeWindow()
        self.selection = fake.selection(self.window, host_reaching=(host_reaching,))
        self.compiler = fake.FakeCompiler()
        self.driver = Driver(self.selection, self.window, self.compiler)
        self.device = self.driver.device(0)
        self.context: Context = self.device.retain_primary()
        self.fake = self.selection.backends["fake"].devices[0]


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.fake.release()
    made.driver.close()


@pytest.fixture(params=[True, False], ids=["window", "device"])
def any_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A device whose memory lies in the window, and one with memory of its own."""
    made = Bench(request.param)
    yield made
    made.fake.release()
    made.driver.close()
