"""Contexts: primary ones and created ones."""

from __future__ import annotations

from zluda.core import Wait
from zluda.server.dispatch import handles
from zluda.server.state import State


@handles("primary_retain", slow=True)
def primary_retain(state: State, handle: int, device: int, flags: int) -> tuple[int]:
    """Opens the device at the first."""
    cuda_device = state.driver.device(device)
    if not cuda_device.primary.active:
        cuda_device.set_primary_flags(flags)
    context = cuda_device.retain_primary()
    return (state.adopt(handle, context).slot,)


@handles("primary_release", slow=True)
def primary_release(state: State, handle: int, device: int, reset: int) -> None:
    cuda_device = state.driver.device(device)
    (cuda_device.reset_primary_wait() if reset else cuda_device.release_primary_wait()).block()
    if reset or not cuda_device.primary.active:
        state.forget_contents(state.context(handle))


@handles("context_create", slow=True)
def context_create(state: State, handle: int, device: int, flags: int) -> tuple[int]:
    context = state.driver.device(device).create_context(flags)
    return (state.adopt(handle, context).slot,)


@handles("context_destroy", slow=True)
def context_destroy(state: State, handle: int) -> None:
    state.context(handle).context.destroy_wait().block()
    state.drop(handle)


@handles("context_synchronize")
def context_synchronize(state: State, handle: int) -> Wait:
    return state.context(handle).context.wait_handle()


@handles("ping")
def ping(state: State, handle: int) -> None:
    """Nothing: measures a round trip."""
