"""Memory, copies and fills."""

# ruff: noqa: ARG001 - every handler takes the state and the context first
from __future__ import annotations

from zluda.core import Copy3D, Wait
from zluda.core.transfer import post
from zluda.server.dispatch import handles
from zluda.server.state import State


@handles("memory_allocate", slow=True)
def memory_allocate(state: State, handle: int, size: int) -> tuple[int]:
    """Slow, because it may wait for memory that is being freed."""
    return (state.context(handle).context.allocate(size),)


@handles("memory_free")
def memory_free(state: State, handle: int, address: int) -> Wait:
    return state.context(handle).context.free_wait(address)


@handles("host_allocate", slow=True)
def host_allocate(state: State, handle: int, size: int, flags: int) -> tuple[int]:
    return (state.context(handle).context.allocate_host(size, flags),)


@handles("host_free")
def host_free(state: State, handle: int, address: int) -> Wait:
    return state.context(handle).context.free_host_wait(address)


@handles("block_allocate")
def block_allocate(state: State, handle: int, size: int) -> tuple[int]:
    return (state.window.allocate(size),)


@handles("block_free")
def block_free(state: State, handle: int, address: int) -> None:
    state.window.free(address)


@handles("cuMemGetInfo_v2")
def memory_info(state: State, handle: int) -> tuple[int, int]:
    return state.context(handle).context.memory_info()


@handles("copy")
def copy(state: State, handle: int, stream: int, destination: int, source: int, size: int) -> None:
    state.stream(state.context(handle), stream).copy(destination, source, size)


@handles("copy_3d")
def copy_3d(
    state: State,
    handle: int,
    stream: int,
    destination: int,
    destination_pitch: int,
    destination_height: int,
    source: int,
    source_pitch: int,
    source_height: int,
    width: int,
    height: int,
    depth: int,
) -> None:
    request = Copy3D(
        width=width,
        height=height,
        depth=depth,
        source=source,
        destination=destination,
        source_pitch=source_pitch,
        destination_pitch=destination_pitch,
        source_height=source_height,
        destination_height=destination_height,
    )
    state.stream(state.context(handle), stream).copy_3d(request)


@handles("write")
def write(state: State, handle: int, stream: int, destination: int, size: int, data: memoryview) -> None:
    post(state.stream(state.context(handle), stream), destination, data[:size])


@handles("fill")
def fill(
    state: State, handle: int, stream: int, destination: int, pitch: int, width: int, height: int, value: int, size: int
) -> None:
    found = state.stream(state.context(handle), stream)
    if height == 1:
        found.fill(destination, value, size, width)
    else:
        found.fill_2d(destination, pitch, value, size, width, height)
