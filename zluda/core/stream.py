"""Streams: order of work, the legacy default stream's joins, and everything that is enqueued.

A stream opens its backend queue with its first command. The legacy default stream waits for work of every blocking
stream before it, and blocking streams wait for work of the legacy stream before them (CUDA driver API, "Stream
synchronization behavior"); both sides count, so that a stream alone pays two comparisons for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError, Dim3, Kernel, Queue
from zluda.core import copies
from zluda.core.errors import CudaError, from_backend, invalid_handle, invalid_value
from zluda.core.memory import MemoryKind
from zluda.core.pool import settled
from zluda.core.transfer import post
from zluda.core.wait import Point, Wait
from zluda.spec.types import enum

if TYPE_CHECKING:
    from zluda.core.context import Context
    from zluda.core.event import Event
    from zluda.core.pool import MemoryPool

NON_BLOCKING = enum("CUstream_flags")["CU_STREAM_NON_BLOCKING"]
LEAST_PRIORITY = 0
GREATEST_PRIORITY = -5

_logger = logging.getLogger("zluda.core")


class StreamKind(Enum):
    """Which of CUDA's streams this is."""

    LEGACY = "legacy"
    """CU_STREAM_LEGACY, the default stream of a context."""
    PER_THREAD = "per-thread"
    """CU_STREAM_PER_THREAD of one thread; a blocking stream."""
    CREATED = "created"


class Stream:
    """A CUstream. Made by `Context.create_stream`; `Context.legacy` and `Context.per_thread` give the default ones.

    Enqueuing calls return at once. Their errors are those of the call; what execution does wrong shows in a later
    call, and ruins the context.
    """

    __slots__ = (
        "__weakref__",
        "_blocking",
        "_legacy_seen",
        "_lock",
        "_queue",
        "_tail",
        "_unflushed",
        "context",
        "destroyed",
        "flags",
        "is_legacy",
        "kind",
        "priority",
        "unjoined",
    )

    def __init__(self, context: Context, kind: StreamKind, flags: int = 0, priority: int = 0) -> None:
        if flags & ~NON_BLOCKING:
            raise invalid_value(f"unknown stream flags {flags:#x}")
        self.context = context
        self.kind = kind
        self.flags = flags
        self.priority = max(GREATEST_PRIORITY, min(LEAST_PRIORITY, priority))
        """Clamped to `Context.stream_priority_range`."""
        self.destroyed = False
        self.is_legacy = kind is StreamKind.LEGACY
        self.unjoined = False
        """A blocking stream with work that the legacy stream does not wait for yet."""
        self._blocking = not self.is_legacy and not flags & NON_BLOCKING
        self._lock = context.device.lock
        self._queue: Queue | None = None
        self._tail: Point | None = None
        """A point behind everything enqueued, while nothing newer is."""
        self._unflushed = False
        self._legacy_seen = context.legacy_sequence

    # --- order ------------------------------------------------------------------------------------------

    def enter(self) -> Queue:
        """The queue, ready for one command: CUDA's implicit order is enqueued. The device's lock is held, and kept
        until the command is enqueued."""
        context = self.context
        if context.unusable or self.destroyed:
            self._check()
        queue = self._queue
        if queue is None:
            queue = self._open()
        if self.is_legacy:
            if context.unjoined:
                self._join_blocking(queue)
            context.legacy_sequence += 1
        elif self._blocking:
            if self._legacy_seen != context.legacy_sequence:
                self._join_legacy(queue)
            if not self.unjoined:
                self.unjoined = True
                context.unjoined.append(self)
        self._tail = None
        if not self._unflushed:
            self._unflushed = True
            context.unflushed.add(self)
        return queue

    def _open(self) -> Queue:
        try:
            self._queue = self.context.device.open().create_queue(self.priority)
        except BackendError as error:
            raise from_backend(error) from error
        for gate in self.context.gates:
            self.hold(gate)
        return self._queue

    def hold(self, point: Point) -> None:
        """Let later work wait for a point, if there is a queue yet that would not. The device's lock is held."""
        if self._queue is None or point.reached():
            return
        if point.context.device is self.context.device:
            self._call(self._queue.wait, point.marker)
        else:
            self._call(self._queue.host_call, point.block)
        self._tail = None
        self._unflushed = True
        self.context.unflushed.add(self)

    def set_priority(self, priority: int) -> None:
        """CU_STREAM_ATTRIBUTE_PRIORITY: later work goes into a queue of that priority, behind what there is."""
        self._check()
        priority = max(GREATEST_PRIORITY, min(LEAST_PRIORITY, priority))
        with self._lock:
            if priority == self.priority:
                return
            self.priority = priority
            tail = self.tail()
            if tail is None:
                return
            self.flush()
            old = Stream(self.context, StreamKind.CREATED, self.flags)
            old._queue, old._tail, old.destroyed = self._queue, tail, True
            self.context.retire(old)
            self._queue = self._tail = None
            self._open()
            self.hold(tail)

    def _join_blocking(self, queue: Queue) -> None:
        streams = self.context.unjoined
        while streams:
            streams[-1]._hold_up(queue)
            streams.pop().unjoined = False

    def _join_legacy(self, queue: Queue) -> None:
        self.context.legacy._hold_up(queue)
        self._legacy_seen = self.context.legacy_sequence

    def _hold_up(self, queue: Queue) -> None:
        """Let `queue` wait for what is in this stream, if any of it is still in flight."""
        tail = self.tail()
        if tail is None or tail.reached():
            return
        self.flush()
        self._call(queue.wait, tail.marker)

    def tail(self) -> Point | None:
        """A point behind everything enqueued; None for a stream never used. The device's lock is held."""
        if self._tail is None and self._queue is not None:
            self.context.device.marker_bin.empty()
            try:
                self._tail = Point(self.context, self._queue.record(False))
            except BackendError as error:
                raise self.context.fail(from_backend(error)) from error
            self._unflushed = True
            self.context.unflushed.add(self)
        return self._tail

    def flush(self) -> None:
        """Let what was enqueued start without further calls."""
        if self._unflushed:
            with self._lock:
                if self._queue is not None:
                    self._call(self._queue.flush)
                self._unflushed = False
                self.context.unflushed.discard(self)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            function(*arguments)
        except BackendError as error:
            raise self.context.fail(from_backend(error)) from error

    # --- waiting ----------------------------------------------------------------------------------------

    def points(self) -> list[Point]:
        """Points behind all work of this stream and all that its order implies, without those known to be reached."""
        with self._lock:
            streams = [*self.context.unjoined, self] if self.is_legacy else [self]
            points = []
            for stream in streams:
                tail = stream.tail()
                stream.flush()
                if tail is not None and not tail.reached():
                    points.append(tail)
        return points

    def wait_handle(self) -> Wait:
        """What is in the stream now, to be waited for; for the legacy stream, that of blocking streams too."""
        self._check()
        return settled(Wait(self.context, self.points()))

    def turn(self) -> Wait:
        """When a copy by the host, in this stream's order, may touch memory: behind the stream's work and what the
        default stream's rules put before it."""
        if self._blocking and self._legacy_seen != self.context.legacy_sequence:
            point = self.mark()
            self.flush()
            return Wait(self.context, [point])
        return self.wait_handle()

    def synchronize(self) -> None:
        """cuStreamSynchronize."""
        self.wait_handle().block()

    def query(self) -> bool:
        """cuStreamQuery: whether everything in the stream has finished."""
        self._check()
        done = not self.points()
        self.context.check_sticky()
        return done

    def wait_event(self, event: Event, flags: int = 0) -> None:
        """cuStreamWaitEvent: later work waits for what the event holds now; the event may be another device's."""
        if flags:
            raise invalid_value(f"unknown wait flags {flags:#x}")
        self._check()
        event._check()
        point = event.point
        if point is None or point.reached():
            return
        event._flush()
        self.wait_point(point)

    def wait_for(self, other: Stream) -> None:
        """Later work waits for what is in another stream now."""
        with other._lock:
            point = other.tail()
        other.flush()
        if point is not None:
            self.wait_point(point)

    def wait_point(self, point: Point) -> None:
        """Later work waits for a point of another stream, which has been flushed; it may be another device's."""
        if point.reached():
            return
        with self._lock:
            queue = self.enter()
            if point.context.device is self.context.device:
                self._call(queue.wait, point.marker)
            else:
                self._call(queue.host_call, point.block)

    def mark(self, timing: bool = False) -> Point:
        """A point behind everything in the stream, as cuEventRecord takes it."""
        self._check()
        with self._lock:
            self.context.device.marker_bin.empty()
            queue = self.enter()
            try:
                point = Point(self.context, queue.record(timing))
            except BackendError as error:
                raise self.context.fail(from_backend(error)) from error
            self._tail = point
        return point

    def host_call(self, function: Callable[[], None]) -> None:
        """cuLaunchHostFunc: call `function` when earlier work has finished; later work waits for its return.

        An exception in it is logged and ruins the context: work behind it must not run as if it had succeeded.
        """
        context = self.context

        def call() -> None:
            try:
                function()
            except Exception as error:
                _logger.exception("a host function in a stream failed")
                context.fail(CudaError("CUDA_ERROR_LAUNCH_FAILED", f"a host function in a stream failed: {error!r}"))
                raise

        self._check()
        with self._lock:
            self._call(self.enter().host_call, call)

    def destroy(self) -> None:
        """cuStreamDestroy: returns at once; the queue goes when its work has finished.

        CUDA_ERROR_INVALID_HANDLE for a default stream.
        """
        if self.kind is not StreamKind.CREATED:
            raise invalid_handle("a default stream cannot be destroyed")
        with self._lock:
            self._check()
            self.flush()
            self.destroyed = True
            self.context.forget_stream(self)

    def close(self) -> None:
        """Release the queue; the work in it has finished or is given up. The device's lock is held."""
        self.destroyed = True
        queue, self._queue, self._tail = self._queue, None, None
        if queue is not None:
            queue.close()

    def _check(self) -> None:
        if self.destroyed:
            raise invalid_handle("the stream was destroyed")
        self.context.check()

    # --- memory in the stream's order -------------------------------------------------------------------

    def allocate(self, size: int, pool: MemoryPool | None = None, *, patient: bool = True) -> int:
        """cuMemAllocAsync, cuMemAllocFromPoolAsync: the address of memory from the device's pool, or another one.

        See `MemoryPool.allocate`.
        """
        return (pool or self.context.device.pools.current).allocate(size, self, patient=patient)

    def free(self, address: int) -> None:
        """cuMemFreeAsync: device or managed memory, of a pool or not; host memory of a pool.

        CUDA_ERROR_INVALID_VALUE for any other address.
        """
        if self.destroyed:
            raise invalid_handle("the stream was destroyed")
        allocation = self.context.device.driver.memory.at(address)
        if allocation is not None and allocation.pool is not None:
            allocation.pool.free(allocation, self)
        elif allocation is not None and allocation.kind in (MemoryKind.DEVICE, MemoryKind.MANAGED):
            point = self.mark()
            self.flush()
            self.context.device.pools.await_later(allocation.context.release_wait(allocation, point))
        else:
            raise invalid_value(f"{address:#x} is not the address of memory that was allocated")

    # --- commands ---------------------------------------------------------------------------------------

    def launch_kernel(self, kernel: Kernel, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        """Enqueue a launch that `Function.launch` has checked and packed."""
        with self._lock:
            queue = self.enter()
            try:
                queue.launch(kernel, grid, block, arguments, shared_bytes)
            except BackendError as error:
                raise self.context.fail(from_backend(error)) from error

    def copy(self, destination: int, source: int, size: int) -> None:
        """cuMemcpyAsync and its HtoD, DtoH and DtoD forms: copy `size` bytes between allocations.

        CUDA_ERROR_INVALID_VALUE for a range that no allocation contains. For the synchronous forms, `wait_handle`
        after it.
        """
        self._check()
        copies.copy(self, destination, source, size)

    def copy_3d(self, copy: copies.Copy3D) -> None:
        """cuMemcpy2DAsync and cuMemcpy3DAsync; see `Copy3D`."""
        self._check()
        copies.copy_3d(self, copy)

    def write(self, destination: int, data: bytes | bytearray | memoryview) -> None:
        """cuMemcpyHtoDAsync from pageable memory: `data` is taken now and copied in the stream's order."""
        self._check()
        post(self, destination, memoryview(data).cast("B"))

    def fill(self, destination: int, value: int, width: int, count: int) -> None:
        """cuMemsetD8Async, D16, D32: `count` elements of `width` (1, 2, 4) bytes."""
        self._check()
        copies.fill(self, destination, value, width, count)

    def fill_2d(self, destination: int, pitch: int, value: int, width: int, columns: int, rows: int) -> None:
        """cuMemsetD2D8Async, 16, 32: `rows` of `columns` elements of `width` bytes, `pitch` bytes apart."""
        self._check()
        copies.fill_2d(self, destination, pitch, value, width, columns, rows)
