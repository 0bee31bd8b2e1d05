"""Managed memory."""

# ruff: noqa: ARG001 - every handler takes the state and the context first
from __future__ import annotations

from zluda.core import managed
from zluda.core.managed import Location
from zluda.server.dispatch import handles
from zluda.server.state import State

_NONE = Location(0, -2)
"""CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID."""
_DEVICE = 1
"""CU_MEM_LOCATION_TYPE_DEVICE."""
_HOST_BIT = 1 << 63


@handles("managed_allocate", slow=True)
def managed_allocate(state: State, handle: int, size: int, flags: int) -> tuple[int]:
    return (state.context(handle).context.allocate_managed(size, flags),)


@handles("managed_advise")
def managed_advise(state: State, handle: int, address: int, size: int, advice: int, kind: int, number: int) -> None:
    managed.advise(state.driver, address, size, advice, Location(kind, number))


@handles("managed_prefetch")
def managed_prefetch(state: State, handle: int, address: int, size: int, kind: int, number: int) -> None:
    managed.prefetch(state.driver, address, size, Location(kind, number))


@handles("managed_usage")
def managed_usage(state: State, handle: int, address: int, size: int) -> tuple[int, ...]:
    usage = managed.usage(state.driver, address, size)
    bits = sum(1 << where.id if where.type == _DEVICE else _HOST_BIT for where in usage.accessed_by)
    return (bits, *(usage.preferred or _NONE), *(usage.prefetched or _NONE), int(usage.read_mostly))
