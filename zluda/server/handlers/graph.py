"""Executable graphs: steps as the client packs them, and their launches."""

from __future__ import annotations

from collections.abc import Iterator

from zluda.core import CudaError
from zluda.core.graph import CopyStep, ExecutableGraph, FillStep, KernelStep, NoStep, RecordStep, Step, WaitStep
from zluda.server.dispatch import handles
from zluda.server.segment import CONSTANTS
from zluda.server.state import State
from zluda.spec.protocol import protocol

_NONE, _KERNEL, _COPY, _FILL, _RECORD, _WAIT = (
    CONSTANTS[f"GRAPH_{kind}"] for kind in ("NONE", "KERNEL", "COPY", "FILL", "RECORD", "WAIT")
)
_structures = protocol().structures
_head = _structures["graph_step"].compiled()
_kernel = _structures["graph_kernel"].compiled()
_copy = _structures["graph_copy"].compiled()
_fill = _structures["graph_fill"].compiled()
_event = _structures["graph_event"].compiled()


def _steps(state: State, data: bytes | memoryview, count: int) -> Iterator[Step]:
    at = 0
    for _ in range(count):
        kind, size = _head.unpack_from(data, at)
        if kind == _NONE:
            yield NoStep()
        elif kind == _KERNEL:
            _, _, function, gx, gy, gz, bx, by, bz, shared, length = _kernel.unpack_from(data, at)
            start = at + _structures["graph_kernel"].size
            arguments = bytes(data[start : start + length])
            yield KernelStep(state.function(function), (gx, gy, gz), (bx, by, bz), shared, arguments)
        elif kind == _COPY:
            yield CopyStep(*_copy.unpack_from(data, at)[2:])
        elif kind == _FILL:
            yield FillStep(*_fill.unpack_from(data, at)[2:])
        elif kind in (_RECORD, _WAIT):
            event = state.event(_event.unpack_from(data, at)[2])
            yield RecordStep(event) if kind == _RECORD else WaitStep(event)
        else:
            raise CudaError("CUDA_ERROR_UNKNOWN", f"a graph step of kind {kind}")
        at += size


def _graph(state: State, graph: int) -> ExecutableGraph:
    found = state.graphs.get(graph)
    if found is None:
        raise CudaError("CUDA_ERROR_INVALID_HANDLE", f"no executable graph {graph:#x}")
    return found


@handles("graph_define")
def graph_define(
    state: State, handle: int, graph: int, address: int, size: int, count: int, _: int, data: memoryview
) -> None:
    """Makes a graph, or gives one other steps."""
    packed = bytes(state.window.view(address, size)) if address else bytes(data[:size])
    steps = list(_steps(state, packed, count))
    found = state.graphs.get(graph)
    if found is None:
        state.graphs[graph] = ExecutableGraph(state.context(handle).context, steps)
    else:
        found.replace_all(steps)


@handles("graph_replace")
def graph_replace(state: State, handle: int, graph: int, index: int, _: int, data: memoryview) -> None:  # noqa: ARG001
    (step,) = _steps(state, data, 1)
    _graph(state, graph).replace(index, step)


@handles("graph_launch")
def graph_launch(state: State, handle: int, graph: int, stream: int, first: int, count: int) -> None:
    _graph(state, graph).launch(state.stream(state.context(handle), stream), first, count)


@handles("graph_destroy")
def graph_destroy(state: State, handle: int, graph: int) -> None:  # noqa: ARG001
    found = state.graphs.pop(graph, None)
    if found is not None:
        found.close()
