"""Memory pools and stream-ordered allocation."""

# ruff: noqa: ARG001 - every handler takes the state and the context first
from __future__ import annotations

from zluda.core import CudaError, MemoryKind, MemoryPool
from zluda.server.dispatch import handles
from zluda.server.segment import CONSTANTS
from zluda.server.state import State
from zluda.spec.types import enum

_DEVICES, _DEFAULT = CONSTANTS["MAX_DEVICES"], CONSTANTS["POOL_DEFAULT"]
_ATTRIBUTES = {
    number: name.removeprefix("CU_MEMPOOL_ATTR_").lower() for name, number in enum("CUmemPool_attribute").items()
}
_FIELDS = {
    "reuse_follow_event_dependencies": "follow_events",
    "reuse_allow_opportunistic": "opportunistic",
    "reuse_allow_internal_dependencies": "internal_dependencies",
    "release_threshold": "release_threshold",
    "reserved_mem_current": "reserved",
    "reserved_mem_high": "reserved_high",
    "used_mem_current": "used",
    "used_mem_high": "used_high",
}


def _make(state: State, place: int, max_size: int) -> MemoryPool:
    if place < _DEVICES:
        return MemoryPool(state.driver.device(place), MemoryKind.DEVICE, max_size)
    if place == _DEVICES:
        return MemoryPool(state.driver.device(0), MemoryKind.HOST, max_size)
    return MemoryPool(state.driver.device(max(place - _DEVICES - 3, 0)), MemoryKind.MANAGED, max_size)


def _pool(state: State, wire: int) -> MemoryPool:
    """A pool by its name on the wire; a default one is made when it is first named."""
    pool = state.pools.get(wire)
    if pool is None:
        if wire & 15 != _DEFAULT:
            raise CudaError("CUDA_ERROR_INVALID_VALUE", f"no memory pool {wire:#x}")
        place = wire >> 4
        pool = state.driver.device(place).pools.default if place < _DEVICES else _make(state, place, 0)
        pool = state.pools.setdefault(wire, pool)
    return pool


@handles("pool_create")
def pool_create(state: State, handle: int, pool: int, max_size: int, place: int) -> None:
    state.pools[pool] = _make(state, place, max_size)


@handles("pool_destroy")
def pool_destroy(state: State, handle: int, pool: int) -> None:
    state.pools.pop(pool).destroy()


@handles("pool_trim")
def pool_trim(state: State, handle: int, pool: int, keep: int) -> None:
    _pool(state, pool).trim(keep)


@handles("pool_set")
def pool_set(state: State, handle: int, pool: int, value: int, attribute: int) -> None:
    """The client has checked which can be set, and that marks are only reset."""
    found, name = _pool(state, pool), _ATTRIBUTES[attribute]
    if name == "release_threshold":
        found.release_threshold = value
    elif name == "reserved_mem_high":
        found.reset_reserved_high()
    elif name == "used_mem_high":
        found.reset_used_high()
    else:
        setattr(found, _FIELDS[name], bool(value))


@handles("pool_get")
def pool_get(state: State, handle: int, pool: int, attribute: int) -> tuple[int]:
    return (int(getattr(_pool(state, pool), _FIELDS[_ATTRIBUTES[attribute]])),)


@handles("pool_allocate")
def pool_allocate(state: State, handle: int, stream: int, pool: int, size: int) -> tuple[int]:
    """Never waits: the reader goes on."""
    found = state.stream(state.context(handle), stream)
    return (found.allocate(size, _pool(state, pool), patient=False),)


@handles("pool_allocate_patiently", slow=True)
def pool_allocate_patiently(state: State, handle: int, stream: int, pool: int, size: int) -> tuple[int]:
    return (state.stream(state.context(handle), stream).allocate(size, _pool(state, pool)),)


@handles("pool_free")
def pool_free(state: State, handle: int, stream: int, address: int) -> None:
    state.stream(state.context(handle), stream).free(address)
