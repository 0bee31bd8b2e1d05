"""Virtual memory management. The client keeps handles, reservations and mappings, and has checked what it asks for."""

# ruff: noqa: ARG001 - every handler takes the state and the context first
from __future__ import annotations

from zluda.core import MemoryKind, Wait
from zluda.core.virtual import PhysicalMemory
from zluda.server.dispatch import handles
from zluda.server.state import State


@handles("virtual_reserve")
def virtual_reserve(state: State, handle: int, size: int, alignment: int) -> tuple[int]:
    return (state.driver.virtual.reserve(size, alignment),)


@handles("virtual_free")
def virtual_free(state: State, handle: int, address: int, size: int) -> None:
    state.driver.virtual.free(address, size)


@handles("virtual_map")
def virtual_map(state: State, handle: int, address: int, size: int, physical: int) -> None:
    state.driver.virtual.map(address, size, state.physical[physical])


@handles("virtual_unmap")
def virtual_unmap(state: State, handle: int, address: int, size: int) -> Wait:
    return state.driver.virtual.unmap_wait(address, size)


@handles("virtual_access")
def virtual_access(state: State, handle: int, address: int, size: int, access: int) -> Wait:
    return state.driver.virtual.set_access_wait(address, size, access)


@handles("physical_create", slow=True)
def physical_create(state: State, handle: int, physical: int, size: int, device: int) -> tuple[int]:
    """The host's is device -1. Gives where in the window's file the memory is, as an address."""
    kind = MemoryKind.DEVICE if device >= 0 else MemoryKind.HOST
    memory = state.physical[physical] = PhysicalMemory(state.driver.device(max(device, 0)), size, kind)
    return (memory.address,)


@handles("physical_destroy")
def physical_destroy(state: State, handle: int, physical: int) -> None:
    state.physical.pop(physical).destroy()
