"""Commands to handlers: unpacking what the client packed, and answering it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from zluda.core import CudaError, Wait
from zluda.server.state import State
from zluda.spec.errors import errors
from zluda.spec.protocol import Command, protocol

_log = logging.getLogger("zluda.server")

Handler = Callable[..., Any]
Entry = Callable[[int, int], Callable[[], None] | None]
"""Takes the command at a byte offset of the segment, and its first eight bytes as a number. Gives back what is left to
be done, where that blocks: it does not raise."""

UNKNOWN = errors()["CUDA_ERROR_UNKNOWN"].code
"""CUDA_ERROR_UNKNOWN: a defect of ours."""

HEADER = protocol().structures["header"].size


class Reply(NamedTuple):
    """What a call gives back: the values of its reply, and bytes that follow them. A plain tuple means values alone."""

    values: tuple[Any, ...] = ()
    tail: bytes = b""
    result: int = 0


class _Registered(NamedTuple):
    function: Handler
    kind: Literal["plain", "slow", "built"]


_handlers: dict[str, _Registered] = {}


def handles(name: str, *, slow: bool = False) -> Callable[[Handler], Handler]:
    """Register the handler of a command: `function(state, context handle, *fields[, tail])`.

    A call's handler returns None, a tuple of the reply's values, a `Reply`, or a `Wait`, which is answered when the
    device is done. A `slow` one blocks, so reading goes on beside it. `tail` is a memoryview to the end of the
    command's last unit (bytes if slow).
    """

    def register(function: Handler) -> Handler:
        if name in _handlers:
            raise ValueError(f"two handlers for {name}")
        _handlers[name] = _Registered(function, "slow" if slow else "plain")
        return function

    return register


def builds(name: str) -> Callable[[Callable[[State], Entry]], Callable[[State], Entry]]:
    """Register what makes the entry of a posted command itself, for one that is worth it."""

    def register(make: Callable[[State], Entry]) -> Callable[[State], Entry]:
        _handlers[name] = _Registered(make, "built")
        return make

    return register


def table(state: State) -> list[Entry]:
    """Entries by opcode. Raises ValueError when commands and handlers do not match."""
    import zluda.server.handlers  # noqa: F401 - registers them

    commands = protocol().commands
    names = {c.name for c in commands}
    if names != set(_handlers):
        raise ValueError(f"commands without handlers or the reverse: {sorted(names ^ set(_handlers))}")
    entries: list[Entry] = [_skip] * (max(c.opcode for c in commands) + 1)
    for command in commands:
        registered = _handlers[command.name]
        if registered.kind == "built":
            entries[command.opcode] = registered.function(state)
            continue
        make = _post if command.answer == "post" else _call
        entries[command.opcode] = make(state, command, registered)
    return entries


def _skip(at: int, word: int) -> None:
    """Opcode 0: padding up to the ring's end."""


def _post(state: State, command: Command, registered: _Registered) -> Entry:
    unpack = command.fields.compiled().unpack_from
    function, name = registered.function, command.name
    buffer, u64 = state.segment.bytes, state.segment.u64
    tail_at = HEADER + command.fields.size

    def post(at: int, word: int) -> None:
        handle = u64[(at >> 3) + 2]
        try:
            if command.tail:
                function(state, handle, *unpack(buffer, at + HEADER), buffer[at + tail_at : at + (word >> 32) * 64])
            else:
                function(state, handle, *unpack(buffer, at + HEADER))
        except Exception as error:  # noqa: BLE001 - see `failed`
            failed(state, handle, error, name)

    return post


def failed(state: State, handle: int, error: Exception, name: str) -> None:
    """A posted command failed. The driver process outlives its own defects, and the program is told of them too."""
    if not isinstance(error, CudaError):
        _log.error("%s failed", name, exc_info=error)
        error = CudaError("CUDA_ERROR_UNKNOWN", repr(error))
    state.defer(state.contexts.get(handle), error, name)


def _call(state: State, command: Command, registered: _Registered) -> Entry:
    unpack = command.fields.compiled().unpack_from
    pack = command.reply.compiled().pack
    function, name = registered.function, command.name
    buffer, u64, contexts, send = state.segment.bytes, state.segment.u64, state.contexts, state.answers.send
    tail_at = HEADER + command.fields.size

    def answer(slot: int, handle: int, outcome: Any) -> None:
        record = contexts.get(handle)
        result = 0
        if record is not None and record.deferred and name in _WAITING:
            result, record.deferred = record.deferred, 0
        if outcome is None:
            send(slot, result)
        elif isinstance(outcome, Reply):
            send(slot, outcome.result or result, pack(*outcome.values) if outcome.values else b"", outcome.tail)
        else:
            send(slot, result, pack(*outcome))

    def refuse(slot: int, handle: int, error: BaseException) -> None:
        record = contexts.get(handle)
        if record is not None:
            state.publish(record)
        if isinstance(error, CudaError):
            if error.code == UNKNOWN:
                _log.error("%s: %s", name, error)
            elif error.name != "CUDA_ERROR_NOT_READY":
                _log.info("%s: %s", name, error)
            send(slot, error.code)
        else:
            _log.error("%s failed", name, exc_info=error)
            send(slot, UNKNOWN)

    def finish(slot: int, handle: int, wait: Wait) -> None:
        try:
            wait.block()
            answer(slot, handle, None)
        except Exception as error:  # noqa: BLE001 - told to the program, whatever it is
            refuse(slot, handle, error)

    def run(slot: int, handle: int, fields: tuple[Any, ...]) -> None:
        try:
            outcome = function(state, handle, *fields)
            if isinstance(outcome, Wait):
                outcome.block()
                outcome = None
            answer(slot, handle, outcome)
        except Exception as error:  # noqa: BLE001 - told to the program, whatever it is
            refuse(slot, handle, error)

    def call(at: int, word: int) -> Callable[[], None] | None:
        slot, handle = word >> 16 & 0xFFFF, u64[(at >> 3) + 2]
        fields = unpack(buffer, at + HEADER)
        if command.tail:
            fields = (*fields, buffer[at + tail_at : at + (word >> 32) * 64])
        try:
            outcome = function(state, handle, *fields)
            if isinstance(outcome, Wait):
                if not outcome.done():
                    return lambda: finish(slot, handle, outcome)
                outcome = None
            answer(slot, handle, outcome)
        except Exception as error:  # noqa: BLE001 - told to the program, whatever it is
            refuse(slot, handle, error)
        return None

    def slow_call(at: int, word: int) -> Callable[[], None]:
        slot, handle = word >> 16 & 0xFFFF, u64[(at >> 3) + 2]
        fields = unpack(buffer, at + HEADER)
        if command.tail:
            fields = (*fields, bytes(buffer[at + tail_at : at + (word >> 32) * 64]))
        return lambda: run(slot, handle, fields)

    return slow_call if registered.kind == "slow" else call


_WAITING = {"context_synchronize", "turn", "cuStreamSynchronize", "cuStreamQuery", "cuEventSynchronize", "cuEventQuery"}
"""Calls that may return the errors of earlier, asynchronous work."""
