"""One list of devices over all backends: each physical device once, by its best road, best device first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zluda.backend.info import DeviceInfo, DeviceKind, ProbeReport

_KINDS = {kind: place for place, kind in enumerate(DeviceKind)}


@dataclass(frozen=True)
class SecondRoad:
    """A device that another road reaches better."""

    device: DeviceInfo
    best: DeviceInfo

    @property
    def why(self) -> str:
        """The reason in words."""
        by = f"PCI {self.device.pci}" if self.device.pci and self.best.pci else f"uuid {self.device.uuid_text}"
        return f"the same device as {self.best.road} ({by}), which is the better road"


@dataclass(frozen=True)
class Ranking:
    """`devices` best first; `second_roads` and `simulated` were left out."""

    devices: tuple[DeviceInfo, ...]
    second_roads: tuple[SecondRoad, ...] = ()
    simulated: tuple[DeviceInfo, ...] = ()


def rank(reports: Iterable[ProbeReport], ranks: Mapping[str, int], order: Sequence[str] = ()) -> Ranking:
    """Rank the devices of all reports.

    `ranks` is each backend's `rank`. Without an `order`: discrete GPUs, integrated GPUs, accelerators, CPUs; within a
    kind by rank, then backend name, then index; simulated devices are left out. With an `order` of backend names
    (what the user asked for) the named backends' devices come in that order, simulated ones among them.
    """
    places = {name: place for place, name in enumerate(order)}
    found = [device for report in reports for device in report.devices]
    simulated = tuple(device for device in found if device.simulated and device.backend not in places)
    candidates = [device for device in found if device not in simulated]

    def road(device: DeviceInfo) -> tuple[int, int, str, int]:
        return (places.get(device.backend, len(places)), ranks[device.backend], device.backend, device.index)

    kept: list[DeviceInfo] = []
    second: list[SecondRoad] = []
    for device in sorted(candidates, key=road):
        best = next((other for other in kept if same_device(device, other)), None)
        if best is None:
            kept.append(device)
        else:
            second.append(SecondRoad(device, best))
    kept.sort(key=lambda d: (places.get(d.backend, len(places)), _KINDS[d.kind], road(d)))
    return Ranking(tuple(kept), tuple(second), simulated)


def same_device(one: DeviceInfo, other: DeviceInfo) -> bool:
    """Whether two roads lead to one physical device: by PCI address if both have one, else by uuid."""
    if one.simulated != other.simulated:
        return False
    if one.pci is not None and other.pci is not None:
        return one.pci == other.pci
    return one.uuid == other.uuid
