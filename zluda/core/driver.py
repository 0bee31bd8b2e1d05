"""The driver: everything one CUDA program has, from the choice of devices to the last allocation."""

from __future__ import annotations

from typing import Protocol

from zluda.backend.selection import Selection
from zluda.compiler.kernel import CompiledImage, CompileRequest
from zluda.core.device import CudaDevice
from zluda.core.errors import CudaError
from zluda.core.memory import AddressMap, Allocation
from zluda.core.virtual import VirtualMemory
from zluda.core.window import Window
from zluda.spec.types import driver_version

DRIVER_VERSION = driver_version()
"""cuDriverGetVersion."""


class Compiler(Protocol):
    """Compiles kernels: `zluda.compiler.service.CompileService`."""

    def compile(self, request: CompileRequest) -> CompiledImage:
        """Blocks. Raises CompileError."""

    def forget(self, request: CompileRequest) -> None:
        """Do not answer this request from a cache again: the device refused the image."""


class Driver:
    """Devices, contexts and memory of one program. Ordinals are places in `selection.chosen`.

    The window and the compiler are the caller's to close, after the driver.
    """

    def __init__(self, selection: Selection, window: Window, compiler: Compiler) -> None:
        self.window = window
        self.compiler = compiler
        self.memory = AddressMap()
        self.virtual = VirtualMemory(self)
        self.devices = tuple(
            CudaDevice(self, ordinal, selection.backends[info.backend], info)
            for ordinal, info in enumerate(selection.chosen)
        )
        self._open = True

    @property
    def version(self) -> int:
        """cuDriverGetVersion."""
        return DRIVER_VERSION

    def device(self, ordinal: int) -> CudaDevice:
        """cuDeviceGet. CUDA_ERROR_INVALID_DEVICE, or CUDA_ERROR_NO_DEVICE where there is none at all."""
        if not self.devices:
            raise CudaError("CUDA_ERROR_NO_DEVICE", "no device is usable; `zluda devices` says why")
        if not 0 <= ordinal < len(self.devices):
            raise CudaError("CUDA_ERROR_INVALID_DEVICE", f"no device {ordinal}; there are {len(self.devices)}")
        return self.devices[ordinal]

    def find(self, address: int) -> Allocation | None:
        """The allocation that an address lies in, of whatever context; None if there is none."""
        return self.memory.find(address)

    def close(self) -> None:
        """Destroy contexts with all they hold, then close the devices. Twice is harmless."""
        if self._open:
            self._open = False
            for device in self.devices:
                device.close()
