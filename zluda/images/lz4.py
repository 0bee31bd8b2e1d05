"""LZ4 blocks (the format's block description), as older fat binaries hold PTX."""

from __future__ import annotations

from zluda.images.contents import ImageError


def decompress(data: bytes, size: int) -> bytes:
    """The `size` bytes in a block. Raises ImageError."""
    out = bytearray()
    at = 0
    try:
        while True:
            token = data[at]
            run, at = _length(data, at + 1, token >> 4)
            if at + run > len(data) or len(out) + run > size:
                raise ImageError("compressed data is cut off, or longer than announced")
            out += data[at : at + run]
            at += run
            if at == len(data):
                break
            distance = data[at] + (data[at + 1] << 8)
            length, at = _length(data, at + 2, token & 15)
            length += 4
            start = len(out) - distance
            if not distance or start < 0 or len(out) + length > size:
                raise ImageError("compressed data points outside of itself")
            piece = out[start : start + length]
            out += (piece * (length // len(piece) + 1))[:length]
    except IndexError:
        raise ImageError("compressed data is damaged or cut off") from None
    if len(out) != size:
        raise ImageError(f"compressed data holds {len(out)} bytes, not the {size} announced")
    return bytes(out)


def _length(data: bytes, at: int, length: int) -> tuple[int, int]:
    """A length that 15 continues in further bytes, and where they end."""
    if length == 15:
        while True:
            length += data[at]
            at += 1
            if data[at - 1] != 255:
                break
    return length, at
