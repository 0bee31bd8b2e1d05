"""Compressed PTX: fat binaries as nvcc makes them, frames of the zstd and lz4 programs, damage."""

from __future__ import annotations

import base64
import contextlib
import random
import shutil
import subprocess

import pytest

from zluda.images import ImageError, lz4, read_image, zstd

# nvcc 13.0 -fatbin -gencode arch=compute_75,code=compute_75 of __global__ void k(float*a){a[threadIdx.x]=1;}, with
# --compress-mode=default and speed.
BY_NVCC = {
    "zstd": """
    UO1VugEAEABAAQAAAAAAAAEAAQFQAAAA8AAAAAAAAADwAAAAQAAAAAAACQBLAAAAAAAAAAAAAAARgAAAAAAAAAAAAAAAAAAAXwEAAAAAAABIAA
    AAAAAAAAAAAAAAAAAAKLUv/WBfADUHAIINLCMwa6wD2LaZEUKZApfwE0ejtAddWIF42xu4ERG4OLQwUOEwBoj/4XcT9h1jLJS1Ke+WxZrSlAVZ
    qlhL5DK/u0Q1hhwV9pGgu4XlOA9VS9opgu4Ue14TPc5Gc9+cDO4YC1WL++Dnv1MoCe5Dk8UpWqIPZa1ZdWDvHR5whGGSRVqFXr+EPcABAcIqYJ
    ShZwOuwqeJMiaLwoYoGSlhM7+9IsBAUid0+s09sgPaiKJsOO0DFABYhegaSIApFvg1YQLuPcLgQ42xJ4OK26ZK4E6J9YQ0JASQhFHTJFHzitzM
    b1KNQuaE
    """,
    "lz4": """
    UO1VugEAEAB4AQAAAAAAAAEAAQFQAAAAKAEAAAAAAAAhAQAAQAAAAAAACQBLAAAAAAAAAAAAAAARIAAAAAAAAAAAAAAAAAAAXwEAAAAAAABIAA
    AAAAAAAAAAAAAAAAAAEwoBAPAcLnZlcnNpb24gOS4wCi50YXJnZXQgc21fNzUKLmFkZHJlc3Nfc2l6ZSA2NDEA8xQudmlzaWJsZSAuZW50cnkg
    X1oxa1BmKAoucGFyYW0gLnU2NBQAEV8SAPQIXzAKKQp7Ci5yZWcgLmIzMiAlcjwzPjsRAPIANjQgJXJkPDU+OwoKCmxkRgABRQB6JXJkMSwgW0
    wA9AJdOwpjdnRhLnRvLmdsb2JhbCsAITIsMQBxOwptb3YudWcA8wQxLCAldGlkLng7Cm11bC53aWRlGgAgZDMuALIxLCA0OwphZGQuc4YAEDQW
    AANKABgzSgD1AjIsIDEwNjUzNTMyMTY7CnN0fQCQMzIgWyVyZDRdOwDQMjsKcmV0OwoKfQoKAAAAAAAAAAA=
    """,
}


@pytest.mark.parametrize("kind", BY_NVCC)
def test_what_nvcc_makes(kind: str) -> None:
    (found,) = read_image(base64.b64decode(BY_NVCC[kind])).ptx
    assert found.sm == 75
    assert found.text.split()[:6] == [".version", "9.0", ".target", "sm_75", ".address_size", "64"]
    assert ".visible .entry _Z1kPf(" in found.text
    # 1.0f as an integer: the text is right to its end.
    assert found.text.rstrip().endswith("mov.u32 %r2, 1065353216;\nst.global.u32 [%rd4], %r2;\nret;\n\n}")


def texts(seed: int) -> list[bytes]:
    pick = random.Random(seed)
    words = [bytes(pick.choices(b"abcdefgh.%, 0123456789", k=pick.randint(1, 12))) for _ in range(200)]
    prose = b"".join(pick.choices(words, k=9000))
    skewed = bytes(int(pick.gauss(64, 9)) & 255 for _ in range(20000))
    return [b"a", b"abc", b"x" * 100000, pick.randbytes(3000), prose, skewed, prose + skewed + prose]


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the zstd program")
@pytest.mark.parametrize("level", ["-1", "-3", "-19"])
def test_frames_of_the_zstd_program(level: str) -> None:
    for text in texts(1):
        frame = subprocess.run(["zstd", level, "-c"], input=text, capture_output=True, check=True).stdout
        assert zstd.decompress(frame, len(text)) == text
        with pytest.raises(ImageError):
            zstd.decompress(frame, len(text) + 1)


@pytest.mark.skipif(shutil.which("lz4") is None, reason="needs the lz4 program")
def test_blocks_of_the_lz4_program() -> None:
    for text in texts(2):
        frame = subprocess.run(
            ["lz4", "-c", "-B7", "--no-frame-crc"], input=text, capture_output=True, check=True
        ).stdout
        size = int.from_bytes(frame[7:11], "little")
        if not size >> 31:  # not stored as it is
            assert lz4.decompress(frame[11 : 11 + size], len(text)) == text


@pytest.mark.parametrize("kind", BY_NVCC)
def test_damage_is_an_image_error_or_another_text(kind: str) -> None:
    data = base64.b64decode(BY_NVCC[kind])
    pick = random.Random(3)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(pick.randint(1, 3)):
            damaged[pick.randrange(96, len(data))] = pick.randrange(256)
        with contextlib.suppress(ImageError):
            read_image(bytes(damaged))


def test_a_text_that_is_announced_too_large() -> None:
    data = bytearray(base64.b64decode(BY_NVCC["zstd"]))
    data[16 + 56 : 16 + 64] = (1 << 60).to_bytes(8, "little")
    with pytest.raises(ImageError, match="announces"):
        read_image(bytes(data))
