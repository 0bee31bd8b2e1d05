"""Launches: the hot command."""

from __future__ import annotations

from zluda.server.dispatch import handles
from zluda.server.state import State


@handles("launch")
def launch(
    state: State,
    handle: int,
    function: int,
    stream: int,
    grid_x: int,
    grid_y: int,
    grid_z: int,
    block_x: int,
    block_y: int,
    block_z: int,
    shared: int,
    size: int,
    arguments: memoryview,
) -> None:
    found = state.functions.get(function) or state.function(function)
    found.launch(
        (grid_x, grid_y, grid_z),
        (block_x, block_y, block_z),
        bytes(arguments[:size]),
        shared,
        state.streams.get(stream) or state.stream(state.context(handle), stream),
    )
