"""Recognise an image by its first bytes and take the PTX out of it."""

from __future__ import annotations

import re
import struct

from zluda.images.contents import Code, Contents, ImageError, Ptx

FATBIN_MAGIC = 0xBA55ED50
FATBIN_WRAPPER_MAGIC = 0x466243B1
ELF_MAGIC = b"\x7fELF"
EM_CUDA = 190

_KIND_PTX = 1
_KIND_ELF = 2
_FLAG_LZ4 = 0x2000
_FLAG_ZSTD = 0x8000
_FLAG_SPECIFIC = 0x100000

# Read from the container's layout: kind, -, header size, payload size, compressed size, options, minor, major, sm, …
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_HEADER = struct.Struct("<IHHQ")

REBUILD = (
    "SASS is NVIDIA's machine code and is not translated: "
    "rebuild with PTX, for example nvcc -gencode arch=compute_75,code=compute_75."
)

_LONGEST_TEXT = 1 << 30

_version = re.compile(r"(?:\s++|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/)*\.version\s")


def read_image(data: bytes | bytearray | memoryview | str, name: str = "") -> Contents:
    """The contents of an image as cuModuleLoadData takes it. Raises ImageError for what is none.

    PTX text may end in NULs; a fatbin starts with its header (0xBA55ED50), not with the wrapper that points to it.
    """
    if isinstance(data, str):
        return _ptx_text(data, name)
    data = bytes(data)
    if len(data) >= 4:
        magic = int.from_bytes(data[:4], "little")
        if magic == FATBIN_MAGIC:
            return _fatbin(data)
        if magic == FATBIN_WRAPPER_MAGIC:
            raise ImageError("a fatbin wrapper holds a pointer: hand over the fatbin that it points to")
        if data.startswith(ELF_MAGIC):
            return Contents(unusable=(_cubin(data, 0),))
    text = data.split(b"\0", 1)[0]
    try:
        return _ptx_text(text.decode(), name)
    except UnicodeDecodeError:
        raise ImageError(f"neither PTX text nor a fatbin or cubin: it starts with {data[:16]!r}") from None


def read_images(data: bytes | bytearray | memoryview | str, name: str = "") -> list[Contents]:
    """The contents of an image, or of each of several fatbins that stand one behind the other, 8 bytes aligned.

    The client makes the latter of relocatable device code: together they are one module. Raises ImageError.
    """
    found = []
    if not isinstance(data, str):
        data = bytes(data)
        while len(data) >= _HEADER.size and int.from_bytes(data[:4], "little") == FATBIN_MAGIC:
            _, _, header_size, size = _HEADER.unpack_from(data)
            rest = data[-(-(header_size + size) // 8) * 8 :]
            if (
                header_size < _HEADER.size
                or len(rest) < _HEADER.size
                or int.from_bytes(rest[:4], "little") != FATBIN_MAGIC
            ):
                break
            found.append(read_image(data[: header_size + size], name))
            data = rest
    return [*found, read_image(data, name)]


def _ptx_text(text: str, name: str) -> Contents:
    text = text.rstrip("\0")
    if _version.match(text) is None:
        raise ImageError(f"no PTX: the text starts with {text[:40]!r} where .version belongs")
    return Contents(ptx=(Ptx(text, name=name),))


def _fatbin(data: bytes) -> Contents:
    if len(data) < _HEADER.size:
        raise ImageError("the fatbin is cut off in its header")
    _, version, header_size, size = _HEADER.unpack_from(data)
    if version != 1 or header_size < _HEADER.size:
        raise ImageError(f"a fatbin of version {version} with a header of {header_size} bytes is not known")
    end = header_size + size
    if end > len(data):
        raise ImageError(f"the fatbin is cut off: {end} bytes are announced, {len(data)} are there")
    ptx: list[Ptx] = []
    unusable: list[Code] = []
    at = header_size
    while at < end:
        if at + _ENTRY.size > end:
            raise ImageError("the fatbin is cut off in an entry's header")
        fields = _ENTRY.unpack_from(data, at)
        kind, _, entry_header, stored, packed, _, _, _, sm, name_at, name_size, flags, _, text_size = fields
        start = at + entry_header
        if entry_header < _ENTRY.size or start + stored > end:
            raise ImageError(f"an entry of the fatbin reaches past its end (at byte {at})")
        payload = data[start : start + stored]
        if name_at + name_size > entry_header:
            raise ImageError(f"an entry of the fatbin has its name outside its header (at byte {at})")
        name = data[at + name_at : at + name_at + name_size].decode(errors="replace").rstrip("\0")
        if kind == _KIND_PTX:
            text = _unpacked(payload[:packed], flags, text_size) if flags & (_FLAG_LZ4 | _FLAG_ZSTD) else payload
            try:
                ptx.append(Ptx(text.split(b"\0", 1)[0].decode(), sm, bool(flags & _FLAG_SPECIFIC), name))
            except UnicodeDecodeError:
                raise ImageError(f"the PTX for sm_{sm} in the fatbin is no text") from None
        elif kind == _KIND_ELF:
            compressed = flags & (_FLAG_LZ4 | _FLAG_ZSTD)
            unusable.append(Code(sm, "SASS", REBUILD) if compressed else _cubin(payload, sm))
        else:
            unusable.append(Code(sm, f"an entry of kind {kind}", REBUILD))
        at = start + (stored + 7) // 8 * 8
    return Contents(tuple(ptx), tuple(unusable))


def _unpacked(data: bytes, flags: int, size: int) -> bytes:
    """Compressed PTX, `size` bytes of it."""
    if size > _LONGEST_TEXT:
        raise ImageError(f"the fatbin announces a text of {size} bytes")
    from zluda.images import lz4, zstd

    return zstd.decompress(data, size) if flags & _FLAG_ZSTD else lz4.decompress(data, size)


def _cubin(data: bytes, sm: int) -> Code:
    """A cubin by the kernels it names: its sections are called `.text.<kernel>`."""
    if len(data) < 64 or data[4] != 2 or int.from_bytes(data[18:20], "little") != EM_CUDA:
        raise ImageError("an ELF file that is no 64-bit cubin")
    (table,) = struct.unpack_from("<Q", data, 40)
    entry_size, entries, names_index = struct.unpack_from("<HHH", data, 58)
    if entry_size < 64 or table + entries * entry_size > len(data) or names_index >= entries:
        raise ImageError("a cubin whose section table is damaged")

    def section(index: int) -> tuple[int, int, int]:
        at = table + index * entry_size
        (name,) = struct.unpack_from("<I", data, at)
        offset, size = struct.unpack_from("<QQ", data, at + 24)
        return name, offset, size

    _, names_at, names_size = section(names_index)
    names = data[names_at : names_at + names_size]
    kernels = []
    for index in range(entries):
        name = section(index)[0]
        text = names[name : names.find(b"\0", name)].decode(errors="replace")
        if text.startswith(".text."):
            kernels.append(text.removeprefix(".text."))
    return Code(sm, "SASS", REBUILD, tuple(kernels))
