"""Finding backends: plugins of the entry point group `zluda`, and a record of those that failed."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from zluda.backend import hooks
from zluda.backend.info import SEAM_VERSION
from zluda.backend.seam import Backend

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class PluginFailure:
    """A plugin, or one backend of it, that cannot be used. `detail` is the traceback, where there is one."""

    plugin: str
    distribution: str
    why: str
    detail: str = ""

    def __str__(self) -> str:
        return f"plugin {self.plugin}{f' ({self.distribution})' if self.distribution else ''}: {self.why}"


@dataclass(frozen=True)
class Registry:
    """The backends of a process by name, and the plugins that brought none."""

    backends: dict[str, Backend] = field(default_factory=dict)
    plugin_of: dict[str, str] = field(default_factory=dict)
    """Backend name → `distribution version` (or plugin name) that brought it."""
    failures: tuple[PluginFailure, ...] = ()


def discover(plugins: Iterable[EntryPoint] | None = None) -> Registry:
    """Import every plugin of the group and collect its backends. A broken plugin never breaks the others.

    `plugins` replaces the installed entry points, for tests.
    """
    found = entry_points(group=hooks.PROJECT) if plugins is None else plugins
    registry = Registry()
    failures: list[PluginFailure] = []
    for entry in sorted(found, key=lambda e: (e.name, e.value)):
        failures += _add(registry, entry)
    for failure in failures:
        _log.warning("%s", failure)
        if failure.detail:
            _log.debug("%s", failure.detail)
    return Registry(registry.backends, registry.plugin_of, tuple(failures))


@cache
def installed() -> Registry:
    """What `discover` finds, once per process."""
    return discover()


def load_backends() -> dict[str, Backend]:
    """The installed backends by name; `installed().failures` tells of those that could not be loaded."""
    return dict(installed().backends)


def _add(registry: Registry, entry: EntryPoint) -> list[PluginFailure]:
    distribution = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""

    def failure(why: str, *, trace: bool = False) -> PluginFailure:
        return PluginFailure(entry.name, distribution, why, traceback.format_exc() if trace else "")

    # A manager per plugin: a hook that raises then stops this plugin's call alone.
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    try:
        manager.register(entry.load(), entry.name)
        manager.check_pending()
        answers: list[Any] = manager.hook.zluda_backends()
        brought = [backend for answer in answers for backend in answer]
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; it is recorded and shown
        return [failure(f"{type(error).__name__}: {error}", trace=True)]
    if not brought:
        return [failure("it brings no backend: does it implement the hook zluda_backends?")]

    failures = []
    for backend in brought:
        if why := _refusal(registry, backend):
            failures.append(failure(why))
        else:
            registry.backends[backend.name] = backend
            registry.plugin_of[backend.name] = distribution or entry.name
    return failures


def _refusal(registry: Registry, backend: object) -> str:
    if not isinstance(backend, Backend):
        return f"{backend!r} is not a zluda.backend.seam.Backend"
    name = getattr(backend, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"{name!r} is no backend name: lower-case letters, digits and underscores are"
    if not isinstance(getattr(backend, "version", None), str):
        return f"backend {name} has no version"
    if backend.seam_version != SEAM_VERSION:
        return f"backend {name} speaks version {backend.seam_version} of the seam, this zluda version {SEAM_VERSION}"
    if name in registry.backends:
        return f"backend {name} was already brought by {registry.plugin_of[name]}"
    return ""
