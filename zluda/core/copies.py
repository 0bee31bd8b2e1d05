"""Copies and fills between allocations, checked as the manual says and enqueued row by row where they must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from zluda.backend.seam import BackendError
from zluda.core.errors import CudaError, from_backend, invalid_value
from zluda.core.memory import MAX_PITCH, MemoryKind

if TYPE_CHECKING:
    from zluda.core.stream import Stream


@dataclass(frozen=True, slots=True)
class Copy3D:
    """CUDA_MEMCPY3D, and with one slice CUDA_MEMCPY2D, between linear memory: bytes, rows, slices and addresses.

    `*_x` is in bytes, `*_y` in rows, `*_z` in slices; `*_height` is the rows of a slice. A pitch or height of 0 is
    the copy's own, as CUDA takes it for one packed row or slice after another.
    """

    width: int
    height: int
    source: int
    destination: int
    depth: int = 1
    source_pitch: int = 0
    destination_pitch: int = 0
    source_height: int = 0
    destination_height: int = 0
    source_x: int = 0
    source_y: int = 0
    source_z: int = 0
    destination_x: int = 0
    destination_y: int = 0
    destination_z: int = 0


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


def copy_3d(stream: Stream, request: Copy3D) -> None:
    """Enqueue a 3D copy: as few commands as what is packed on both sides allows, else one per row."""
    width, height, depth = request.width, request.height, request.depth
    if width < 0 or height < 0 or depth < 0:
        raise invalid_value(f"a copy of {width} by {height} by {depth}")
    source, destination = _sides(request)
    if width == 0 or height == 0 or depth == 0:
        return
    for side in (destination, source):
        require(stream, side.start, side.slice * (depth - 1) + side.pitch * (height - 1) + width)
    if height == 1 or source.pitch == destination.pitch == width:
        width, height = width * height, 1
        if source.slice == destination.slice == width:
            width, depth = width * depth, 1
    with stream._lock:
        queue = stream.enter()
        try:
            for z in range(depth):
                to, start = destination.start + z * destination.slice, source.start + z * source.slice
                for y in range(height):
                    queue.copy(to + y * destination.pitch, start + y * source.pitch, width)
        except BackendError as error:
            raise stream.context.fail(from_backend(error)) from error


class _Side(NamedTuple):
    """The source or the destination: its first byte, and how far its rows and slices are apart, in bytes."""

    start: int
    pitch: int
    slice: int


def _sides(request: Copy3D) -> tuple[_Side, _Side]:
    r = request
    source = _side(r, "source", r.source, r.source_pitch, r.source_height, (r.source_x, r.source_y, r.source_z))
    at = (r.destination_x, r.destination_y, r.destination_z)
    return source, _side(r, "destination", r.destination, r.destination_pitch, r.destination_height, at)


def _side(request: Copy3D, which: str, base: int, pitch: int, rows: int, at: tuple[int, int, int]) -> _Side:
    x, y, z = at
    pitch = _pitch(pitch, request.width + x, which)
    if rows and rows < request.height + y:
        raise invalid_value(f"the {which} has {rows} rows to a slice, the copy reaches row {request.height + y}")
    slice_ = pitch * (rows or request.height + y)
    return _Side(base + z * slice_ + y * pitch + x, pitch, slice_)


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
