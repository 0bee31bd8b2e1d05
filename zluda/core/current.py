"""The stack of current contexts of each thread, for callers in this process (the C client keeps its own)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from zluda.core.errors import CudaError

if TYPE_CHECKING:
    from zluda.core.context import Context


class _Stack(threading.local):
    def __init__(self) -> None:
        self.contexts: list[Context] = []


_stack = _Stack()


def push(context: Context) -> None:
    """cuCtxPushCurrent: make `context` current to this thread."""
    _stack.contexts.append(context)


def pop() -> Context:
    """cuCtxPopCurrent: the context that was current; the one below it is current again."""
    if not _stack.contexts:
        raise CudaError("CUDA_ERROR_INVALID_CONTEXT", "no context is current to this thread")
    return _stack.contexts.pop()


def get() -> Context | None:
    """cuCtxGetCurrent: the current context, or None."""
    return _stack.contexts[-1] if _stack.contexts else None


def set(context: Context | None) -> None:  # cuCtxSetCurrent's name
    """cuCtxSetCurrent: replace the top of the stack; None pops it."""
    if _stack.contexts:
        _stack.contexts.pop()
    if context is not None:
        _stack.contexts.append(context)


def require() -> Context:
    """The current context; CUDA_ERROR_INVALID_CONTEXT if there is none."""
    context = get()
    if context is None:
        raise CudaError("CUDA_ERROR_INVALID_CONTEXT", "no context is current to this thread")
    return context
