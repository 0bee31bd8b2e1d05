"""Image containers: PTX text, fatbins laid out by hand after the format's description, cubins, and damaged ones."""

import struct

import pytest

from zluda.images import ImageError, Ptx, choose, read_image

PTX = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"


def entry(kind, payload, *, sm=75, flags=0x11, name=b""):
    """An entry with a 64-byte header, the name behind it, and the payload padded to 8."""
    header_size = 64 + -(-len(name) // 8) * 8
    header = struct.pack(
        "<HHIQIIHHIIIQQQ",
        kind, 0x101, header_size, len(payload), 0, 64, 8, 7, sm, 64 if name else 0, len(name), flags, 0, 0,
    )  # fmt: skip
    return (header + name).ljust(header_size, b"\0") + payload + b"\0" * (-len(payload) % 8)


def fatbin(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def cubin(*kernels):
    """The least of an ELF file: section headers with names."""
    names = b"\0"
    offsets = []
    for name in [".shstrtab", *(f".text.{k}" for k in kernels), ".nv.info"]:
        offsets.append(len(names))
        names += name.encode() + b"\0"
    table = 64 + len(names)
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, len(offsets), 0
    )  # fmt: skip
    sections = b"".join(
        struct.pack("<IIQQQQIIQQ", offset, 1, 0, 0, 64 if i == 0 else 0, len(names) if i == 0 else 0, 0, 0, 0, 0)
        for i, offset in enumerate(offsets)
    )
    return header + names + sections


@pytest.mark.parametrize("tail", ["", "\0", "\0\0\0\0"])
@pytest.mark.parametrize("head", ["", "\n  ", "// comment\n", "/* several\n lines */\n// and one\n"])
def test_ptx_text(head, tail):
    text = head + PTX
    assert read_image((text + tail).encode()).ptx == (Ptx(text),)
    assert read_image(text + tail).ptx == (Ptx(text),)


def test_ptx_from_any_buffer():
    assert read_image(bytearray(PTX.encode())).ptx == read_image(memoryview(PTX.encode())).ptx


def test_fatbin_with_ptx():
    contents = read_image(
        fatbin(entry(1, PTX.encode() + b"\0\0\0", name=b"k.cu\0"), entry(1, b".version 8.0\n", sm=90))
    )
    assert contents.ptx == (Ptx(PTX, 75, False, "k.cu"), Ptx(".version 8.0\n", 90))
    assert contents.unusable == ()


def test_architecture_specific_ptx_is_told_apart():
    contents = read_image(fatbin(entry(1, PTX.encode(), sm=90, flags=0x11 | 0x100000)))
    assert contents.ptx[0].specific


def test_fatbin_may_be_followed_by_anything():
    assert read_image(fatbin(entry(1, PTX.encode())) + b"rest").ptx[0].text == PTX


def test_sass_is_named_with_a_remedy():
    contents = read_image(fatbin(entry(2, cubin("saxpy", "dot"), sm=86)))
    assert contents.ptx == ()
    assert contents.unusable[0].kernels == ("saxpy", "dot")
    text = contents.explain()
    assert "SASS" in text and "saxpy, dot" in text and "sm_86" in text and "code=compute_75" in text


def test_cubin():
    contents = read_image(cubin("k"))
    assert contents.ptx == () and contents.unusable[0].kernels == ("k",)


@pytest.mark.parametrize("flag", [0x2000, 0x8000])
def test_compressed_ptx_that_is_damaged(flag):
    with pytest.raises(ImageError, match="compressed data"):
        read_image(fatbin(entry(1, b"\x28\xb5\x2f\xfd....", flags=0x11 | flag)))


def test_compressed_sass_is_sass():
    assert "SASS" in read_image(fatbin(entry(2, b"????", flags=0x8011))).explain()


def test_empty_fatbin():
    assert "empty" in read_image(fatbin()).explain()


def test_wrapper_is_refused():
    with pytest.raises(ImageError, match="wrapper"):
        read_image(struct.pack("<IIQQ", 0x466243B1, 1, 0x1000, 0))


@pytest.mark.parametrize("data", [b"", b"PTX", b"\0\0\0\0", b"\x7fELF", b"\xff\xfe\xfd\xfc", b"int main() {}"])
def test_what_is_no_image(data):
    with pytest.raises(ImageError):
        read_image(data)


def test_every_truncation_of_a_fatbin_is_refused():
    whole = fatbin(entry(1, PTX.encode(), name=b"k.cu"), entry(2, cubin("k")))
    for size in range(len(whole)):
        with pytest.raises(ImageError):
            read_image(whole[:size])


def test_lies_in_a_fatbin_are_refused():
    whole = bytearray(fatbin(entry(1, PTX.encode(), name=b"k.cu")))
    for offset, value in ((20, 8), (20, 2**31), (24, 2**40), (16 + 32, 2**31), (16 + 36, 200), (4, 9), (6, 4)):
        broken = bytearray(whole)
        struct.pack_into("<H" if offset in (4, 6) else "<I" if offset != 24 else "<Q", broken, offset, value)
        with pytest.raises(ImageError):
            read_image(broken)


def test_every_truncation_of_a_cubin_is_refused():
    whole = cubin("k", "l")
    for size in range(4, len(whole)):
        with pytest.raises(ImageError):
            read_image(whole[:size])


def test_choice():
    entries = [Ptx("a", 52), Ptx("b", 75), Ptx("c", 90), Ptx("d", 80, specific=True)]
    assert choose(entries, (8, 0)).text == "b"
    assert choose(entries, (9, 0)).text == "c"
    assert choose(entries, (5, 0)).text == "a"
    assert choose([Ptx("x", 120), Ptx("y", 90), Ptx("z", 90, specific=True)], (8, 0)).text == "y"
    assert choose([Ptx("z", 90, specific=True)], (8, 0)).text == "z"
