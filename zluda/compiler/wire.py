"""Compile requests and results as bytes: the form they take between processes and on disk."""

from __future__ import annotations

import struct
from typing import Any

from pydantic import BaseModel, ConfigDict

from zluda.backend.info import Image, KernelSignature
from zluda.compiler.kernel import CompiledImage, CompileRequest, KernelInfo

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
