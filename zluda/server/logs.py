"""What the driver process says, and how much of it: ZLUDA_LOG.

    ZLUDA_LOG=info                                      a level for all areas
    ZLUDA_LOG=warning,compiler=debug,client=info        and others for some

An area is a part of Zluda (`server`, `core`, …) or a backend by its name. `client` is libcuda.so.1 (client/src/log.c),
which reads the same variable.
"""

from __future__ import annotations

import logging
import sys
from typing import NamedTuple

LEVELS = ("debug", "info", "warning", "error")
AREAS = ("backend", "client", "compiler", "core", "images", "ptx", "server", "window")

_log = logging.getLogger("zluda.server")


class Levels(NamedTuple):
    """A level for all, those of single areas, and what was not understood, in words."""

    general: int
    areas: dict[str, int]
    complaints: tuple[str, ...]


def parse(text: str) -> Levels:
    """Read ZLUDA_LOG. What it does not say is `warning`; a later word beats an earlier one."""
    general, areas, complaints = logging.WARNING, dict[str, int](), []
    for word in filter(None, (part.strip() for part in text.split(","))):
        area, equals, level = (part.strip() for part in word.rpartition("="))
        number = _level(level)
        if number is None and word == text:
            complaints.append(f"ZLUDA_LOG={text} is no level, taken as warning: use {_listed(LEVELS)}")
        elif number is None:
            complaints.append(f"ZLUDA_LOG={text}: {word} is left out, as {level!r} is no level: use {_listed(LEVELS)}")
        elif not equals:
            general = number
        else:
            areas[area] = number
    return Levels(general, areas, tuple(complaints))


def _level(text: str) -> int | None:
    return logging.getLevelNamesMapping()[text.upper()] if text.lower() in LEVELS else None


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def start(text: str | None) -> None:
    """Log to standard error as ZLUDA_LOG's value `text` has it. What is wrong with that is said there, once."""
    levels = parse(text or "")
    logging.basicConfig(stream=sys.stderr, format="zluda: %(message)s", level=levels.general)
    complaints = list(levels.complaints)
    for area, level in levels.areas.items():
        name = f"zluda.{area}" if area in AREAS else _logger_of_backend(area)
        if name:
            logging.getLogger(name).setLevel(level)
        else:
            complaints.append(
                f"ZLUDA_LOG={text}: {area!r} is no area of the log: use {_listed(AREAS)}, or the name of a backend"
            )
    for complaint in complaints:
        _log.error("%s", complaint)


def _logger_of_backend(name: str) -> str | None:
    """The package that brings the backend: it logs under its own name."""
    from zluda.backend.registry import load_backends

    backend = load_backends().get(name)
    return type(backend).__module__.partition(".")[0] if backend else None
