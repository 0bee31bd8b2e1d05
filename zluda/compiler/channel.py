"""Frames over a socket between a compiler's processes: a JSON object and a blob each. Standard library only."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

_FRAME = struct.Struct("<4sIQ")
_MAGIC = b"ZLW1"


class Channel:
    """One end of a socket that carries frames. Deadlines are of time.monotonic(); None: none.

    `send` and `receive` raise TimeoutError when the deadline passes and EOFError when the other end is gone.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, header: dict[str, Any], blob: bytes = b"", *, deadline: float | None = None) -> None:
        text = json.dumps(header).encode()
        try:
            self._limit(deadline)
            self._socket.sendall(_FRAME.pack(_MAGIC, len(text), len(blob)) + text)
            if blob:
                self._limit(deadline)
                self._socket.sendall(blob)
        except ConnectionError as error:
            raise EOFError(str(error)) from error

    def receive(self, *, deadline: float | None = None) -> tuple[dict[str, Any], bytes]:
        magic, length, size = _FRAME.unpack(self._exactly(_FRAME.size, deadline))
        if magic != _MAGIC:
            raise EOFError("the other end does not speak this protocol")
        header = json.loads(self._exactly(length, deadline))
        return header, bytes(self._exactly(size, deadline))

    def _exactly(self, size: int, deadline: float | None) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            self._limit(deadline)
            try:
                got = self._socket.recv_into(view)
            except ConnectionError as error:
                raise EOFError(str(error)) from error
            if not got:
                raise EOFError("the other end is gone")
            view = view[got:]
        return data

    def _limit(self, deadline: float | None) -> None:
        if deadline is None:
            self._socket.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def close(self) -> None:
        self._socket.close()
