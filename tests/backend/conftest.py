"""Devices and backends that exist only in these tests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from zluda.backend.info import DeviceInfo, DeviceKind, DeviceLimits, PciAddress, ProbeReport, TargetInfo, Unusable
from zluda.backend.registry import Registry
from zluda.backend.seam import Backend, Device

LIMITS = DeviceLimits(
    max_threads_per_block=1024, max_block_dim=(1024, 1024, 64), shared_memory_per_block=49152, multiprocessors=1
)


def make_info(backend: str = "fake", index: int = 0, kind: str = "discrete", **rest: Any) -> DeviceInfo:
    """A device; `pci` may be a bus number, `uuid` hexadecimal digits (default: from backend and index)."""
    if isinstance(rest.get("pci"), int):
        rest["pci"] = PciAddress(bus=rest["pci"], device=0)
    uuid = rest.pop("uuid", hashlib.sha256(f"{backend}{index}".encode()).hexdigest()[:32])
    return DeviceInfo(
        backend=backend,
        index=index,
        name=rest.pop("name", f"{backend} device {index}"),
        vendor="Test",
        kind=DeviceKind(kind),
        uuid=bytes.fromhex(uuid),
        total_memory=1 << 30,
        driver_version="1",
        target=TargetInfo(name="spirv64"),
        limits=LIMITS,
        **rest,
    )


class FakeBackend(Backend):
    """A backend whose probe is a function."""

    version = "1.0"

    def __init__(self, name: str, probe: Callable[[], Any], rank: int = 50) -> None:
        self.name = name
        self.rank = rank
        self._probe = probe
        self.probed = 0

    def probe(self) -> ProbeReport:
        self.probed += 1
        return self._probe()

    def open(self, index: int) -> Device:
        raise NotImplementedError


def listing(
    name: str, devices: Sequence[DeviceInfo] = (), unusable: Sequence[Unusable] = (), rank: int = 50
) -> Backend:
    """A well-behaved backend."""
    report = ProbeReport(backend=name, backend_version="1.0", devices=tuple(devices), unusable=tuple(unusable))
    return FakeBackend(name, lambda: report, rank)


@pytest.fixture
def info() -> Callable[..., DeviceInfo]:
    return make_info


@pytest.fixture
def backend() -> Callable[..., Backend]:
    return listing


@pytest.fixture
def probing_backend() -> type[FakeBackend]:
    return FakeBackend


@pytest.fixture
def registry() -> Callable[..., Registry]:
    def make(*backends: Backend) -> Registry:
        return Registry({b.name: b for b in backends}, {b.name: "tests" for b in backends})

    return make
