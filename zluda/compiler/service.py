"""The compile service: a request's image from the cache, else from a worker process. Loads no compiler itself."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from zluda.compiler.cache import Cache, request_key
from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompiledImage, CompileRequest
from zluda.compiler.supervisor import Worker
from zluda.compiler.wire import pack, request_to_wire

_log = logging.getLogger("zluda.compiler")

DEFAULT_TIMEOUT = 300.0
"""Seconds a compile may take, ZLUDA_COMPILE_TIMEOUT."""

MAX_WORKERS = 4

IDLE_LIMIT = 300.0
"""Seconds after which an idle worker is let go; it holds a compiler and a vendor's runtime in memory."""

LOW_EFFORT = "-cl-opt-disable"
"""The option of a second try when the device's compiler dies or takes too long. Kernels with subgroups break by it."""

_FULL_EFFORT_PART = 0.2
"""Part of the time limit that the device's compiler may use at full effort where a second try is possible."""


def compile_portable(request: CompileRequest) -> CompiledImage:
    """Compiles to a portable image in this process, without cache or worker. Raises CompileError; LLVM may exit."""
    from zluda.compiler import portable

    return portable.compile_portable(request)


def _timeout() -> float:
    text = os.environ.get("ZLUDA_COMPILE_TIMEOUT")
    if not text:
        return DEFAULT_TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(f"ZLUDA_COMPILE_TIMEOUT: {text!r} is no time: write a positive number of seconds")
    return seconds


def _low_effort_possible(image: CompiledImage, request: CompileRequest) -> bool:
    """Whether the kernels survive the low-effort option: those that use subgroups do not."""
    return LOW_EFFORT not in request.options and not any(
        "warp" in kernel.uses or kernel.signature.required_subgroup_size is not None for kernel in image.kernels
    )


_SERVICES: weakref.WeakSet[CompileService] = weakref.WeakSet()


def _after_fork() -> None:
    for service in _SERVICES:
        service._reset()


os.register_at_fork(after_in_child=_after_fork)


class _Job:
    __slots__ = ("future", "key", "request")

    def __init__(self, request: CompileRequest, key: bytes) -> None:
        self.request = request
        self.key = key
        self.future: Future[CompiledImage] = Future()
        # Several callers share it: none may cancel it.
        self.future.set_running_or_notify_cancel()


class CompileService:
    """Compiles requests, several at a time, each in a worker process. For any number of threads.

    Workers start with the first miss and stay warm. `workers` is their greatest number, by default one per CPU and four
    at most; `cache` may be None. After a fork the child starts with no workers of its own.
    Raises ValueError for a ZLUDA_COMPILE_TIMEOUT that is no time.
    """

    def __init__(self, cache: Cache | None, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError("a compile service needs at least one worker")
        self.cache = cache
        self.timeout = _timeout()
        """Seconds for one compile, waiting for a worker not counted."""
        self._limit = workers or min(len(os.sched_getaffinity(0)), MAX_WORKERS)
        self._closed = False
        self._reset()
        _SERVICES.add(self)

    def _reset(self) -> None:
        self._lock = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._running: dict[bytes, _Job] = {}
        self._threads: set[threading.Thread] = set()
        self._workers: set[Worker] = set()
        self._idle = 0

    # --- callers ---

    def compile(self, request: CompileRequest) -> CompiledImage:
        """The image for a request, from the cache or a worker. Raises CompileError."""
        return self.submit(request).result()

    def submit(self, request: CompileRequest) -> Future[CompiledImage]:
        """Like `compile`, without waiting; the future cannot be cancelled. A request under way is joined."""
        started = time.perf_counter()
        key = request_key(request)
        if self.cache is not None and (image := self.cache.load(key)) is not None:
            _log.info("hit: %s in %.1f ms", _what(request), 1e3 * (time.perf_counter() - started))
            done: Future[CompiledImage] = Future()
            done.set_result(image)
            return done
        with self._lock:
            if self._closed:
                raise CompileError("the compile service is closed")
            if (running := self._running.get(key)) is not None:
                return running.future
            _log.info("miss: %s", _what(request))
            job = self._running[key] = _Job(request, key)
            self._jobs.append(job)
            if self._idle >= len(self._jobs) or len(self._threads) == self._limit:
                self._lock.notify()
            else:
                thread = threading.Thread(target=self._serve, name="zluda-compile", daemon=True)
                self._threads.add(thread)
                thread.start()
        return job.future

    def forget(self, request: CompileRequest) -> None:
        """Removes a request's result from the cache, as when the device refuses a native binary that it once made."""
        if self.cache is not None:
            self.cache.discard(request_key(request))

    def close(self) -> None:
        """End the workers; compiles under way fail with CompileError. Harmless twice."""
        with self._lock:
            self._closed = True
            threads, workers = list(self._threads), list(self._workers)
            self._lock.notify_all()
        for worker in workers:
            worker.kill()
        for thread in threads:
            thread.join()
        while self._jobs:
            self._finish(self._jobs.popleft(), CompileError("the compile service was closed"))

    # --- a worker's thread ---

    def _serve(self) -> None:
        """Takes jobs as long as there are some. A worker dies with the thread that made it, so the thread goes last."""
        worker: Worker | None = None
        while (job := self._next()) is not None:
            worker = self._work(job, worker)
        if worker is not None:
            self._let_go(worker)

    def _next(self) -> _Job | None:
        """The next job; None when the service is closed or there was none for long."""
        with self._lock:
            self._idle += 1
            self._lock.wait_for(lambda: self._jobs or self._closed, IDLE_LIMIT)
            self._idle -= 1
            if self._jobs and not self._closed:
                return self._jobs.popleft()
            self._threads.discard(threading.current_thread())
            return None

    def _work(self, job: _Job, worker: Worker | None) -> Worker | None:
        """Does a job; the worker to go on with."""
        try:
            attempt = _Attempt(self, job.request, worker)
            try:
                image = attempt.image()
            finally:
                worker = attempt.worker
            self._keep(job, image)
        except CompileError as error:
            _log.info("failed (%s): %s", error.kind, _what(job.request))
            self._finish(job, _with_cause(error, job.request))
        except BaseException as error:  # noqa: BLE001 - the waiting callers get it
            _log.exception("The compile service failed")
            self._finish(job, error)
        else:
            self._finish(job, image)
        return worker

    def _keep(self, job: _Job, image: CompiledImage) -> None:
        if self.cache is None:
            return
        if image.image.format.startswith("native:") and not job.request.build_identity:
            _log.warning("Not cached: %s does not say what its binaries depend on", job.request.backend)
            return
        self.cache.store(job.key, image)

    def _finish(self, job: _Job, result: CompiledImage | BaseException) -> None:
        with self._lock:
            self._running.pop(job.key, None)
        if isinstance(result, BaseException):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)

    def _hire(self) -> Worker:
        worker = Worker()
        with self._lock:
            self._workers.add(worker)
            closed = self._closed
        if closed:
            self._let_go(worker)
            raise CompileError("the compile service was closed")
        return worker

    def _let_go(self, worker: Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.close()


class _Attempt:
    """A request on its way through one or two tries."""

    def __init__(self, service: CompileService, request: CompileRequest, worker: Worker | None) -> None:
        self.worker = worker
        self._service = service
        self._request = request
        self._portable: CompiledImage | None = None
        self._since = self._deadline = 0.0

    def image(self) -> CompiledImage:
        """The result. Raises CompileError. `worker` is then the one to go on with, if any."""
        request = self._request
        fields, text = request_to_wire(request)
        self._employ()
        self._since = time.monotonic()
        self._deadline = self._since + self._service.timeout
        try:
            image = self._run({"op": "compile", "request": fields}, text, self._after_portable)
        except CompileError as error:
            portable = self._portable
            if error.kind not in ("died", "timeout") or portable is None or not _low_effort_possible(portable, request):
                raise
            warning = f"{error.message}. Built with {LOW_EFFORT} instead; the kernels may run slower."
            _log.warning("%s", warning)
            fields = {**fields, "options": [*request.options, LOW_EFFORT]}
            self._employ()
            image = self._run({"op": "finalize", "request": fields}, pack(portable), lambda _: self._deadline)
            image = image.model_copy(update={"log": "\n".join(filter(None, (image.log, warning)))})
        _log.info("compiled: %s in %.3f s", _what(request), time.monotonic() - self._since)
        return image

    def _after_portable(self, image: CompiledImage) -> float:
        """Keeps the portable image; the deadline for what the vendor's compiler does with it."""
        self._portable = image
        if not _low_effort_possible(image, self._request):
            return self._deadline
        return min(self._deadline, time.monotonic() + _FULL_EFFORT_PART * self._service.timeout)

    def _employ(self) -> None:
        """Makes sure of a living worker."""
        if self.worker is not None and not self.worker.alive:
            # It died between two compiles (the kernel's memory killer, a user): that is no compile's error.
            _log.warning("A compile worker ended while it was idle")
            self._drop()
        if self.worker is None:
            self.worker = self._service._hire()

    def _run(self, header: dict[str, Any], blob: bytes, on_portable: Callable[[CompiledImage], float]) -> CompiledImage:
        assert self.worker is not None
        try:
            return self.worker.run(
                header,
                blob,
                what=_what(self._request),
                since=self._since,
                deadline=self._deadline,
                on_portable=on_portable,
            )
        except BaseException as error:
            if not isinstance(error, CompileError) or error.kind in ("died", "timeout"):
                self._drop()
            raise

    def _drop(self) -> None:
        if self.worker is not None:
            self._service._let_go(self.worker)
            self.worker = None


def _what(request: CompileRequest) -> str:
    """A request in a few words, for messages."""
    entries = ", ".join(request.entries[:3]) or "every kernel"
    more = f" and {len(request.entries) - 3} more" if len(request.entries) > 3 else ""
    return f"{entries}{more} of {request.name}"


def _with_cause(error: CompileError, request: CompileRequest) -> CompileError:
    error.__cause__ = error.to_ptx(request.ptx, request.name)
    return error
