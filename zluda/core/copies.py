"""Copies and fills between allocations, checked as the manual says and enqueued row by row where they must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError
from zluda.core.errors import CudaError, from_backend, invalid_value
from zluda.core.memory import MAX_PITCH, MemoryKind

if TYPE_CHECKING:
    from zluda.core.stream import Stream


@dataclass(frozen=True, slots=True)
class Copy2D:
    """CUDA_MEMCPY2D between linear memory: bytes, rows and addresses; `*_x` is in bytes, `*_y` in rows.

    A pitch of 0 is taken as the width, as CUDA does for one packed row after another.
    """

    width: int
    height: int
    source: int
    destination: int
    source_pitch: int = 0
    destination_pitch: int = 0
    source_x: int = 0
    source_y: int = 0
    destination_x: int = 0
    destination_y: int = 0


def require(stream: Stream, address: int, size: int) -> None:
    """Check that a range lies in one allocation, and that the stream's device reaches it.

    CUDA_ERROR_INVALID_VALUE; CUDA_ERROR_NOT_SUPPORTED for memory of another device, which is not in the window.
    """
    device = stream.context.device
    allocation = device.driver.memory.require(address, size)
    owner = allocation.context.device
    if owner is not device and allocation.kind is not MemoryKind.HOST and not owner.host_reaching:
        message = f"{address:#x} is memory of {owner.name}, {device.name} does not reach it: peer copies are not built"
        raise CudaError("CUDA_ERROR_NOT_SUPPORTED", message)


def copy(stream: Stream, destination: int, source: int, size: int) -> None:
    """Enqueue a copy of `size` bytes."""
    if size < 0:
        raise invalid_value(f"a copy of {size} bytes")
    if size == 0:
        return
    require(stream, destination, size)
    require(stream, source, size)
    with stream._lock:
        queue = stream.enter()
        try:
            queue.copy(destination, source, size)
        except BackendError as error:
            raise stream.context.fail(from_backend(error)) from error


def copy_2d(stream: Stream, request: Copy2D) -> None:
    """Enqueue a 2D copy: one command if the rows are packed on both sides, else one per row."""
    width, height = request.width, request.height
    if width < 0 or height < 0:
        raise invalid_value(f"a 2D copy of {width} by {height}")
    from_pitch = _pitch(request.source_pitch, width + request.source_x, "source")
    to_pitch = _pitch(request.destination_pitch, width + request.destination_x, "destination")
    if width == 0 or height == 0:
        return
    source = request.source + request.source_y * from_pitch + request.source_x
    destination = request.destination + request.destination_y * to_pitch + request.destination_x
    require(stream, destination, to_pitch * (height - 1) + width)
    require(stream, source, from_pitch * (height - 1) + width)
    if from_pitch == to_pitch == width:
        width, height = width * height, 1
    with stream._lock:
        queue = stream.enter()
        try:
            for row in range(height):
                queue.copy(destination + row * to_pitch, source + row * from_pitch, width)
        except BackendError as error:
            raise stream.context.fail(from_backend(error)) from error


def _pitch(pitch: int, least: int, which: str) -> int:
    if pitch == 0:
        return least
    if pitch < least:
        raise invalid_value(f"the {which} pitch of {pitch} is less than the {least} bytes of a row")
    if pitch > MAX_PITCH:
        raise invalid_value(f"the {which} pitch of {pitch} is above CU_DEVICE_ATTRIBUTE_MAX_PITCH")
    return pitch


def fill(stream: Stream, destination: int, value: int, width: int, count: int) -> None:
    """Enqueue a fill of `count` elements of `width` bytes."""
    fill_2d(stream, destination, width * count, value, width, count, 1)


def fill_2d(stream: Stream, destination: int, pitch: int, value: int, width: int, columns: int, rows: int) -> None:
    """Enqueue a 2D fill; the address and the pitch must be multiples of the element's width."""
    if width not in (1, 2, 4):
        raise invalid_value(f"elements of {width} bytes")
    if columns < 0 or rows < 0:
        raise invalid_value(f"a fill of {columns} by {rows}")
    if columns == 0 or rows == 0:
        return
    if destination % width:
        raise invalid_value(f"{destination:#x} is not a multiple of {width}")
    if rows > 1:
        if pitch % width or pitch < columns * width:
            raise invalid_value(f"a pitch of {pitch} bytes for {columns} elements of {width} bytes")
        if pitch > MAX_PITCH:
            raise invalid_value(f"the pitch of {pitch} is above CU_DEVICE_ATTRIBUTE_MAX_PITCH")
    require(stream, destination, pitch * (rows - 1) + columns * width)
    pattern = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
    if pitch == columns * width:
        columns, rows = columns * rows, 1
    with stream._lock:
        queue = stream.enter()
        try:
            for row in range(rows):
                queue.fill(destination + row * pitch, pattern, columns)
        except BackendError as error:
            raise stream.context.fail(from_backend(error)) from error
