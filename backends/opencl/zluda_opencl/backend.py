"""The OpenCL backend: finding devices, opening them, compiling for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from zluda.backend.info import DeviceInfo, Image, ProbeReport, Unusable
from zluda.backend.seam import Backend, BackendError
from zluda_opencl import __version__, icd

if TYPE_CHECKING:
    from zluda_opencl.device import OpenCLDevice


class _Found(NamedTuple):
    """What this process's ICD loader offers. An index is a place in the order of platforms and their devices."""

    runtime: str
    devices: dict[int, tuple[Any, DeviceInfo]]
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
        self._contexts: dict[int, Any] = {}

    def probe(self) -> ProbeReport:
        try:
            found = self._find()
        except ImportError as error:
            why = f"pyopencl cannot be imported: {error}"
            broken = Unusable(what="OpenCL", why=why, remedy="pip install --force-reinstall pyopencl")
            return ProbeReport(backend=self.name, backend_version=self.version, unusable=(broken,))
        return ProbeReport(
            backend=self.name,
            backend_version=self.version,
            runtime=found.runtime,
            devices=tuple(info for _, info in found.devices.values()),
            unusable=found.unusable,
        )

    def open(self, index: int) -> OpenCLDevice:
        from zluda_opencl.device import OpenCLDevice

        device, info = self._device(index)
        return OpenCLDevice(info, device)

    def finalize(self, index: int, image: Image, options: Sequence[str] = ()) -> Image | None:
        from zluda_opencl.device import create_context
        from zluda_opencl.module import NATIVE, build, native_binary

        device, _ = self._device(index)
        if index not in self._contexts:
            self._contexts[index] = create_context(device)
        data = native_binary(build(self._contexts[index], device, image, options))
        return Image(format=NATIVE, data=data, kernels=image.kernels) if data else None

    def build_identity(self, index: int) -> str:
        device, info = self._device(index)
        platform = device.platform
        parts = [platform.name, platform.version, info.name, device.version, info.driver_version, info.uuid.hex()]
        # Intel's CPU compiler takes settings from these.
        parts += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("CL_CONFIG_")]
        return "\n".join(part.strip() for part in parts)

    def _device(self, index: int) -> tuple[Any, DeviceInfo]:
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
    import pyopencl as cl

    from zluda_opencl import api
    from zluda_opencl.describe import describe

    unusable = list(broken)
    with icd.offered(drivers):
        api.wake_drivers()
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        if not drivers:
            where = f"no OpenCL driver in {icd.SYSTEM_VENDORS}, the Python environment or OCL_ICD_VENDORS"
            unusable.append(Unusable(what="OpenCL", why=where, remedy=icd.INSTALL))
        else:
            unusable.append(Unusable(what="OpenCL", why=f"no driver offers a platform: {error}", remedy=icd.INSTALL))
        platforms = []

    devices: dict[int, tuple[Any, DeviceInfo]] = {}
    index = 0
    for platform in platforms:
        try:
            members = platform.get_devices()
        except cl.Error as error:
            what = f"OpenCL platform {platform.name.strip()} ({platform.version.strip()})"
            unusable.append(Unusable(what=what, why=f"it has no device: {error}", remedy=icd.INSTALL))
            continue
        for device in members:
            try:
                described = describe(device, index)
            except cl.Error as error:
                what = f"device {index} of OpenCL platform {platform.name.strip()}"
                described = Unusable(what=what, why=f"it does not describe itself: {error}", remedy="update its driver")
            if isinstance(described, DeviceInfo):
                devices[index] = (device, described)
            else:
                unusable.append(described)
            index += 1
    return _Found(api.loader(), devices, tuple(unusable))
