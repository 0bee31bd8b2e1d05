"""Functions of the host in a stream's order that are told how the work before them went.

CUDA driver API, cuLaunchHostFunc and cuStreamAddCallback.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from zluda.core.errors import CudaError

if TYPE_CHECKING:
    from zluda.core.stream import Stream
    from zluda.core.wait import Point


def enqueue(stream: Stream, function: Callable[[int], None]) -> None:
    """Call `function` with a CUresult number when earlier work is over; later work waits for its return.

    The number is 0, or the code of what went wrong in the context. Raises the context's sticky error.
    """
    with stream.context.device.lock:
        before = stream.mark()
        stream.host_call(partial(_call, before, function))


def _call(before: Point, function: Callable[[int], None]) -> None:
    """`before` has been passed; waiting for it tells whether all was well."""
    status = 0
    try:
        before.block()
        before.context.check_sticky()
    except CudaError as error:
        status = error.code
    function(status)
