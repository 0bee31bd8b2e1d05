"""Which devices a program gets: ZLUDA_BACKEND, CUDA_VISIBLE_DEVICES, and why the others were passed over."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from zluda.backend.info import DeviceInfo, ProbeReport, Unusable
from zluda.backend.probing import DEADLINE, probe
from zluda.backend.ranking import Ranking, rank
from zluda.backend.registry import PluginFailure, Registry, installed
from zluda.backend.seam import Backend, Device

BACKEND_VARIABLE = "ZLUDA_BACKEND"
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"

DISTRIBUTIONS = {"opencl": "zluda-opencl", "rocm": "zluda-rocm[rocm]", "level_zero": "zluda-level-zero"}
"""The project's own backends and what to install for them."""


class SelectionError(Exception):
    """What the user asked for cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class BackendChoice:
    """ZLUDA_BACKEND, parsed: `named` in the user's order (empty: all), `excluded`."""

    named: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str, known: Sequence[str]) -> BackendChoice:
        """Parse `name,name,!name`. Raises SelectionError for an unknown, repeated or contradictory name."""
        named: list[str] = []
        excluded: set[str] = set()
        for token in filter(None, (part.strip() for part in text.split(","))):
            name = token.removeprefix("!").strip()
            # Excluding one of the project's backends that is not installed changes nothing; others are typos.
            if name not in known and not (token.startswith("!") and name in DISTRIBUTIONS):
                raise SelectionError(_unknown(name, known))
            if token.startswith("!"):
                excluded.add(name)
            elif name in named:
                raise SelectionError(f"{BACKEND_VARIABLE}={text}: {name} is named twice")
            else:
                named.append(name)
        if both := sorted(excluded & set(named)):
            raise SelectionError(f"{BACKEND_VARIABLE}={text}: {', '.join(both)} is both named and excluded")
        return cls(tuple(named), frozenset(excluded))

    def takes(self, name: str) -> bool:
        """Whether a backend is to be probed."""
        return name not in self.excluded and (not self.named or name in self.named)


@dataclass(frozen=True)
class Selection:
    """What was chosen, and why the rest was not. CUDA ordinals are places in `chosen`."""

    chosen: tuple[DeviceInfo, ...]
    """Visible to the program, in CUDA's order."""
    usable: tuple[DeviceInfo, ...]
    """All ranked devices, before CUDA_VISIBLE_DEVICES."""
    passed_over: tuple[Unusable, ...]
    """Devices, stacks and plugins that are not used, with reasons."""
    reports: dict[str, ProbeReport] = field(default_factory=dict)
    backends: dict[str, Backend] = field(default_factory=dict)
    failures: tuple[PluginFailure, ...] = ()

    def open(self, ordinal: int) -> Device:
        """Open the device with this CUDA ordinal. Raises IndexError, or a BackendError."""
        info = self.chosen[ordinal]
        return self.backends[info.backend].open(info.index)


def select(environment: Mapping[str, str], registry: Registry | None = None, deadline: float = DEADLINE) -> Selection:
    """Probe and choose as the variables of `environment` (the program's, not the driver's) say.

    Only backends that ZLUDA_BACKEND admits are probed. Raises SelectionError where it names one that is unknown or
    has no usable device; the message is the probe's reason and remedy. Without the variable no device is no error:
    `chosen` is then empty and `passed_over` says why.
    """
    registry = installed() if registry is None else registry
    text = environment.get(BACKEND_VARIABLE, "")
    try:
        choice = BackendChoice.parse(text, tuple(registry.backends))
    except SelectionError as error:
        raise SelectionError("\n".join([str(error), *map(str, registry.failures)])) from None
    asked = {name: backend for name, backend in registry.backends.items() if choice.takes(name)}
    reports = probe(asked, deadline)
    for name in choice.named:
        if not reports[name].devices:
            raise SelectionError(_not_usable(text, reports[name]))
    ranking = rank(reports.values(), {name: b.rank for name, b in asked.items()}, choice.named)
    return apply_visible(
        Selection(
            chosen=ranking.devices,
            usable=ranking.devices,
            passed_over=_passed_over(registry, choice, reports, ranking),
            reports=reports,
            backends=asked,
            failures=registry.failures,
        ),
        environment.get(VISIBLE_VARIABLE),
    )


def apply_visible(selection: Selection, text: str | None) -> Selection:
    """The selection under a value of CUDA_VISIBLE_DEVICES (None: not set)."""
    if text is None:
        return selection
    chosen = visible(selection.usable, text)
    how = "or add {} to it" if chosen else "or set it to {}"
    hidden = tuple(
        Unusable(
            what=f"{d.name} ({d.road})",
            why=f"{VISIBLE_VARIABLE}={text} does not name it",
            remedy=f"unset {VISIBLE_VARIABLE}, {how.format(place)}",
        )
        for place, d in enumerate(selection.usable)
        if d not in chosen
    )
    return Selection(
        chosen=chosen,
        usable=selection.usable,
        passed_over=selection.passed_over + hidden,
        reports=selection.reports,
        backends=selection.backends,
        failures=selection.failures,
    )


def why_none(selection: Selection, environment: Mapping[str, str]) -> str:
    """Why a selection has no chosen device: the cause and what to do on the first line, then a reason a line."""
    if selection.usable:
        text = environment.get(VISIBLE_VARIABLE, "")
        places = "0" if len(selection.usable) == 1 else f"0 to {len(selection.usable) - 1}"
        cause = (
            f"{VISIBLE_VARIABLE}={text} names no device" if text.strip() else f"an empty {VISIBLE_VARIABLE} hides all"
        )
        if "," in text:
            cause += f" (the list ends at {text.split(',')[0]!r}, its first invalid entry)"
        devices = [f"  {place}: {device.name} ({device.road})" for place, device in enumerate(selection.usable)]
        return "\n".join([f"no usable device: {cause}; unset it or use {places}", *devices])
    if not selection.passed_over:
        return "no usable device: no backend is installed"
    return "\n".join(["no usable device", *map(_reason, selection.passed_over)])


def visible(devices: Sequence[DeviceInfo], text: str) -> tuple[DeviceInfo, ...]:
    """The devices that a value of CUDA_VISIBLE_DEVICES leaves visible, in its order.

    A comma-separated list of ordinals, or of uuids as printed by the tools, which may be cut to a prefix that only
    one device has. The list ends at its first invalid entry (CUDA C++ Programming Guide, "CUDA Environment
    Variables"). A repeated device counts as invalid.
    """
    chosen: list[DeviceInfo] = []
    for entry in text.split(","):
        device = _entry(devices, entry.strip())
        if device is None or device in chosen:
            break
        chosen.append(device)
    return tuple(chosen)


def _entry(devices: Sequence[DeviceInfo], entry: str) -> DeviceInfo | None:
    if re.fullmatch(r"[0-9]+", entry):
        return devices[int(entry)] if int(entry) < len(devices) else None
    if not re.fullmatch(r"gpu-[0-9a-f-]+", entry.lower()):
        return None
    matches = [d for d in devices if d.uuid_text.lower().startswith(entry.lower())]
    return matches[0] if len(matches) == 1 else None


def _passed_over(
    registry: Registry, choice: BackendChoice, reports: Mapping[str, ProbeReport], ranking: Ranking
) -> tuple[Unusable, ...]:
    out = [entry for report in reports.values() for entry in report.unusable]
    out += [Unusable(what=f"{r.device.name} ({r.device.road})", why=r.why) for r in ranking.second_roads]
    out += [
        Unusable(
            what=f"{d.name} ({d.road})",
            why="a simulated device, used only when its backend is asked for by name",
            remedy=f"{BACKEND_VARIABLE}={d.backend}",
        )
        for d in ranking.simulated
    ]
    for name in registry.backends:
        if not choice.takes(name):
            how = "excludes" if name in choice.excluded else "does not name"
            out.append(Unusable(what=f"backend {name}", why=f"{BACKEND_VARIABLE} {how} it; it was not probed"))
    for failure in registry.failures:
        remedy = f"update or remove {failure.distribution or failure.plugin}"
        out.append(Unusable(what=f"plugin {failure.plugin}", why=failure.why, remedy=remedy))
    return tuple(out)


def _unknown(name: str, known: Sequence[str]) -> str:
    names = ", ".join(sorted(known)) or "none"
    if name in DISTRIBUTIONS:
        return f"{BACKEND_VARIABLE} names {name}, which is not installed: pip install '{DISTRIBUTIONS[name]}'"
    return f"{BACKEND_VARIABLE} names {name!r}, which is no backend; installed are: {names}"


def _not_usable(text: str, report: ProbeReport) -> str:
    lines = [f"{BACKEND_VARIABLE}={text}: {report.backend} has no usable device"]
    lines += map(_reason, report.unusable)
    if not report.unusable:
        lines.append("  its probe found no device and gives no reason")
    return "\n".join(lines)


def _reason(entry: Unusable) -> str:
    return f"  {entry.what}: {entry.why}" + (f"; {entry.remedy}" if entry.remedy else "")
