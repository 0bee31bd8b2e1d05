"""In-order queues and their markers."""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Callable
from ctypes import byref, c_uint64, c_void_p
from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError, Dim3, Kernel, Marker, Queue
from zluda_opencl import api
from zluda_opencl.errors import check, error, launch_error
from zluda_opencl.module import OpenCLKernel

if TYPE_CHECKING:
    from zluda_opencl.device import OpenCLDevice

_log = logging.getLogger(__name__)
_COMPLETE = 0
_HOST_CALL_FAILED = -5  # CL_OUT_OF_RESOURCES: OpenCL has no code of its own for a failed host function


class OpenCLMarker(Marker):
    """An event of a marker command."""

    def __init__(self, event: int, owner: OpenCLQueue) -> None:
        self._event = event
        self._queue = owner

    @property
    def event(self) -> int:
        """The event's handle."""
        if not self._event:
            raise BackendError("the marker is closed")
        return self._event

    @property
    def queue(self) -> OpenCLQueue:
        """The queue that it was recorded in."""
        return self._queue

    def query(self) -> bool:
        status = api.event_status(self.event)
        if status < 0:
            raise error("execution", status, "a command before the marker failed")
        return status == _COMPLETE

    def synchronize(self) -> None:
        self._queue.flush()
        code = api.wait_for_events(1, (c_void_p * 1)(self.event))
        # The status says more than clWaitForEvents, which reports every failure as one code.
        if not self.query():
            check(code, "clWaitForEvents")

    def elapsed(self, later: Marker) -> float:
        if not isinstance(later, OpenCLMarker):
            raise BackendError("the markers are of different backends")
        return (later._completed() - self._completed()) / 1e6

    def close(self) -> None:
        event, self._event = self._event, 0
        if event:
            check(api.release_event(event), "clReleaseEvent")

    def _completed(self) -> int:
        """Device time at completion, in nanoseconds."""
        value = c_uint64()
        code = api.get_profiling_info(self.event, api.PROFILING_COMMAND_END, 8, byref(value), None)
        check(code, "clGetEventProfilingInfo")
        return value.value

    def __del__(self) -> None:
        if self._event and not sys.is_finalizing():
            self.close()


class OpenCLQueue(Queue):
    """An in-order command queue with profiling (which was measured to cost nothing)."""

    def __init__(self, device: OpenCLDevice, handle: int, forget: Callable[[OpenCLQueue], None]) -> None:
        """Owns `handle`; `forget` is called when it is closed."""
        self._device = device
        self._forget = forget
        self._handle = handle
        if device.usm is not None:
            self._enqueue_copy, self._enqueue_fill = device.usm.copy, device.usm.fill
            self._copy_call, self._fill_call = "clEnqueueMemcpyINTEL", "clEnqueueMemFillINTEL"
        else:
            self._enqueue_copy, self._enqueue_fill = api.enqueue_svm_copy, api.enqueue_svm_fill
            self._copy_call, self._fill_call = "clEnqueueSVMMemcpy", "clEnqueueSVMMemFill"
        self._used = False
        """Whether anything may have been enqueued since the last synchronize. Set after enqueuing and cleared before
        looking, as synchronize may run in another thread."""
        self._host_calls: _HostCalls | None = None
        self._closing = threading.Lock()
        """Markers flush their queue from any thread, without the device's lock: not one that is just being released."""

    def copy(self, destination: int, source: int, size: int) -> None:
        if not size:
            return
        code = self._enqueue_copy(self._open(), 0, destination, source, size, 0, None, None)
        if code:
            raise error(self._copy_call, code, f"{size} bytes {source:#x} → {destination:#x}")
        self._used = True

    def fill(self, destination: int, pattern: bytes, count: int) -> None:
        size = len(pattern)
        if size not in (1, 2, 4, 8, 16):
            raise BackendError(f"a fill pattern has 1, 2, 4, 8 or 16 bytes, not {size}")
        if not count:
            return
        # OpenCL wants the destination aligned to the pattern; a pattern of equal bytes needs no alignment.
        if destination % size and pattern == pattern[:1] * size:
            pattern, count, size = pattern[:1], count * size, 1
        code = self._enqueue_fill(self._open(), destination, pattern, size, size * count, 0, None, None)
        if code:
            raise error(self._fill_call, code, f"{count} times {size} bytes at {destination:#x}")
        self._used = True

    def launch(self, kernel: Kernel, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        if not isinstance(kernel, OpenCLKernel):
            raise BackendError("the kernel is of another backend")
        kernel.bind(grid, block, arguments, shared_bytes)
        code = api.enqueue_kernel(
            self._handle, kernel.handle, 3, None, kernel.global_size, kernel.local_size, 0, None, None
        )
        if code:
            self._open()
            dims = f"grid {tuple(grid)}, block {tuple(block)}, {shared_bytes} shared bytes"
            raise launch_error("clEnqueueNDRangeKernel", code, f"kernel {kernel.signature.name}, {dims}")
        self._used = True

    def record(self, timing: bool = False) -> OpenCLMarker:  # noqa: ARG002 - every event has its time
        return OpenCLMarker(self._mark(), self)

    def wait(self, marker: Marker) -> None:
        if not isinstance(marker, OpenCLMarker):
            raise BackendError("the marker is of another backend")
        if marker.queue is not self:
            marker.queue.flush()
        self._barrier(marker.event)

    def host_call(self, function: Callable[[], None]) -> None:
        if self._host_calls is None:
            self._host_calls = _HostCalls()
        reached = OpenCLMarker(self._mark(), self)
        done = api.user_event(self._device.context)
        try:
            self._barrier(done)
        except BackendError:
            api.release_event(done)
            raise
        self.flush()
        self._host_calls.post(reached, done, function)

    def flush(self) -> None:
        with self._closing:
            if self._handle:
                check(api.flush(self._handle), "clFlush")

    def synchronize(self) -> None:
        handle = self._open()
        # clFinish hides what went wrong before it; a marker's status may tell.
        used, self._used = self._used, False
        marker = self.record() if used else None
        check(api.finish(handle), "clFinish")
        if marker is not None:
            marker.query()
            marker.close()
        if self._host_calls is not None:
            self._host_calls.raise_failure()

    def close(self) -> None:
        if not self._handle:
            return
        handle = self._handle
        code = api.finish(handle)
        if self._host_calls is not None:
            self._host_calls.close()
        with self._closing:
            self._handle = 0
        self._forget(self)
        check(code, "clFinish")
        check(api.release_queue(handle), "clReleaseCommandQueue")

    def _open(self) -> int:
        if not self._handle:
            raise BackendError("the queue is closed")
        return self._handle

    def _mark(self) -> int:
        event = c_void_p()
        check(api.enqueue_marker(self._open(), 0, None, byref(event)), "clEnqueueMarkerWithWaitList")
        assert event.value is not None
        return event.value

    def _barrier(self, event: int) -> None:
        code = api.enqueue_barrier(self._open(), 1, (c_void_p * 1)(event), None)
        check(code, "clEnqueueBarrierWithWaitList")
        self._used = True


class _HostCalls:
    """The thread that calls a queue's host functions, one after the other.

    It waits for the marker before the call and then completes the user event after it. Callbacks of the runtime would
    save the thread, but would run Python on the runtime's own threads and keep these from working.
    """

    def __init__(self) -> None:
        self._posted: queue.SimpleQueue[tuple[OpenCLMarker, int, Callable[[], None]] | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="zluda-host-calls", daemon=True)
        self._thread.start()

    def post(self, reached: OpenCLMarker, done: int, function: Callable[[], None]) -> None:
        self._posted.put((reached, done, function))

    def close(self) -> None:
        self._posted.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            message = f"a host function raised {type(failure).__name__}: {failure}"
            raise BackendError(message, call="host_call") from failure

    def _run(self) -> None:
        while (item := self._posted.get()) is not None:
            reached, done, function = item
            status = _COMPLETE
            try:
                reached.synchronize()
            except BackendError as failure:
                # The function is called all the same: it may be what tells the program.
                status = failure.code or _HOST_CALL_FAILED
            try:
                function()
            except BaseException as failure:  # noqa: BLE001 - kept for the next synchronize
                _log.exception("a host function raised")
                self._failure = failure
                status = _HOST_CALL_FAILED
            code = api.set_user_event_status(done, status)
            if code:
                _log.error("%s", error("clSetUserEventStatus", code))
            api.release_event(done)
            reached.close()
            del item, reached, function
