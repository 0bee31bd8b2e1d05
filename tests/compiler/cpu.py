"""The machine's OpenCL CPU device, for tests that run what the compiler makes."""

from __future__ import annotations

from functools import cache

from zluda_opencl.backend import OpenCLBackend

from zluda.backend.info import DeviceKind
from zluda.backend.seam import Device, Queue


@cache
def device() -> Device:
    """Opened once."""
    backend = OpenCLBackend()
    report = backend.probe()
    for info in report.devices:
        if info.kind is DeviceKind.CPU:
            return backend.open(info.index)
    raise LookupError(f"no OpenCL CPU device: {report.unusable}")


@cache
def queue() -> Queue:
    return device().create_queue()
