"""The OpenCL backend: finding devices, opening them, compiling for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from zluda.backend.info import DeviceInfo, Image, ProbeReport, Unusable
from zluda.backend.seam import Backend, BackendError
from zluda_opencl import __version__, icd

if TYPE_CHECKING:
    from zluda_opencl.device import OpenCLDevice
    from zluda_opencl.query import Device


class _Found(NamedTuple):
    """What this process's ICD loader offers. An index is a place in the order of platforms and their devices."""

    runtime: str
    devices: dict[int, tuple[Device, DeviceInfo]]
    unusable: tuple[Unusable, ...]


class OpenCLBackend(Backend):
    """Devices of all OpenCL platforms that take SPIR-V."""

    name = "opencl"
    version = __version__
    seam_version = 0
    rank = 90

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: _Found | None = None
        self._contexts: dict[int, int] = {}

    def probe(self) -> ProbeReport:
        try:
            found = self._find()
        except (ImportError, OSError) as error:
            return self._broken(f"there is no OpenCL loader: {error}", "pip install --force-reinstall pyopencl")
        except BackendError as error:
            return self._broken(f"the OpenCL loader fails: {error}", icd.INSTALL)
        return ProbeReport(
            backend=self.name,
            backend_version=self.version,
            runtime=found.runtime,
            devices=tuple(info for _, info in found.devices.values()),
            unusable=found.unusable,
        )

    def _broken(self, why: str, remedy: str) -> ProbeReport:
        broken = Unusable(what="OpenCL", why=why, remedy=remedy)
        return ProbeReport(backend=self.name, backend_version=self.version, unusable=(broken,))

    def open(self, index: int) -> OpenCLDevice:
        from zluda_opencl.device import OpenCLDevice

        device, info = self._device(index)
        return OpenCLDevice(info, device)

    def finalize(self, index: int, image: Image, options: Sequence[str] = ()) -> Image | None:
        from zluda_opencl import api
        from zluda_opencl.compile import compile_spirv, native_binary
        from zluda_opencl.module import NATIVE

        device, _ = self._device(index)
        if index not in self._contexts:
            with icd.intel_set():
                self._contexts[index] = api.create_context(device.handle)
        data = native_binary(compile_spirv(self._contexts[index], device, image, options))
        return Image(format=NATIVE, data=data, kernels=image.kernels) if data else None

    def build_identity(self, index: int) -> str:
        from zluda_opencl.query import Ask

        device, info = self._device(index)
        platform, version = device.platform, device.text(Ask.VERSION)
        parts = [platform.name, platform.version, info.name, version, info.driver_version, info.uuid.hex()]
        # Intel's CPU compiler takes settings from these.
        settings = {name: value for name, value in os.environ.items() if name.startswith("CL_CONFIG_")}
        settings |= icd.intel_settings(os.environ)
        parts += [f"{name}={value}" for name, value in sorted(settings.items())]
        return "\n".join(parts)

    def _device(self, index: int) -> tuple[Device, DeviceInfo]:
        try:
            return self._find().devices[index]
        except KeyError:
            raise BackendError(f"OpenCL has no usable device {index}; `zluda devices` lists them") from None

    def _find(self) -> _Found:
        with self._lock:
            if self._found is None:
                self._found = _find()
            return self._found


def _find() -> _Found:
    drivers, broken = icd.loadable(icd.find_drivers(os.environ))

    from zluda_opencl import query
    from zluda_opencl.describe import describe

    unusable = list(broken)
    devices: dict[int, tuple[Device, DeviceInfo]] = {}
    index = 0
    # The drivers start within this block: the loader's first call loads them, the first look for devices wakes them.
    with icd.offered(drivers):
        platforms = query.platforms()
        for platform in platforms:
            try:
                members = platform.devices()
            except BackendError as error:
                what = f"OpenCL platform {platform}"
                unusable.append(Unusable(what=what, why=f"it has no device: {error}", remedy=icd.INSTALL))
                continue
            for device in members:
                described = describe(device, index)
                if isinstance(described, DeviceInfo):
                    devices[index] = (device, described)
                else:
                    unusable.append(described)
                index += 1
    if not drivers:
        why = f"no OpenCL driver in {icd.SYSTEM_VENDORS}, the Python environment or OCL_ICD_VENDORS"
        unusable.append(Unusable(what="OpenCL", why=why, remedy=icd.INSTALL))
    elif not platforms:
        unusable.append(Unusable(what="OpenCL", why="none of the drivers offers a platform", remedy=icd.INSTALL))
    return _Found(", ".join(map(str, platforms)), devices, tuple(unusable))
