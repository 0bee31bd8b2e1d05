"""Contexts: what belongs together, lives together, and fails together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from zluda.backend.seam import BackendError
from zluda.core import current
from zluda.core.errors import CudaError, invalid_value
from zluda.core.event import Event
from zluda.core.memory import PITCH, Allocation, MemoryKind
from zluda.core.options import JitOptions
from zluda.core.pool import settled
from zluda.core.stream import GREATEST_PRIORITY, LEAST_PRIORITY, Stream, StreamKind
from zluda.core.transfer import Staging, read, write
from zluda.core.wait import Point, Wait
from zluda.spec.types import constant, enum

if TYPE_CHECKING:
    from zluda.core.device import CudaDevice
    from zluda.core.memory_operation import MemoryWait
    from zluda.core.module import Module

_FLAGS = enum("CUctx_flags")
_SCHEDULING = {_FLAGS[f"CU_CTX_SCHED_{how}"] for how in ("AUTO", "SPIN", "YIELD", "BLOCKING_SYNC")}
_HOST_FLAGS = sum(constant(f"CU_MEMHOSTALLOC_{what}") for what in ("PORTABLE", "DEVICEMAP", "WRITECOMBINED"))
_ATTACH = [enum("CUmemAttach_flags")[f"CU_MEM_ATTACH_{whom}"] for whom in ("GLOBAL", "HOST")]

_LIMIT = enum("CUlimit")
LIMITS = {
    _LIMIT["CU_LIMIT_STACK_SIZE"]: 1024,
    _LIMIT["CU_LIMIT_PRINTF_FIFO_SIZE"]: 1 << 20,
    _LIMIT["CU_LIMIT_MALLOC_HEAP_SIZE"]: 8 << 20,
    _LIMIT["CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH"]: 2,
    _LIMIT["CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT"]: 2048,
    _LIMIT["CU_LIMIT_MAX_L2_FETCH_GRANULARITY"]: 64,
    _LIMIT["CU_LIMIT_PERSISTING_L2_CACHE_SIZE"]: 0,
}
"""CUlimit numbers and the manual's defaults; the others are CUDA_ERROR_UNSUPPORTED_LIMIT."""
_LARGEST = {
    _LIMIT["CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH"]: 24,
    _LIMIT["CU_LIMIT_MAX_L2_FETCH_GRANULARITY"]: 128,
    _LIMIT["CU_LIMIT_PERSISTING_L2_CACHE_SIZE"]: 0,
}

_logger = logging.getLogger("zluda.core")


class Context:
    """A CUcontext. Every operation names its context or an object in it; none looks at what is current.

    All methods may be called from any thread. Methods named `*_wait` or `wait_handle` never block: they return a
    `Wait` for the work that is in flight at their call.
    """

    def __init__(self, device: CudaDevice, *, primary: bool = False, flags: int = 0, api_version: int = 3020) -> None:
        self.device = device
        self.primary = primary
        self.flags = _checked_flags(flags)
        self.api_version = api_version
        """cuCtxGetApiVersion."""
        self.active = False
        """Neither destroyed nor, for the primary context, waiting to be retained."""
        self.unusable = True
        """`check` would raise: looked at by the launch path."""
        self.error: CudaError | None = None
        """The sticky error, once there is one."""
        self.ending: Wait | None = None
        """While the context is emptied: what that waits for."""
        self.cache_config = 0
        """CUfunc_cache; kept, as a preference the devices here have no use for."""
        self.shared_config = 0
        """CUsharedconfig; likewise."""
        self._limits = dict(LIMITS)
        self._clear()

    def _clear(self) -> None:
        self.legacy_sequence = 0
        """Counts the legacy stream's commands."""
        self.unjoined: list[Stream] = []
        """Blocking streams with work that the legacy stream does not wait for yet."""
        self.unflushed: set[Stream] = set()
        """Streams with work that may not have started; `flush` empties it."""
        self.legacy = Stream(self, StreamKind.LEGACY)
        """The legacy default stream."""
        self._streams: set[Stream] = set()
        self._thread_streams: dict[Hashable, Stream] = {}
        self._dying: list[Stream] = []
        self._events: WeakSet[Event] = WeakSet()
        self._modules: set[Module] = set()
        self._allocations: dict[int, Allocation] = {}
        self._frees: list[Wait] = []
        self.gatherer: Stream | None = None
        """Waits for all others where an event holds the whole context's work."""
        self.gates: list[Point] = []
        """What all later work waits for: streams that open their queue look here."""
        self.memory_waits: set[MemoryWait] = set()
        """Waits of streams for values in memory."""
        self.staging = Staging(self)
        """Window memory for bytes on their way to the device."""

    def __repr__(self) -> str:
        kind = "primary context" if self.primary else "context"
        return f"<{kind} of {self.device!r}{'' if self.active else ', not active'}>"

    # --- state ------------------------------------------------------------------------------------------

    def activate(self) -> None:
        """Make a new or emptied context usable; opens the device."""
        with self.device.lock:
            self.device.open()
            self._clear()
            self.error = None
            self.active = True
            self.unusable = False
            self.device.contexts.add(self)

    def check(self) -> None:
        """Raise the sticky error, or CUDA_ERROR_CONTEXT_IS_DESTROYED; return if the context is usable."""
        self.check_sticky()
        if not self.active:
            what = "the primary context is not active: retain it" if self.primary else "the context was destroyed"
            raise CudaError("CUDA_ERROR_CONTEXT_IS_DESTROYED", what)

    def check_sticky(self) -> None:
        """Raise the sticky error, if there is one."""
        error = self.error
        if error is not None:
            raise CudaError(error.name, error.message, log=error.log)

    def fail(self, error: CudaError) -> CudaError:
        """Tell the context of an error: a sticky one ruins it (the first stays). Returns the error, to be raised."""
        if error.sticky and self.error is None:
            _logger.error("%s: %s", self, error)
            self.error = error
            self.unusable = True
        return error

    def set_flags(self, flags: int) -> None:
        """cuCtxSetFlags, cuDevicePrimaryCtxSetFlags: overwrite the flags. CUDA_ERROR_INVALID_VALUE for unknown ones."""
        self.flags = _checked_flags(flags)

    def limit(self, limit: int) -> int:
        """cuCtxGetLimit, by CUlimit number. CUDA_ERROR_UNSUPPORTED_LIMIT for one that no device here has."""
        self.check()
        if limit not in self._limits:
            raise CudaError("CUDA_ERROR_UNSUPPORTED_LIMIT", f"limit {limit:#x} is not supported")
        return self._limits[limit]

    def set_limit(self, limit: int, value: int) -> None:
        """cuCtxSetLimit: ask for a value; what is beyond the greatest is clamped, as the manual allows."""
        self.limit(limit)
        if value < 0:
            raise invalid_value(f"a limit of {value}")
        self._limits[limit] = min(value, _LARGEST.get(limit, value))

    @property
    def stream_priority_range(self) -> tuple[int, int]:
        """cuCtxGetStreamPriorityRange: least and greatest priority."""
        return LEAST_PRIORITY, GREATEST_PRIORITY

    # --- streams and events -----------------------------------------------------------------------------

    def create_stream(self, flags: int = 0, priority: int = 0) -> Stream:
        """cuStreamCreateWithPriority; `flags` are CU_STREAM_*."""
        with self.device.lock:
            self.check()
            self._reap()
            stream = Stream(self, StreamKind.CREATED, flags, priority)
            self._streams.add(stream)
            return stream

    def per_thread(self, thread: Hashable) -> Stream:
        """CU_STREAM_PER_THREAD of the thread that `thread` names: the caller's token, the same at each call."""
        stream = self._thread_streams.get(thread)
        if stream is None:
            with self.device.lock:
                self.check()
                stream = self._thread_streams.setdefault(thread, Stream(self, StreamKind.PER_THREAD))
        return stream

    def end_thread(self, thread: Hashable) -> None:
        """The thread is gone: its default stream is destroyed when its work has finished."""
        with self.device.lock:
            stream = self._thread_streams.pop(thread, None)
            if stream is not None:
                stream.flush()
                stream.destroyed = True
                self._dying.append(stream)
                self._reap()

    def create_event(self, flags: int = 0) -> Event:
        """cuEventCreate; `flags` are CU_EVENT_*."""
        self.check()
        event = Event(self, flags)
        self._events.add(event)
        return event

    def forget_stream(self, stream: Stream) -> None:
        """A created stream was destroyed: keep its queue until its work has finished. The device's lock is held."""
        self._streams.discard(stream)
        self._dying.append(stream)
        self._reap()

    def _reap(self) -> None:
        """Close destroyed streams whose work has finished. The device's lock is held."""
        still = []
        for stream in self._dying:
            tail = self._tail(stream)
            if tail is None or _over(tail):
                if stream.unjoined:
                    self.unjoined.remove(stream)
                stream.close()
            else:
                still.append(stream)
        self._dying = still

    def _reap_later(self) -> None:
        with self.device.lock:
            self._reap()

    # --- waiting ----------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Let everything enqueued in any stream start without further calls."""
        if self.unflushed:
            for stream in [*self.unflushed]:
                stream.flush()

    def wait_handle(self) -> Wait:
        """All work in the context, to be waited for."""
        self.check()
        wait = settled(Wait(self, self._points()))
        return wait.then(self._reap_later) if self._dying else wait

    def synchronize(self) -> None:
        """cuCtxSynchronize."""
        self.wait_handle().block()

    def _points(self) -> list[Point]:
        points: list[Point] = []
        with self.device.lock:
            self._reap()
            for stream in self.streams():
                tail = self._tail(stream)
                if tail is not None and not _over(tail):
                    points.append(tail)
        return points

    def streams(self) -> list[Stream]:
        """All that may have work in them, destroyed ones too. The device's lock is held."""
        return [self.legacy, *self._streams, *self._thread_streams.values(), *self._dying]

    def retire(self, stream: Stream) -> None:
        """Close a stream's queue when its work has finished. The device's lock is held."""
        self._dying.append(stream)

    def _tail(self, stream: Stream) -> Point | None:
        try:
            tail = stream.tail()
            stream.flush()
        except CudaError:  # the context knows; the stream has no end to wait for
            return None
        return tail

    # --- memory -----------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """cuMemAlloc: the address of `size` bytes of device memory. CUDA_ERROR_INVALID_VALUE for size 0."""
        return self._allocate(size, MemoryKind.DEVICE, 0).address

    def allocate_pitch(self, width: int, height: int, element: int) -> tuple[int, int]:
        """cuMemAllocPitch: address and pitch of `height` rows of `width` bytes; `element` is 4, 8 or 16."""
        if element not in (4, 8, 16):
            raise invalid_value(f"elements of {element} bytes: 4, 8 or 16 are allowed")
        if width <= 0 or height <= 0:
            raise invalid_value(f"{height} rows of {width} bytes")
        pitch = -(-width // PITCH) * PITCH
        return self.allocate(pitch * height), pitch

    def allocate_host(self, size: int, flags: int = 0) -> int:
        """cuMemHostAlloc, cuMemAllocHost: the address of `size` bytes of pinned memory in the window."""
        if flags & ~_HOST_FLAGS:
            raise invalid_value(f"unknown flags {flags:#x} for host memory")
        return self._allocate(size, MemoryKind.HOST, flags).address

    def allocate_managed(self, size: int, flags: int) -> int:
        """cuMemAllocManaged: the address of `size` bytes that host and devices share.

        `flags` is CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST. CUDA_ERROR_NOT_SUPPORTED for a device without.
        """
        if flags not in _ATTACH:
            raise invalid_value(f"flags {flags:#x} for managed memory")
        self.device.require_managed()
        return self._allocate(size, MemoryKind.MANAGED, flags).address

    def _allocate(self, size: int, kind: MemoryKind, flags: int) -> Allocation:
        self.check()
        if size <= 0:
            raise invalid_value(f"an allocation of {size} bytes")
        take = self.device.memory.allocate_kind
        try:
            with self.device.lock:
                address = take(size, kind)
        except CudaError as error:
            if error.name != "CUDA_ERROR_OUT_OF_MEMORY":
                raise
            self.device.pools.await_frees()
            with self.device.lock:
                address = take(size, kind)
        allocation = Allocation(address, size, kind, self, flags)
        self.device.driver.memory.add(allocation)
        self._allocations[address] = allocation
        return allocation

    def await_frees(self) -> None:
        """Wait for memory that is only waiting for its last user."""
        for wait in [*self._frees]:
            wait.block()

    def free(self, address: int) -> None:
        """cuMemFree, waiting for work in flight. NULL is allowed."""
        self.free_wait(address).block()

    def free_host(self, address: int) -> None:
        """cuMemFreeHost, waiting for work in flight."""
        self.free_host_wait(address).block()

    def free_wait(self, address: int) -> Wait:
        """Take back device memory: its address is invalid at once, the memory is reused after the wait.

        CUDA_ERROR_INVALID_VALUE if `address` is not what `allocate` returned.
        """
        self.check()
        if address == 0:
            return Wait(self)
        return self._free(address, MemoryKind.DEVICE, MemoryKind.MANAGED)

    def free_host_wait(self, address: int) -> Wait:
        """As `free_wait` for host memory."""
        self.check()
        return self._free(address, MemoryKind.HOST)

    def _free(self, address: int, *kinds: MemoryKind) -> Wait:
        allocation = self.device.driver.memory.at(address)
        if allocation is not None and allocation.pool is not None and MemoryKind.DEVICE in kinds:
            return allocation.pool.free_wait(allocation, self)
        if allocation is None or allocation.pool is not None or allocation.kind not in kinds:
            raise invalid_value(f"{address:#x} is not the address of {kinds[0].value} memory that was allocated")
        return allocation.context.release_wait(allocation)

    def release_wait(self, allocation: Allocation, *points: Point) -> Wait:
        """Take back an allocation of this context after the work in flight in it, and `points`."""
        with self.device.lock:
            if self._allocations.pop(allocation.address, None) is not allocation:
                raise invalid_value(f"{allocation.address:#x} was freed already")
            self.device.driver.memory.remove(allocation)
            wait = Wait(self, [*self._points(), *points], quiet=True)

            def release() -> None:
                with self.device.lock:
                    self._frees.remove(wait)
                    self.device.memory.free(allocation)

            self._frees.append(wait.then(release))
        wait.done()
        return wait

    def allocate_module(self, size: int) -> Allocation:
        """Memory for a module's data block."""
        return self._allocate(size, MemoryKind.MODULE, 0)

    def memory_info(self) -> tuple[int, int]:
        """cuMemGetInfo: free and total bytes of the device."""
        self.check()
        return self.device.memory_info()

    def address_range(self, address: int) -> tuple[int, int]:
        """cuMemGetAddressRange: base and size of the allocation that holds `address`; CUDA_ERROR_NOT_FOUND."""
        self.check()
        allocation = self.device.driver.memory.find(address)
        if allocation is None:
            raise CudaError("CUDA_ERROR_NOT_FOUND", f"{address:#x} is not in any allocation")
        return allocation.address, allocation.size

    def write(self, address: int, data: bytes | bytearray | memoryview, stream: Stream | None = None) -> None:
        """Copy host bytes (any buffer) to `address`, in the order of `stream`; blocks until the data is there."""
        write(stream or self.legacy, address, data)

    def read(self, address: int, size: int, stream: Stream | None = None) -> bytearray:
        """`size` bytes from `address` as they are after the work in `stream`; blocks until then."""
        data = bytearray(size)
        read(stream or self.legacy, address, data)
        return data

    # --- modules ----------------------------------------------------------------------------------------

    def load_module(self, image: bytes | str, options: JitOptions | None = None, name: str = "") -> Module:
        """cuModuleLoadData, cuModuleLoadDataEx: load PTX text or a container that holds some.

        `name` is for messages. May compile, and blocks while it does. CUDA_ERROR_INVALID_IMAGE, INVALID_PTX (with
        `CudaError.log`), NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION, OUT_OF_MEMORY.
        """
        from zluda.core.module import Module

        self.check()
        module = Module(self, image, options or JitOptions(), name)
        with self.device.lock:
            self.check()
            self._modules.add(module)
        return module

    def load_module_file(self, path: str | Path) -> Module:
        """cuModuleLoad: load a file. CUDA_ERROR_FILE_NOT_FOUND if it cannot be read."""
        self.check()
        try:
            image = Path(path).read_bytes()
        except OSError as error:
            raise CudaError("CUDA_ERROR_FILE_NOT_FOUND", f"{path}: {error.strerror}") from error
        return self.load_module(image, name=str(path))

    def forget_module(self, module: Module) -> None:
        """A module was unloaded."""
        self._modules.discard(module)

    # --- the end ----------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """cuCtxDestroy: wait for the work in the context and destroy everything in it.

        If it is current to this thread it is popped. The primary context cannot be destroyed
        (CUDA_ERROR_INVALID_CONTEXT).
        """
        if self.primary:
            raise CudaError("CUDA_ERROR_INVALID_CONTEXT", "the primary context is released, not destroyed")
        if not self.active:
            raise CudaError("CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context was destroyed")
        self.destroy_wait().block()
        if current.get() is self:
            current.pop()

    def destroy_wait(self) -> Wait:
        """Destroy the context: it is unusable at once, its contents go after the wait, which never raises."""
        return self.empty_wait()

    def empty_wait(self) -> Wait:
        """Take everything out of the context; an inactive one is empty already."""
        with self.device.lock:
            if not self.active:
                return self.ending or Wait(self, quiet=True)
            points = self._points()
            for memory_wait in self.memory_waits:
                memory_wait.give_up_soon()
            self.active = False
            self.unusable = True
            self.ending = Wait(self, points, quiet=True).then(self._empty)
            return self.ending

    def _empty(self) -> None:
        """Release what is in the context: modules, events, streams, memory. Failures are logged; the rest goes on."""
        device = self.device
        with device.lock:
            for module in [*self._modules]:
                _try(module.close)
            for event in [*self._events]:
                event.close()
            for stream in (*self._dying, *self._streams, *self._thread_streams.values(), self.legacy):
                _try(stream.close)
            for wait in [*self._frees]:
                _try(wait.block)
            for allocation in [*self._allocations.values()]:
                device.driver.memory.remove(allocation)
                _try(partial(device.memory.free, allocation))
            self.staging.close()
            device.marker_bin.empty()
            self.error = None
            self._clear()
            self.ending = None
            device.contexts.discard(self)


def _checked_flags(flags: int) -> int:
    if flags & ~_FLAGS["CU_CTX_FLAGS_MASK"] or flags & _FLAGS["CU_CTX_SCHED_MASK"] not in _SCHEDULING:
        raise invalid_value(f"context flags {flags:#x}")
    return flags


def _over(point: Point) -> bool:
    """Whether a point is reached or will never be; its error has been told to the context."""
    try:
        return point.reached()
    except CudaError:
        return True


def _try(action: Callable[[], object]) -> None:
    try:
        action()
    except (CudaError, BackendError):
        _logger.exception("while a context was being emptied")
