"""From the client's hello to being ready: the window, the devices, the answer."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from zluda.server.segment import CONSTANTS, Segment
from zluda.spec.errors import errors
from zluda.spec.protocol import protocol
from zluda.window import Window, WindowError, attach

if TYPE_CHECKING:
    from zluda.core import Driver

_log = logging.getLogger("zluda.server")

_hello = protocol().structures["hello"].compiled()
_answer = protocol().structures["answer"].compiled()
_DESCRIPTORS = 4
_MESSAGE = 990
"""Bytes of a message that an answer has room for."""


class Failure(Exception):
    """cuInit is to fail with the CUresult `name`; the message is for the user."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.code = errors()[name].code


class Client(NamedTuple):
    """What the hand-shake gives. `host` is a pidfd; `note` is where a fatal signal's traceback goes."""

    connection: socket.socket
    window: Window
    segment: Segment
    host: int
    note: int


def meet(connection: socket.socket) -> Client:
    """Take the client's hello and map its window, at another place if its own is taken here.

    Raises Failure, and EOFError if the client went away.
    """
    descriptors: list[int] = []
    while True:
        data, received, _, _ = socket.recv_fds(connection, _hello.size, _DESCRIPTORS)
        if not data:
            raise EOFError("the client went away")
        if descriptors:
            for descriptor in received:
                os.close(descriptor)
        else:
            descriptors = received
        magic, identity, base, size, _, _ = _hello.unpack(data.ljust(_hello.size, b"\0")[: _hello.size])
        if magic != CONSTANTS["MAGIC"] or identity != protocol().identity:
            raise Failure(
                "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
                "libcuda.so.1 and the zluda package that runs the driver process are of different builds; "
                "reinstall zluda, or let LD_LIBRARY_PATH and ZLUDA_PYTHON name the same installation",
            )
        window, shared, host, note = descriptors
        try:
            place = attach(window, base, size)
        except WindowError as error:
            raise Failure("CUDA_ERROR_OUT_OF_MEMORY", str(error)) from error
        if isinstance(place, Window):
            return Client(connection, place, Segment(shared), host, note)
        connection.send(_answer.pack(CONSTANTS["ANSWER_MOVE"], 0, place, size, 0, 0, b""))


def ready(client: Client) -> None:
    """Tell the client to go on; it gets a pidfd of this process."""
    message = _answer.pack(CONSTANTS["ANSWER_READY"], 0, client.window.base, client.window.size, os.getpid(), 0, b"")
    own = os.pidfd_open(os.getpid())
    socket.send_fds(client.connection, [message], [own])
    os.close(own)


def refuse(connection: socket.socket, code: int, message: str) -> None:
    """Tell the client that cuInit fails, and why."""
    text = message.encode()
    if len(text) > _MESSAGE and b"\n" in text[:_MESSAGE]:
        end = b"\n  and more: `zluda devices` shows all"
        text = text[: _MESSAGE - len(end)].rpartition(b"\n")[0] + end
    text = text[:_MESSAGE]
    connection.send(_answer.pack(CONSTANTS["ANSWER_FAILED"], code, 0, 0, os.getpid(), 0, text))


def start_driver(window: Window, environment: Mapping[str, str]) -> Driver:
    """The core's driver over the devices that `environment` selects. Raises Failure."""
    from zluda.backend.selection import BACKEND_VARIABLE, Selection, SelectionError, select, why_none
    from zluda.compiler.cache import Cache
    from zluda.compiler.service import CompileService
    from zluda.core import Driver

    try:
        selection = select(environment)
    except SelectionError as error:
        raise Failure("CUDA_ERROR_NO_DEVICE", str(error)) from error
    if not selection.chosen:
        raise Failure("CUDA_ERROR_NO_DEVICE", why_none(selection, environment))
    reaching = tuple(info for info in selection.chosen if "memory.system" in info.capabilities)
    for info in selection.chosen:
        if info not in reaching:
            message = f"{info.name} ({info.backend}) has memory of its own, which CUDA programs cannot use yet"
            if not reaching or environment.get(BACKEND_VARIABLE):
                raise Failure("CUDA_ERROR_NOT_SUPPORTED", f"{message}; the Python API can (see `zluda devices`)")
            _log.warning("%s: passed over", message)
    selection = Selection(
        reaching, selection.usable, selection.passed_over, selection.reports, selection.backends, selection.failures
    )
    try:
        cache = Cache.from_environment()
        _log.info("compile cache: %s", cache.folder if cache else "none")
        return Driver(selection, window, CompileService(cache))
    except ValueError as error:
        raise Failure("CUDA_ERROR_INVALID_VALUE", str(error)) from error
