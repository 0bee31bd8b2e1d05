"""Linking. What links is loaded with the first input: few programs link."""

# ruff: noqa: ARG001 - every handler takes the state and the context first
from __future__ import annotations

from zluda.core import CudaError
from zluda.server.dispatch import Reply, handles
from zluda.server.state import State


@handles("link_add", slow=True)
def link_add(
    state: State, handle: int, link: int, device: int, kind: int, address: int, size: int, name_size: int, tail: bytes
) -> Reply:
    from zluda.core.link import Linker

    data = bytes(state.window.view(address, name_size + size)) if address else tail[: name_size + size]
    linker = state.links.get(link)
    if linker is None:
        linker = state.links[link] = Linker(state.driver.device(device).compute_capability)
    try:
        linker.add(kind, data[name_size:], data[:name_size].decode(errors="replace"))
    except CudaError as error:
        return _failed(error)
    return Reply()


@handles("link_complete", slow=True)
def link_complete(state: State, handle: int, link: int) -> Reply:
    from zluda.core.link import Linker

    try:
        return Reply(tail=state.links.get(link, Linker((0, 0))).complete())
    except CudaError as error:
        return _failed(error)


@handles("link_destroy")
def link_destroy(state: State, handle: int, link: int) -> None:
    state.links.pop(link, None)


def _failed(error: CudaError) -> Reply:
    return Reply(tail=(error.log or error.message).encode(), result=error.code)
