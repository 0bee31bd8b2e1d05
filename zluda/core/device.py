"""A CUDA device: its attributes, its memory, its primary context."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from zluda.backend.info import DeviceInfo, DeviceKind
from zluda.backend.seam import Backend, BackendError, Device
from zluda.core.context import Context
from zluda.core.errors import CudaError, from_backend, invalid_value
from zluda.core.memory import DeviceMemory
from zluda.core.pool import DevicePools
from zluda.core.wait import MarkerBin, Wait
from zluda.spec.attributes import AttributeSpec, device_attributes, numbers

if TYPE_CHECKING:
    from zluda.core.driver import Driver

DEFAULT_COMPUTE_CAPABILITY = (8, 0)
"""High enough for PTX of NVRTC's default and of common builds, too low for libraries to expect clusters or TMA."""


def compute_capability(text: str | None) -> tuple[int, int]:
    """The compute capability that ZLUDA_COMPUTE_CAPABILITY asks for (`8.0`), or the default. Raises ValueError."""
    if not text:
        return DEFAULT_COMPUTE_CAPABILITY
    major, dot, minor = text.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        raise ValueError(f"ZLUDA_COMPUTE_CAPABILITY={text!r}: write it as major.minor, for example 8.0")
    return int(major), int(minor)


class CudaDevice:
    """A device as CUDA programs see it. The backend's device is opened when the first context needs it."""

    def __init__(self, driver: Driver, ordinal: int, backend: Backend, info: DeviceInfo) -> None:
        self.driver = driver
        self.ordinal = ordinal
        self.backend = backend
        self.info = info
        self.name = info.name
        self.uuid = info.uuid
        """16 bytes."""
        self.total_memory = info.total_memory
        self.compute_capability = compute_capability(os.environ.get("ZLUDA_COMPUTE_CAPABILITY"))
        self.host_reaching = "memory.system" in info.capabilities
        """Kernels reach any host address: device memory lies in the window."""
        self.lock = threading.RLock()
        """Serialises calls on the backend's device, its queues and modules; held briefly, never while waiting."""
        self.marker_bin = MarkerBin()
        self.memory = DeviceMemory(self)
        self.pools = DevicePools(self)
        self.contexts: set[Context] = set()
        """Contexts with something in them: created ones until destroyed, the primary one while active."""
        self.primary = Context(self, primary=True)
        self._retained = 0
        self._device: Device | None = None
        self._identity: str | None = None
        self._attributes: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<CudaDevice {self.ordinal}: {self.name}>"

    # --- the backend ------------------------------------------------------------------------------------

    def open(self) -> Device:
        """The backend's device, opened if it is not. CUDA_ERROR_DEVICE_UNAVAILABLE if the vendor refuses."""
        device = self._device
        if device is None:
            with self.lock:
                if self._device is None:
                    try:
                        self._device = self.backend.open(self.info.index)
                    except BackendError as error:
                        message = f"{self.backend.name} cannot open {self.name}: {error}"
                        raise CudaError("CUDA_ERROR_DEVICE_UNAVAILABLE", message) from error
                device = self._device
        return device

    @property
    def build_identity(self) -> str:
        """What native binaries for this device depend on besides their input; part of the compile cache's key."""
        if self._identity is None:
            self._identity = self.backend.build_identity(self.info.index)
        return self._identity

    def close(self) -> None:
        """Destroy every context, then close the backend's device. What fails on the way is logged, not raised."""
        for context in [*self.contexts]:
            context.destroy_wait().block()
        with self.lock:
            self.pools.close()
            self.marker_bin.close()
            if self._device is not None:
                self._device.close()
                self._device = None

    # --- what it says about itself ----------------------------------------------------------------------

    def attribute(self, attribute: int | str) -> int:
        """cuDeviceGetAttribute, by number or CU_DEVICE_ATTRIBUTE_* name. CUDA_ERROR_INVALID_VALUE if unknown."""
        number = numbers().get(attribute, -1) if isinstance(attribute, str) else attribute
        value = self._attributes.get(number)
        if value is None:
            spec = device_attributes().get(number)
            if spec is None:
                raise invalid_value(f"no device attribute {attribute}")
            value = self._attributes[number] = self._value(spec)
        return value

    def _value(self, spec: AttributeSpec) -> int:
        if spec.value is not None:
            return spec.value
        if spec.capability is not None:
            return int(spec.capability in self.info.capabilities)
        if spec.limit is not None:
            field, _, index = spec.limit.partition(".")
            limit = getattr(self.info.limits, field)
            value: int = limit[int(index)] if index else limit
            return value if spec.cap is None else min(value, spec.cap)
        assert spec.property is not None
        return self._property(spec.property)

    def _property(self, name: str) -> int:
        pci = self.info.pci
        match name:
            case "compute_major":
                return self.compute_capability[0]
            case "compute_minor":
                return self.compute_capability[1]
            case "integrated":
                return int(self.info.kind in (DeviceKind.INTEGRATED_GPU, DeviceKind.CPU))
            case "maps_host_memory" | "managed_memory":
                return int(self.host_reaching)
            case "ordinal":
                return self.ordinal
            case "pci_bus":
                return pci.bus if pci else 0
            case "pci_device":
                return pci.device if pci else 0
            case "pci_domain":
                return pci.domain if pci else 0
        raise KeyError(f"spec/attributes.toml: the core computes no {name}")

    @property
    def pci_bus_id(self) -> str:
        """cuDeviceGetPCIBusId: `domain:bus:device.function`; zeros for a device that has no PCI address."""
        return str(self.info.pci) if self.info.pci else "0000:00:00.0"

    # --- the primary context ----------------------------------------------------------------------------

    def retain_primary(self) -> Context:
        """cuDevicePrimaryCtxRetain: the primary context, made active by the first retain."""
        primary = self.primary
        while True:
            ending = primary.ending
            if ending is not None:  # released a moment ago; what was in it goes first
                ending.block()
            with self.lock:
                if primary.ending is None:
                    if not primary.active:
                        primary.activate()
                    self._retained += 1
                    return primary

    def release_primary(self) -> None:
        """cuDevicePrimaryCtxRelease, waiting for the work in it where it was the last."""
        self.release_primary_wait().block()

    def release_primary_wait(self) -> Wait:
        """As `release_primary`, to be waited for. CUDA_ERROR_INVALID_CONTEXT if it is not retained."""
        with self.lock:
            if self._retained == 0:
                raise CudaError("CUDA_ERROR_INVALID_CONTEXT", "the primary context is not retained")
            self._retained -= 1
            if self._retained:
                return Wait(self.primary, quiet=True)
            return self.primary.empty_wait()

    def reset_primary(self) -> None:
        """cuDevicePrimaryCtxReset: destroy what is in the primary context and forget its error; retains stay."""
        self.reset_primary_wait().block()

    def reset_primary_wait(self) -> Wait:
        """As `reset_primary`, to be waited for."""

        def again() -> None:
            with self.lock:
                if self._retained and not self.primary.active:
                    self.primary.activate()

        with self.lock:
            return self.primary.empty_wait().then(again)

    def primary_state(self) -> tuple[int, bool]:
        """cuDevicePrimaryCtxGetState: its flags, and whether it is active."""
        return self.primary.flags, self.primary.active

    def set_primary_flags(self, flags: int) -> None:
        """cuDevicePrimaryCtxSetFlags: overwrite the flags."""
        self.primary.set_flags(flags)

    def create_context(self, flags: int = 0, api_version: int = 3020) -> Context:
        """cuCtxCreate, without making it current (`zluda.core.current.push`)."""
        context = Context(self, flags=flags, api_version=api_version)
        context.activate()
        return context

    def require_managed(self) -> None:
        """CUDA_ERROR_NOT_SUPPORTED where kernels do not reach the window, in which managed memory lies."""
        if not self.host_reaching:
            raise CudaError(
                "CUDA_ERROR_NOT_SUPPORTED", f"{self.name} has no managed memory: it cannot reach the host's"
            )

    def memory_info(self) -> tuple[int, int]:
        """cuMemGetInfo: free and total bytes."""
        try:
            with self.lock:
                return self.memory.info()
        except BackendError as error:
            raise from_backend(error) from error
