"""Inputs of a link: objects, archives, fat binaries; what is taken from archives; what is refused."""

import contextlib
import struct

import pytest

from zluda.core import CudaError
from zluda.core.link import Linker
from zluda.images import ImageError
from zluda.images.objects import fatbins_in_object, members_of_archive
from zluda.ptx.index import index_module

PTX, FATBINARY, OBJECT, LIBRARY = 1, 2, 3, 4
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def fatbin(*texts, kind=1):
    entries = b""
    for text in texts:
        payload = text.encode() + b"\0"
        payload += b"\0" * (-len(payload) % 8)
        entries += struct.pack("<HHIQIIHHIIIQQQ", kind, 1, 64, len(payload), 0, 0, 0, 8, 80, 0, 0, 0, 0, 0) + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def elf(**sections):
    """A 64-bit object with these sections."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in sections) + b".shstrtab\0"
    body, headers, at, name_at = b"", [bytes(64)], 64, 1
    for name, content in [*sections.items(), (".shstrtab", names)]:
        headers.append(struct.pack("<IIQQQQIIQQ", name_at, 1, 0, 0, at, len(content), 0, 0, 8, 0))
        name_at += len(name) + 1
        content += b"\0" * (-len(content) % 8)
        body, at = body + content, at + len(content)
    head = (
        b"\x7fELF\2\1\1"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, len(headers), len(headers) - 1)
    )
    return head + body + b"".join(headers)


def archive(**members):
    """As ar makes it, with a table of long names."""
    long_names = b"".join(name.encode() + b"/\n" for name in members if len(name) > 15)
    found = b"!<arch>\n"
    for name, content in [("/", b"\0\0\0\0"), ("//", long_names), *members.items()]:
        if len(name) > 15:
            name = f"/{long_names.index(name.encode())}"
        elif name[0] != "/":
            name += "/"
        found += (
            f"{name:16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)
        )
    return found


def test_an_object_of_the_c_compiler(tmp_path):
    """Against real tools: as wraps the fat binary in an object, ar that in an archive."""
    import subprocess

    (tmp_path / "code.fatbin").write_bytes(fatbin(HEADER + ".visible .func f() { ret; }"))
    source = tmp_path / "a_rather_long_file_name.s"
    source.write_text(f'.section __nv_relfatbin,"a"\n.balign 8\n.incbin "{tmp_path}/code.fatbin"\n')
    subprocess.run(["as", source, "-o", source.with_suffix(".o")], check=True)
    subprocess.run(["ar", "cr", tmp_path / "lib.a", source.with_suffix(".o")], check=True)
    ((name, content),) = members_of_archive((tmp_path / "lib.a").read_bytes())
    assert name == "a_rather_long_file_name.o"
    assert fatbins_in_object(content) == [(tmp_path / "code.fatbin").read_bytes()]


def test_our_own_objects_read_the_same():
    first, second = fatbin(HEADER), fatbin(HEADER, HEADER)
    section = first + b"\0" * (-len(first) % 8) + second
    data = elf(**{".text": b"host", ".nv_fatbin": section, "__nv_relfatbin": first})
    assert fatbins_in_object(data) == [first, second, first]
    assert fatbins_in_object(elf(**{".text": b"host"})) == []
    assert members_of_archive(archive(a=b"123", a_name_of_20_letters=b"")) == [
        ("a", b"123"),
        ("a_name_of_20_letters", b""),
    ]


@pytest.mark.parametrize("cut", range(0, 700, 13))
def test_damage_is_an_image_error_or_nothing(cut):
    data = archive(one=elf(**{".nv_fatbin": fatbin(HEADER + ".func f() { ret; }")}))
    try:
        for _, content in members_of_archive(data[:cut]):
            fatbins_in_object(content)
    except ImageError:
        pass
    broken = bytearray(members_of_archive(data)[0][1])
    broken[cut % len(broken)] ^= 0xFF
    with contextlib.suppress(ImageError):
        fatbins_in_object(bytes(broken))


def test_archives_give_what_is_needed():
    library = archive(
        **{
            "f.o": elf(__nv_relfatbin=fatbin(HEADER + ".extern .func g();\n.visible .func f() { call g; ret; }")),
            "unused.o": elf(
                __nv_relfatbin=fatbin(HEADER + ".extern .func gone();\n.visible .func u() { call gone; ret; }")
            ),
            "host.o": elf(**{".text": b"code"}),
            "g.o": elf(__nv_relfatbin=fatbin(HEADER + ".visible .func g() { ret; }")),
            "readme": b"text",
        }
    )
    linker = Linker((8, 0))
    linker.add(LIBRARY, library, "lib.a")
    text = HEADER + ".extern .func f();\n.visible .entry k() { call f; ret; }"
    linker.add(OBJECT, elf(__nv_relfatbin=fatbin(text)), "main.o")
    index = index_module(linker.complete().decode())
    assert index.reachable("k").functions == ("k", "f", "g")
    assert "u" not in index.functions


def test_a_fat_binary_gives_what_fits_the_device():
    linker = Linker((7, 5))
    first = HEADER.replace("80", "75") + ".visible .entry old() { ret; }"
    data = fatbin(first, HEADER + ".visible .entry new() { ret; }")
    data = data[: 16 + 28] + struct.pack("<I", 75) + data[16 + 32 :]
    linker.add(FATBINARY, data)
    assert index_module(linker.complete().decode()).entries == ("old",)


@pytest.mark.parametrize(
    ("kind", "data", "result"),
    [
        (LIBRARY, archive(a=elf(__nv_relfatbin=fatbin("junk", kind=2))), "CUDA_ERROR_INVALID_IMAGE"),
        (LIBRARY, archive(a=elf(__nv_relfatbin=fatbin("junk", kind=64))), "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        (FATBINARY, fatbin("junk", kind=64), "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        (OBJECT, elf(**{".text": b"code"}), "CUDA_ERROR_INVALID_IMAGE"),
        (6, b"x", "CUDA_ERROR_INVALID_VALUE"),
        (PTX, b"", "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_refusals(kind, data, result):
    with pytest.raises(CudaError) as caught:
        Linker((8, 0)).add(kind, data)
    assert caught.value.name == result


def test_nothing_is_added_to_a_complete_link():
    linker = Linker((8, 0))
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        linker.complete()
    linker.add(PTX, (HEADER + ".visible .entry k() { ret; }").encode())
    assert linker.complete() is linker.complete()
    assert linker.complete().endswith(b"}\0")
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        linker.add(PTX, HEADER.encode())
