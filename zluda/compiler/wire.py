"""Compile requests and results as bytes: the form they take between processes and on disk."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

from pydantic import BaseModel, ConfigDict

from zluda.backend.info import Image, KernelSignature
from zluda.compiler.kernel import CompiledImage, CompileRequest, KernelInfo

_FRAME = struct.Struct("<4sIQ")
_MAGIC = b"ZLW1"
_PACKED = struct.Struct("<I")


class _Header(BaseModel):
    """A CompiledImage without the image's bytes."""

    model_config = ConfigDict(extra="forbid")

    format: str
    signatures: tuple[KernelSignature, ...]
    kernels: tuple[KernelInfo, ...]
    log: str


def pack(image: CompiledImage) -> bytes:
    """An image as bytes: header length (u32, little endian), JSON header, the image's data."""
    header = _Header.model_construct(
        format=image.image.format, signatures=image.image.kernels, kernels=image.kernels, log=image.log
    )
    text = header.model_dump_json().encode()
    return b"".join((_PACKED.pack(len(text)), text, image.image.data))


def unpack(data: bytes | memoryview) -> CompiledImage:
    """The inverse of `pack`. Raises ValueError (pydantic's among them) for anything else."""
    if len(data) < _PACKED.size:
        raise ValueError("a packed image is cut short")
    (length,) = _PACKED.unpack_from(data)
    end = _PACKED.size + length
    if len(data) < end:
        raise ValueError("a packed image is cut short")
    header = _Header.model_validate_json(bytes(data[_PACKED.size : end]))
    image = Image(format=header.format, data=bytes(data[end:]), kernels=header.signatures)
    return CompiledImage(image=image, kernels=header.kernels, log=header.log)


def request_to_wire(request: CompileRequest) -> tuple[dict[str, Any], bytes]:
    """A request as a JSON object and a blob, the PTX text."""
    return request.model_dump(mode="json", exclude={"ptx"}), request.ptx.encode("utf-8", "surrogateescape")


def request_from_wire(fields: dict[str, Any], blob: bytes) -> CompileRequest:
    """The inverse of `request_to_wire`."""
    return CompileRequest.model_validate({**fields, "ptx": blob.decode("utf-8", "surrogateescape")})


class Channel:
    """One end of a socket that carries frames: a JSON object and a blob. Deadlines are of time.monotonic(); None: none.

    `send` and `receive` raise TimeoutError when the deadline passes and EOFError when the other end is gone.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, header: dict[str, Any], blob: bytes = b"", *, deadline: float | None = None) -> None:
        text = json.dumps(header).encode()
        try:
            self._limit(deadline)
            self._socket.sendall(_FRAME.pack(_MAGIC, len(text), len(blob)) + text)
            if blob:
                self._limit(deadline)
                self._socket.sendall(blob)
        except (BrokenPipeError, ConnectionError) as error:
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
