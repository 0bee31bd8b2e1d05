"""Stream memory operations: writing a value in a stream's order, and waiting until memory holds one.

CUDA driver API, "Stream memory operations".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError
from zluda.core.copies import require
from zluda.core.errors import CudaError, from_backend, invalid_value
from zluda.core.transfer import visible
from zluda.spec.types import enum

if TYPE_CHECKING:
    from zluda.core.context import Context
    from zluda.core.stream import Stream

_CONDITION = enum("CUstreamWaitValue_flags")
GEQ, EQ, AND, NOR = (_CONDITION[f"CU_STREAM_WAIT_VALUE_{name}"] for name in ("GEQ", "EQ", "AND", "NOR"))

SHORTEST, LONGEST = 20e-6, 1e-3
"""Seconds between two looks: the pause doubles from the one to the other."""
PATIENCE = 1.0
"""Seconds that a wait goes on once its context is being emptied."""


def write_value(stream: Stream, address: int, value: int, width: int) -> None:
    """cuStreamWriteValue32, 64: store `value` of `width` (4, 8) bytes at `address` behind earlier work.

    CUDA_ERROR_INVALID_VALUE for an address that is no multiple of `width` or lies in no allocation.
    """
    _check(stream, address, width)
    with stream.context.device.lock:
        queue = stream.enter()
        try:
            queue.fill(address, (value & (1 << 8 * width) - 1).to_bytes(width, "little"), 1)
        except BackendError as error:
            raise stream.context.fail(from_backend(error)) from error


def wait_value(stream: Stream, address: int, value: int, width: int, condition: int = GEQ) -> None:
    """cuStreamWaitValue32, 64: later work waits until what is at `address` fulfils a CU_STREAM_WAIT_VALUE_* condition.

    CUDA_ERROR_INVALID_VALUE as for `write_value`, and for an unknown condition.
    """
    _check(stream, address, width)
    if condition not in (GEQ, EQ, AND, NOR):
        raise invalid_value(f"unknown wait condition {condition:#x}")
    context = stream.context
    wait = MemoryWait(context, address, lambda found: fulfilled(found, value, width, condition), width)
    with context.device.lock:
        queue = stream.enter()
        context.memory_waits.add(wait)
        try:
            queue.host_call(wait.run)
        except BackendError as error:
            context.memory_waits.discard(wait)
            raise context.fail(from_backend(error)) from error


def fulfilled(found: int, value: int, width: int, condition: int) -> bool:
    """Whether memory that holds `found` ends a wait for `value`."""
    everything = (1 << 8 * width) - 1
    if condition == EQ:
        return found == value & everything
    if condition == AND:
        return found & value != 0
    if condition == NOR:
        return ~(found | value) & everything != 0
    return found - value & everything < 1 << 8 * width - 1


def _check(stream: Stream, address: int, width: int) -> None:
    if address % width:
        raise invalid_value(f"{address:#x} is no multiple of {width}")
    stream._check()
    require(stream, address, width)


class MemoryWait:
    """A stream's wait for memory. It runs on the stream's own thread, so that nothing else is held up.

    A wait that memory never ends, ends with its context: work behind it fails then.
    """

    def __init__(self, context: Context, address: int, ends: Callable[[int], bool], width: int = 4) -> None:
        self.context = context
        self.width = width
        self.address = address
        self._ends = ends
        self._deadline: float | None = None
        self._changed = threading.Event()

    def give_up_soon(self) -> None:
        """The context is being emptied: wait for `PATIENCE` at most."""
        self._deadline = time.monotonic() + PATIENCE
        self._changed.set()

    def run(self) -> None:
        """Return when memory ends the wait. Raises BackendError when it was given up."""
        pause = SHORTEST
        peek = Peek(self.context, self.address, self.width)
        try:
            while not self._ends(peek.value()):
                if self._deadline is None:
                    self._changed.wait(pause)
                elif time.monotonic() > self._deadline:
                    message = f"a wait for the value at {self.address:#x} is given up: its context is being destroyed"
                    # Not every backend stops a queue behind a host call that fails: host functions look here.
                    self.context.fail(CudaError("CUDA_ERROR_LAUNCH_FAILED", message))
                    raise BackendError(message)
                else:
                    time.sleep(pause)
                pause = min(2 * pause, LONGEST)
        finally:
            peek.close()
            with self.context.device.lock:
                self.context.memory_waits.discard(self)


class Peek:
    """Looks at a word of memory at once, whatever the streams do."""

    def __init__(self, context: Context, address: int, width: int) -> None:
        self._device = context.device
        self._window = context.device.driver.window
        self._address = address
        self._width = width
        self._visible = visible(context, address, width)
        if self._visible:
            self._staged = address
            return
        with self._device.lock:
            self._staged = self._window.allocate(width)
            self._queue = self._device.open().create_queue()

    def value(self) -> int:
        """What is there now. Raises BackendError if the device does not tell."""
        if not self._visible:
            with self._device.lock:
                self._queue.copy(self._staged, self._address, self._width)
                marker = self._queue.record()
                self._queue.flush()
            marker.synchronize()
            with self._device.lock:
                marker.close()
        view = self._window.view(self._staged, self._width)
        return view.cast("Q")[0] if self._width == 8 else view.cast("I")[0]

    def close(self) -> None:
        """Let go of the queue and the memory, if there are any."""
        if not self._visible:
            with self._device.lock:
                self._queue.close()
                self._window.free(self._staged)
