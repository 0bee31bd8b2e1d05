"""What a platform or a device answers about itself, by the parameters of clGetPlatformInfo and clGetDeviceInfo."""

from __future__ import annotations

import struct
from enum import IntEnum

from zluda_opencl import api


class Ask(IntEnum):
    """Parameters of clGetDeviceInfo (cl.h, cl_ext.h), without `CL_DEVICE_`."""

    TYPE = 0x1000
    MAX_COMPUTE_UNITS = 0x1002
    MAX_WORK_GROUP_SIZE = 0x1004
    MAX_WORK_ITEM_SIZES = 0x1005
    MAX_CLOCK_FREQUENCY = 0x100C
    ADDRESS_BITS = 0x100D
    MAX_PARAMETER_SIZE = 0x1017
    SINGLE_FP_CONFIG = 0x101B
    GLOBAL_MEM_CACHE_SIZE = 0x101E
    GLOBAL_MEM_SIZE = 0x101F
    LOCAL_MEM_SIZE = 0x1023
    PROFILING_TIMER_RESOLUTION = 0x1025
    ENDIAN_LITTLE = 0x1026
    AVAILABLE = 0x1027
    COMPILER_AVAILABLE = 0x1028
    NAME = 0x102B
    VENDOR = 0x102C
    DRIVER_VERSION = 0x102D
    VERSION = 0x102F
    EXTENSIONS = 0x1030
    DOUBLE_FP_CONFIG = 0x1032
    HOST_UNIFIED_MEMORY = 0x1035
    SVM_CAPABILITIES = 0x1053
    IL_VERSION = 0x105B
    MAX_NUM_SUB_GROUPS = 0x105C
    UUID_KHR = 0x106A
    KERNEL_CLOCK_CAPABILITIES_KHR = 0x1076
    SUB_GROUP_SIZES_INTEL = 0x4108
    PCI_BUS_INFO_KHR = 0x410F
    DEVICE_MEM_CAPABILITIES_INTEL = 0x4191
    SINGLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4231
    DOUBLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4232


_PLATFORM_VERSION, _PLATFORM_NAME = 0x0901, 0x0902


class Platform:
    """An OpenCL platform."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.name = _text(api.answer(api.get_platform_info, handle, _PLATFORM_NAME))
        self.version = _text(api.answer(api.get_platform_info, handle, _PLATFORM_VERSION))

    def __str__(self) -> str:
        return f"{self.name} ({self.version})"

    def devices(self) -> list[Device]:
        """Its devices. Raises BackendError, also where there is none."""
        return [Device(handle, self) for handle in api.devices(self.handle)]


class Device:
    """An OpenCL device; a parameter that it does not know reads as nothing."""

    def __init__(self, handle: int, platform: Platform) -> None:
        self.handle = handle
        self.platform = platform

    def raw(self, parameter: Ask) -> bytes:
        return api.answer(api.get_device_info, self.handle, parameter) or b""

    def text(self, parameter: Ask) -> str:
        return _text(self.raw(parameter))

    def number(self, parameter: Ask) -> int:
        return int.from_bytes(self.raw(parameter), "little")

    def sizes(self, parameter: Ask) -> tuple[int, ...]:
        """An array of size_t."""
        data = self.raw(parameter)
        return struct.unpack(f"={len(data) // 8}Q", data)

    def words(self, parameter: Ask) -> frozenset[str]:
        """A text of words, such as the extensions."""
        return frozenset(self.text(parameter).split())


def platforms() -> list[Platform]:
    """All platforms of this process's ICD loader."""
    return [Platform(handle) for handle in api.platforms()]


def _text(data: bytes | None) -> str:
    return (data or b"").rstrip(b"\0").decode(errors="replace").strip()
