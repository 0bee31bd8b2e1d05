"""The device table that the client answers cuDevice* from."""

from __future__ import annotations

import struct

from zluda.core import CudaDevice
from zluda.core.stream import GREATEST_PRIORITY, LEAST_PRIORITY
from zluda.server.segment import CONSTANTS
from zluda.spec.attributes import device_attributes
from zluda.spec.protocol import protocol

_record = protocol().structures["device"].compiled()


def device_record(device: CudaDevice) -> bytes:
    """A `device` structure."""
    slots = CONSTANTS["ATTRIBUTE_SLOTS"]
    attributes, known = [0] * slots, [0] * (slots // 32)
    for number in device_attributes():
        attributes[number] = min(device.attribute(number), 2**31 - 1)
        known[number // 32] |= 1 << number % 32
    name = device.name.encode()[:255]
    try:
        return _record.pack(
            name,
            device.uuid,
            device.pci_bus_id.encode(),
            device.total_memory,
            *device.compute_capability,
            LEAST_PRIORITY,
            GREATEST_PRIORITY,
            *known,
            *attributes,
        )
    except struct.error as error:
        raise ValueError(f"{device!r} does not fit the device table: {error}") from error
