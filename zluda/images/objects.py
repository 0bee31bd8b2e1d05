"""Host object files and archives of them, as nvcc leaves them, to the fatbins inside."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from zluda.images.contents import ImageError
from zluda.images.reader import ELF_MAGIC, FATBIN_MAGIC

ARCHIVE_MAGIC = b"!<arch>\n"
SECTIONS = (b".nv_fatbin", b"__nv_relfatbin")
"""Where device code lies: whole programs, and relocatable device code."""

_MEMBER = 60
_SECTION = struct.Struct("<IIQQQQ")  # name, type, flags, address, offset, size: the start of an Elf64_Shdr
_NO_BITS = 8


def fatbins_in_object(data: bytes) -> list[bytes]:
    """The fatbins of a 64-bit ELF object in their order; none if it holds no device code. Raises ImageError."""
    if len(data) < 64 or not data.startswith(ELF_MAGIC) or data[4] != 2:
        raise ImageError("no 64-bit ELF object file")
    (table,) = struct.unpack_from("<Q", data, 40)
    entry, count, names = struct.unpack_from("<HHH", data, 58)
    if count and (entry < 64 or table + entry * count > len(data) or names >= count):
        raise ImageError("an object file whose section table is damaged")
    headers = [_SECTION.unpack_from(data, table + entry * index) for index in range(count)]
    found: list[bytes] = []
    for name, kind, _, _, offset, size in headers:
        start = headers[names][4] + name
        end = data.find(b"\0", start)
        if data[start:end] in SECTIONS and kind != _NO_BITS:
            if offset + size > len(data):
                raise ImageError("an object file that is cut off")
            found += _fatbins(data[offset : offset + size])
    return found


def _fatbins(section: bytes) -> Iterator[bytes]:
    at = 0
    while at + 16 <= len(section):
        magic, _, header, size = struct.unpack_from("<IHHQ", section, at)
        if magic != FATBIN_MAGIC:
            at += 8  # the linker's padding
            continue
        end = at + header + size
        if header < 16 or end > len(section):
            raise ImageError("an object file whose device code is cut off")
        yield section[at:end]
        at = (end + 7) // 8 * 8


def members_of_archive(data: bytes) -> list[tuple[str, bytes]]:
    """The files in a System V archive by name; its tables are left out. Raises ImageError."""
    if not data.startswith(ARCHIVE_MAGIC):
        raise ImageError("no archive: it does not start with !<arch>")
    found: list[tuple[str, bytes]] = []
    long_names = b""
    at = len(ARCHIVE_MAGIC)
    while at < len(data):
        header = data[at : at + _MEMBER]
        digits = header[48:58].strip()
        if len(header) < _MEMBER or header[58:60] != b"`\n" or not digits.isdigit():
            raise ImageError(f"the archive is damaged at byte {at}")
        start, size = at + _MEMBER, int(digits)
        content = data[start : start + size]
        if len(content) < size:
            raise ImageError("the archive is cut off")
        name = header[:16].rstrip()
        if name == b"//":
            long_names = content
        elif name not in (b"/", b"/SYM64/"):
            if name[:1] == b"/" and name[1:].isdigit():
                name = long_names[int(name[1:]) :].split(b"\n", 1)[0]
            found.append((name.removesuffix(b"/").decode(errors="replace"), content))
        at = start + size + size % 2
    return found
