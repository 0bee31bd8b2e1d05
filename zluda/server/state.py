"""What the driver process keeps for its client: the core's objects by the client's handles."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Protocol, TypeVar

from zluda.core import Context, CudaError, Driver, Event, Function, MemoryPool, Module, Stream
from zluda.core.graph import ExecutableGraph
from zluda.core.virtual import PhysicalMemory
from zluda.server.callbacks import HostCalls
from zluda.server.segment import CONSTANTS, Answers, Segment
from zluda.window import Window

if TYPE_CHECKING:
    from zluda.core.link import Linker

_log = logging.getLogger("zluda.server")

_LEGACY = CONSTANTS["STREAM_LEGACY"]
_PER_THREAD = CONSTANTS["STREAM_PER_THREAD"]


class _InContext(Protocol):
    @property
    def context(self) -> Context: ...


_T = TypeVar("_T")
_In = TypeVar("_In", bound=_InContext)


class ContextRecord:
    """A context, the slot its sticky error is published in, and an error that waits to be returned once."""

    __slots__ = ("context", "deferred", "slot")

    def __init__(self, context: Context, slot: int) -> None:
        self.context = context
        self.slot = slot
        self.deferred = 0
        """Of posted work that failed without ruining the context; the next call that waits returns it."""


class State:
    """Everything by handle. Only the reader's thread and those that load modules for it write here."""

    def __init__(self, driver: Driver, window: Window, segment: Segment) -> None:
        self.driver = driver
        self.window = window
        self.segment = segment
        self.answers = Answers(segment, window)
        self.host_calls = HostCalls(segment)
        self.contexts: dict[int, ContextRecord] = {}
        self.streams: dict[int, Stream] = {}
        self.events: dict[int, Event] = {}
        self.modules: dict[int, Module] = {}
        self.functions: dict[int, Function] = {}
        self.pools: dict[int, MemoryPool] = {}
        self.physical: dict[int, PhysicalMemory] = {}
        self.links: dict[int, Linker] = {}
        self.graphs: dict[int, ExecutableGraph] = {}
        self._slots = list(range(CONSTANTS["MAX_CONTEXTS"] - 1, -1, -1))
        self._lock = threading.Lock()

    def context(self, handle: int) -> ContextRecord:
        """The record of a context; CUDA_ERROR_INVALID_CONTEXT if there is none."""
        record = self.contexts.get(handle)
        if record is None:
            raise CudaError("CUDA_ERROR_INVALID_CONTEXT", f"no context {handle:#x}")
        return record

    def adopt(self, handle: int, context: Context) -> ContextRecord:
        """Enter a context, or find the one that was entered. CUDA_ERROR_OUT_OF_MEMORY for too many."""
        record = self.contexts.get(handle)
        if record is None:
            with self._lock:
                if not self._slots:
                    raise CudaError("CUDA_ERROR_OUT_OF_MEMORY", f"more than {CONSTANTS['MAX_CONTEXTS']} contexts")
                slot = self._slots.pop()
            self.segment.set_error(slot, 0)
            record = self.contexts[handle] = ContextRecord(context, slot)
        return record

    def drop(self, handle: int) -> None:
        """Forget a context and the handles of what is in it."""
        record = self.contexts.pop(handle)
        self.forget_contents(record)
        with self._lock:
            self._slots.append(record.slot)

    def forget_contents(self, record: ContextRecord) -> None:
        """Forget the handles of what is in a context, which has been emptied."""
        context = record.context
        _forget(self.streams, context)
        _forget(self.events, context)
        _forget(self.modules, context)
        _forget(self.functions, context)
        _forget(self.graphs, context)
        record.deferred = 0
        self.segment.set_error(record.slot, 0)

    def stream(self, record: ContextRecord, wire: int) -> Stream:
        """A stream by its name on the wire; CUDA_ERROR_INVALID_HANDLE."""
        stream = self.streams.get(wire)
        if stream is not None:
            return stream
        if wire == _LEGACY:
            return record.context.legacy
        if wire & 15 == _PER_THREAD:
            return record.context.per_thread(wire)
        raise CudaError("CUDA_ERROR_INVALID_HANDLE", f"no stream {wire:#x}")

    def event(self, handle: int) -> Event:
        """CUDA_ERROR_INVALID_HANDLE if there is none."""
        return _find(self.events, handle, "event")

    def module(self, handle: int) -> Module:
        """CUDA_ERROR_INVALID_HANDLE if there is none."""
        return _find(self.modules, handle, "module")

    def function(self, handle: int) -> Function:
        """CUDA_ERROR_INVALID_HANDLE if there is none."""
        return _find(self.functions, handle, "function")

    def publish(self, record: ContextRecord) -> None:
        """Let the client know of a context's sticky error, if it has one."""
        error = record.context.error
        if error is not None:
            self.segment.set_error(record.slot, error.code)

    def defer(self, record: ContextRecord | None, error: CudaError, what: str) -> None:
        """Posted work failed: a sticky error is published, another is returned by the next call that waits."""
        if record is None:
            _log.error("%s: %s", what, error)
            return
        self.publish(record)
        if record.context.error is None:
            _log.error("%s: %s", what, error)
            record.deferred = record.deferred or error.code


def _find(table: dict[int, _T], handle: int, what: str) -> _T:
    found = table.get(handle)
    if found is None:
        raise CudaError("CUDA_ERROR_INVALID_HANDLE", f"no {what} {handle:#x}")
    return found


def _forget(table: dict[int, _In], context: Context) -> None:
    for handle, thing in list(table.items()):
        if thing.context is context:
            del table[handle]
