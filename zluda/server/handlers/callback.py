"""Functions of the host in streams."""

from __future__ import annotations

from zluda.core import CudaError, host_function
from zluda.server.dispatch import UNKNOWN, handles
from zluda.server.state import State


@handles("host_function")
def add_host_function(state: State, handle: int, stream: int, task: int) -> None:
    """The client hears of every task once, whatever becomes of it."""

    def call(status: int) -> None:
        if status:
            state.publish(record)
        state.host_calls.call(task, status)

    try:
        record = state.context(handle)
        host_function.enqueue(state.stream(record, stream), call)
    except Exception as error:
        state.host_calls.give_back(task, error.code if isinstance(error, CudaError) else UNKNOWN)
        raise
