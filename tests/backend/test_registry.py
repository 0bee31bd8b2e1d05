"""Discovery: good plugins are found, bad ones are told about and break nothing."""

from __future__ import annotations

import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from zluda.backend.registry import Registry, discover, installed, load_backends

GOOD = """
from zluda.backend.hooks import hookimpl
from zluda.backend.seam import Backend

class Mine(Backend):
    name = "{name}"
    version = "2.0"
    seam_version = {seam}
    def probe(self): ...
    def open(self, index): ...

@hookimpl
def zluda_backends():
    return [Mine()]
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(**modules: str) -> Registry:
        entries = []
        for name, text in modules.items():
            (tmp_path / f"plugin_{tmp_path.name}_{name}.py").write_text(textwrap.dedent(text))
            entries.append(EntryPoint(name, f"plugin_{tmp_path.name}_{name}", "zluda"))
        return discover(entries)

    return run


def test_a_plugin_brings_its_backend(plugins) -> None:
    registry = plugins(mine=GOOD.format(name="mine", seam=0))
    assert list(registry.backends) == ["mine"]
    assert registry.backends["mine"].version == "2.0"
    assert registry.failures == ()


def test_a_plugin_that_does_not_import_is_recorded_with_its_traceback(plugins) -> None:
    registry = plugins(bad="import nothing_of_this_name\n", mine=GOOD.format(name="mine", seam=0))
    assert list(registry.backends) == ["mine"]
    (failure,) = registry.failures
    assert failure.plugin == "bad"
    assert failure.why == "ModuleNotFoundError: No module named 'nothing_of_this_name'"
    assert "Traceback" in failure.detail and "plugin_" in failure.detail


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1/0\n", "ZeroDivisionError: division by zero"),
        ("x = 1\n", "it brings no backend: does it implement the hook zluda_backends?"),
        (
            "from zluda.backend.hooks import hookimpl\n@hookimpl\ndef zluda_backends(): raise OSError('no')\n",
            "OSError: no",
        ),
        ("from zluda.backend.hooks import hookimpl\n@hookimpl\ndef zluda_backends(): return [3]\n", "3 is not a"),
        ("from zluda.backend.hooks import hookimpl\n@hookimpl\ndef zluda_backends(): return 3\n", "TypeError: 'int'"),
        (
            "from zluda.backend.hooks import hookimpl\n@hookimpl\ndef zluda_backend(): return []\n",
            "PluginValidationError",
        ),
        (GOOD.format(name="My Backend", seam=0), "'My Backend' is no backend name"),
        (GOOD.format(name="mine", seam=7), "backend mine speaks version 7 of the seam, this zluda version 0"),
    ],
)
def test_a_bad_plugin_breaks_nothing(plugins, text: str, why: str) -> None:
    registry = plugins(a_bad=text, good=GOOD.format(name="good", seam=0))
    assert list(registry.backends) == ["good"]
    (failure,) = registry.failures
    assert why in failure.why


def test_of_two_backends_of_one_name_the_first_stays(plugins) -> None:
    registry = plugins(a=GOOD.format(name="mine", seam=0), b=GOOD.format(name="mine", seam=0))
    assert registry.plugin_of == {"mine": "a"}
    assert [f.why for f in registry.failures] == ["backend mine was already brought by a"]


def test_the_projects_own_backends_are_installed() -> None:
    assert {"opencl", "rocm", "level_zero"} <= set(load_backends())
    assert installed().failures == ()
