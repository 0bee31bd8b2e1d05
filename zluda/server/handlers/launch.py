"""Launches: the hot command, so its entry is written out."""

from __future__ import annotations

import struct

from zluda.server.dispatch import HEADER, Entry, builds, failed
from zluda.server.state import State
from zluda.spec.protocol import protocol

_command = next(c for c in protocol().commands if c.name == "launch")
_CONTEXT_AT = protocol().structures["header"].offset("context")
_ARGUMENTS_AT = HEADER + _command.fields.size


@builds("launch")
def launch(state: State) -> Entry:
    """The header's context and the command's fields are unpacked in one go."""
    unpack = struct.Struct("<Q" + _command.fields.format().removeprefix("<")).unpack_from
    mapped, functions, streams = state.segment.map, state.functions, state.streams

    def entry(at: int, _: int) -> None:
        context, function, stream, gx, gy, gz, bx, by, bz, shared, size = unpack(mapped, at + _CONTEXT_AT)
        start = at + _ARGUMENTS_AT
        try:
            (functions.get(function) or state.function(function)).launch(
                (gx, gy, gz),
                (bx, by, bz),
                mapped[start : start + size],
                shared,
                streams.get(stream) or state.stream(state.context(context), stream),
            )
        except Exception as error:  # noqa: BLE001 - see `failed`
            failed(state, context, error, "launch")

    return entry
