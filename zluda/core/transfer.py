"""Bytes of this process to and from device memory, through the window."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError
from zluda.core.copies import require
from zluda.core.errors import CudaError, from_backend
from zluda.core.memory import ALIGNMENT, MemoryKind
from zluda.core.wait import Point

if TYPE_CHECKING:
    from zluda.core.context import Context
    from zluda.core.stream import Stream

BLOCK = 1 << 20
"""Bytes of a staging block."""
CHUNK = 4 << 20
"""Bytes that a blocking read or write stages at a time."""


class Staging:
    """Window memory for bytes on their way to the device. Pieces are cut off a block; a full block is used again when
    the streams that took from it have come past. The device's lock is held by the caller."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._window = context.device.driver.window
        self._block = 0
        self._used = BLOCK
        self._streams: set[Stream] = set()
        self._busy: deque[tuple[int, list[Point]]] = deque()
        self._blocks: list[int] = []

    def put(self, data: memoryview, stream: Stream) -> int:
        """The window address of a copy of `data` (at most BLOCK bytes) that `stream` is going to read."""
        size = len(data)
        if self._used + size > BLOCK:
            self._turn()
        address = self._block + self._used
        self._window.view(address, size)[:] = data
        self._used += -(-size // 16) * 16
        self._streams.add(stream)
        return address

    def _turn(self) -> None:
        if self._block:
            tails = [tail for stream in self._streams if (tail := stream.tail()) is not None]
            self._busy.append((self._block, tails))
            self._streams.clear()
            self._block = 0
        if self._busy and all(point.reached() for point in self._busy[0][1]):
            self._block = self._busy.popleft()[0]
        else:
            try:
                self._block = self._window.allocate(BLOCK, ALIGNMENT)
            except MemoryError as error:
                raise CudaError("CUDA_ERROR_OUT_OF_MEMORY", f"no staging memory left in the window: {error}") from error
            self._blocks.append(self._block)
        self._used = 0

    def close(self) -> None:
        """Give the blocks back; nothing reads them any more."""
        for block in self._blocks:
            self._window.free(block)
        self._blocks = []
        self._busy.clear()
        self._streams.clear()
        self._block, self._used = 0, BLOCK


def post(stream: Stream, address: int, data: memoryview) -> None:
    """Enqueue a copy of host bytes, taken now, to `address`."""
    context = stream.context
    require(stream, address, len(data))
    with context.device.lock:
        for at in range(0, len(data), BLOCK):
            piece = data[at : at + BLOCK]
            staged = context.staging.put(piece, stream)
            queue = stream.enter()
            try:
                queue.copy(address + at, staged, len(piece))
            except BackendError as error:
                raise context.fail(from_backend(error)) from error


def visible(context: Context, address: int, size: int) -> bool:
    """Whether this process reaches an allocation's memory itself, once the device has left it alone."""
    allocation = context.device.driver.memory.require(address, size)
    return allocation.kind is MemoryKind.HOST or allocation.context.device.host_reaching


def write(stream: Stream, address: int, data: bytes | bytearray | memoryview) -> None:
    """Copy host bytes to `address` behind the stream's work, and wait until they are there."""
    view = memoryview(data).cast("B")
    if not len(view):
        return
    if visible(stream.context, address, len(view)):
        stream.turn().block()
        stream.context.device.driver.window.view(address, len(view))[:] = view
        return
    for at in range(0, len(view), CHUNK):
        post(stream, address + at, view[at : at + CHUNK])
        stream.synchronize()


def read(stream: Stream, address: int, data: bytearray | memoryview) -> None:
    """Copy from `address` into host memory behind the stream's work, and wait until it is there."""
    view = memoryview(data).cast("B")
    if not len(view):
        return
    context = stream.context
    window = context.device.driver.window
    if visible(context, address, len(view)):
        stream.turn().block()
        view[:] = window.view(address, len(view))
        return
    size = min(len(view), CHUNK)
    staged = context.allocate_host(size)
    try:
        for at in range(0, len(view), size):
            piece = min(size, len(view) - at)
            stream.copy(staged, address + at, piece)
            stream.synchronize()
            view[at : at + piece] = window.view(staged, piece)
    finally:
        context.free_host(staged)
