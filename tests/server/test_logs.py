"""Reading ZLUDA_LOG."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from zluda.server.logs import parse


@pytest.mark.parametrize(
    ("text", "general", "areas"),
    [
        ("", logging.WARNING, {}),
        ("debug", logging.DEBUG, {}),
        ("Error", logging.ERROR, {}),
        ("warning,compiler=debug,client=info", logging.WARNING, {"compiler": logging.DEBUG, "client": logging.INFO}),
        ("core=info", logging.WARNING, {"core": logging.INFO}),
        ("info,debug", logging.DEBUG, {}),
        ("core=info,core=error", logging.WARNING, {"core": logging.ERROR}),
        (" info , core = debug ,", logging.INFO, {"core": logging.DEBUG}),
    ],
)
def test_levels(text: str, general: int, areas: dict[str, int]) -> None:
    assert parse(text) == (general, areas, ())


@pytest.mark.parametrize("text", ["loud", "critical", "10", "core=", "=info,core=loud"])
def test_what_is_no_level_is_told(text: str) -> None:
    levels = parse(text)
    assert levels.general == logging.WARNING and len(levels.complaints) == 1
    assert f"ZLUDA_LOG={text}" in levels.complaints[0]


def test_areas_reach_their_loggers() -> None:
    """A backend logs under its package's name; the rest under zluda.AREA."""
    code = (
        "import logging; from zluda.server.logs import start; start('error,opencl=debug,compiler=info');"
        "print([logging.getLogger(n).getEffectiveLevel() for n in"
        " ('zluda_opencl.queue', 'zluda.compiler.cache', 'zluda.core', 'other')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{[logging.DEBUG, logging.INFO, logging.ERROR, logging.ERROR]}\n" and not done.stderr
