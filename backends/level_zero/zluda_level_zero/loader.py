"""The few Level Zero calls that detecting devices takes, declared for ctypes after ze_api.h."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

LIBRARY = "libze_loader.so.1"

_GPU_ONLY = 1
_STRUCTURE_TYPE_DEVICE_PROPERTIES = 3

_CODES = {
    0x70000001: "ZE_RESULT_ERROR_DEVICE_LOST",
    0x70000002: "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY",
    0x70010000: "ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS",
    0x70020000: "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE",
    0x78000001: "ZE_RESULT_ERROR_UNINITIALIZED",
    0x78000002: "ZE_RESULT_ERROR_UNSUPPORTED_VERSION",
    0x7FFFFFFE: "ZE_RESULT_ERROR_UNKNOWN",
}


class LevelZeroError(Exception):
    """A call returned something other than ZE_RESULT_SUCCESS."""

    def __init__(self, call: str, code: int) -> None:
        code &= 0xFFFFFFFF
        super().__init__(f"{call}: {_CODES.get(code, 'ze_result_t')} ({code:#x})")
        self.code = code


class _DeviceProperties(ctypes.Structure):
    _fields_ = (
        ("stype", c_uint32),
        ("pNext", c_void_p),
        ("type", c_uint32),
        ("vendorId", c_uint32),
        ("deviceId", c_uint32),
        ("flags", c_uint32),
        ("subdeviceId", c_uint32),
        ("coreClockRate", c_uint32),
        ("maxMemAllocSize", c_uint64),
        ("maxHardwareContexts", c_uint32),
        ("maxCommandQueuePriority", c_uint32),
        ("numThreadsPerEU", c_uint32),
        ("physicalEUSimdWidth", c_uint32),
        ("numEUsPerSubslice", c_uint32),
        ("numSubslicesPerSlice", c_uint32),
        ("numSlices", c_uint32),
        ("timerResolution", c_uint64),
        ("timestampValidBits", c_uint32),
        ("kernelTimestampValidBits", c_uint32),
        ("uuid", c_uint8 * 16),
        ("name", c_char * 256),
    )


def device_names(library: str = LIBRARY) -> list[str]:
    """The names of all GPUs. Raises OSError if the loader does not load, LevelZeroError if a call fails.

    After a failed zeInit nothing else is called: loader 1.8 then crashes in zeDriverGet.
    """
    loader = ctypes.CDLL(library)

    def call(name: str, *arguments: Any) -> None:
        if code := getattr(loader, name)(*arguments):
            raise LevelZeroError(name, code)

    loader.zeDeviceGet.argtypes = [c_void_p, POINTER(c_uint32), c_void_p]
    loader.zeDeviceGetProperties.argtypes = [c_void_p, POINTER(_DeviceProperties)]
    call("zeInit", _GPU_ONLY)
    count = c_uint32()
    call("zeDriverGet", byref(count), None)
    drivers = (c_void_p * count.value)()
    call("zeDriverGet", byref(count), drivers)

    names = []
    for driver in drivers:
        number = c_uint32()
        call("zeDeviceGet", driver, byref(number), None)
        devices = (c_void_p * number.value)()
        call("zeDeviceGet", driver, byref(number), devices)
        for device in devices:
            properties = _DeviceProperties(stype=_STRUCTURE_TYPE_DEVICE_PROPERTIES)
            call("zeDeviceGetProperties", device, byref(properties))
            names.append(properties.name.decode(errors="replace"))
    return names
