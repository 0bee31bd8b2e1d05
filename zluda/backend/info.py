"""What a backend says about itself and its devices: plain data, validated by pydantic."""

from __future__ import annotations

from enum import Enum
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator

from zluda.backend.capabilities import capability_ids

SEAM_VERSION = 0
"""Version of the seam. 0 is free to change; a backend declares the version it was written for."""


class _Model(BaseModel):
    # Bytes (uuids) go through JSON as hexadecimal digits.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="hex", val_json_bytes="hex")


class DeviceKind(Enum):
    """Ranking class of a device; CUDA ordinals follow this order."""

    DISCRETE_GPU = "discrete"
    INTEGRATED_GPU = "integrated"
    ACCELERATOR = "accelerator"
    CPU = "cpu"


class PciAddress(_Model):
    domain: int = 0
    bus: int
    device: int
    function: int = 0

    def __str__(self) -> str:
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.{self.function:x}"


class TargetInfo(_Model):
    """What code a device takes: what the compiler chooses and parameterises a target by; part of the cache key."""

    name: str
    """The compiler target: `spirv64` or `amdgcn`; a third party may register its own."""
    processor: str = ""
    """`gfx1030` …; empty where the target has only one."""
    features: tuple[str, ...] = ()
    """Sorted; what may be used: `fp16`, `fp64`, `int64-atomics`, `float-atomics`, `subgroups`, `subgroup-size-32`, …"""


class DeviceLimits(_Model):
    """Numbers that CUDA attributes and launch checks are made from. Sizes in bytes, clock in kHz."""

    max_threads_per_block: int
    max_block_dim: tuple[int, int, int]
    max_grid_dim: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    shared_memory_per_block: int
    max_parameter_bytes: int = 4096
    multiprocessors: int
    clock_khz: int = 0
    memory_clock_khz: int = 0
    memory_bus_width: int = 0
    l2_cache_bytes: int = 0
    address_bits: int = 64


class DeviceInfo(_Model):
    """One device as a backend sees it. Identity is by `uuid` (16 bytes) and, where there is one, the PCI address."""

    backend: str
    index: int
    """The device's number within its backend; what `Backend.open` takes."""
    name: str
    vendor: str
    kind: DeviceKind
    uuid: bytes = Field(min_length=16, max_length=16)
    pci: PciAddress | None = None
    total_memory: int
    driver_version: str
    target: TargetInfo
    limits: DeviceLimits
    capabilities: frozenset[str] = frozenset()
    """Ids from spec/capabilities.toml. `memory.system`: kernels reach any host address, so the core hands out window
    memory itself."""
    simulated: bool = False
    """A device that executes nothing, or is a test double: never chosen unless asked for."""

    @field_validator("capabilities")
    @classmethod
    def _capabilities_are_known(cls, value: frozenset[str]) -> frozenset[str]:
        if unknown := sorted(value - capability_ids()):
            raise ValueError(f"unknown capabilities {', '.join(unknown)}: declare them in spec/capabilities.toml first")
        return value

    @property
    def road(self) -> str:
        """`backend:index`, the device's name in messages and reports."""
        return f"{self.backend}:{self.index}"

    @property
    def uuid_text(self) -> str:
        """The uuid as CUDA tools print it: `GPU-` and 8-4-4-4-12 hexadecimal digits."""
        return f"GPU-{UUID(bytes=self.uuid)}"


class Unusable(_Model):
    """A stack or device that was passed over: `what` it is, `why`, and what the user can do (`remedy`)."""

    what: str
    why: str
    remedy: str = ""


class ProbeReport(_Model):
    """The result of `Backend.probe()`: usable devices, and everything that was found but cannot be used."""

    backend: str
    backend_version: str
    runtime: str = ""
    """The vendor runtime found, with version: `OpenCL ICD loader 2.3.2`, `ROCm 6.2`; empty if none."""
    devices: tuple[DeviceInfo, ...] = ()
    unusable: tuple[Unusable, ...] = ()
    seconds: float = 0.0


class ArgumentKind(Enum):
    VALUE = "value"
    """`size` bytes by value."""
    POINTER = "pointer"
    """A 64-bit device address, set through the vendor's pointer-argument call so that it keeps its provenance."""
    SHARED = "shared"
    """Block-shared memory whose size is given at launch; takes no bytes of the packed arguments."""


class Argument(_Model):
    """One argument as the device's function takes it; `offset` is into the launch's packed argument bytes."""

    kind: ArgumentKind
    offset: int = 0
    size: int = 0


class KernelSignature(_Model):
    """All a backend needs to know of a kernel in order to launch it."""

    name: str
    arguments: tuple[Argument, ...]
    packed_size: int
    """Bytes of packed arguments a launch hands over."""
    required_subgroup_size: int | None = None


class Image(_Model):
    """Code for a device. `format` is `spirv`, `amdgcn-elf` or `native:<backend>` (what `Backend.finalize` returned)."""

    format: str
    data: bytes
    kernels: tuple[KernelSignature, ...]
