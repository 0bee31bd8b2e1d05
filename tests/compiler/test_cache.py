"""The disk cache: keys, damage, eviction, settings, places that cannot be written, several processes at once."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from zluda.backend.info import Argument, ArgumentKind, Image, KernelSignature, TargetInfo
from zluda.compiler import cache as cache_module
from zluda.compiler.cache import Cache, compiler_identity, default_folder, parse_size, request_key
from zluda.compiler.kernel import CompiledImage, CompileRequest, KernelInfo, Parameter

KEY = bytes(range(32))

SIGNATURE = KernelSignature(
    name="k",
    arguments=(Argument(kind=ArgumentKind.POINTER, offset=0, size=8), Argument(kind=ArgumentKind.SHARED)),
    packed_size=16,
    required_subgroup_size=32,
)
IMAGE = CompiledImage(
    image=Image(format="native:fake", data=bytes(range(256)) * 16, kernels=(SIGNATURE,)),
    kernels=(
        KernelInfo(
            name="k",
            parameters=(Parameter(offset=0, size=8, align=8),),
            parameter_bytes=8,
            hidden=("module",),
            signature=SIGNATURE,
            static_shared_bytes=128,
            flat=True,
            max_threads=256,
            required_block=(16, 16, 1),
            ptx_version=(9, 0),
            sm=75,
            uses=("warp",),
        ),
    ),
    log="a warning: ü",
)


def image_of(size: int) -> CompiledImage:
    return IMAGE.model_copy(update={"image": IMAGE.image.model_copy(update={"data": os.urandom(size)})})


def key_of(number: int) -> bytes:
    return number.to_bytes(32, "big")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_what_was_stored_comes_back(cache: Cache) -> None:
    assert cache.load(KEY) is None
    assert cache.store(KEY, IMAGE)
    assert cache.load(KEY) == IMAGE
    assert Cache(cache.folder).load(KEY) == IMAGE
    assert cache.load(key_of(1)) is None
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    cache.discard(KEY)
    cache.discard(KEY)
    assert cache.load(KEY) is None


# --- damage -----------------------------------------------------------------------------------------


def damaged(cache: Cache, change: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture) -> None:
    """Stores, damages, and expects a miss that removes the entry and warns."""
    caplog.clear()
    assert cache.store(KEY, IMAGE)
    path = cache.path(KEY)
    path.write_bytes(change(path.read_bytes()))
    assert cache.load(KEY) is None
    assert not path.exists()
    assert any(r.levelno == logging.WARNING and str(path) in r.getMessage() for r in caplog.records)


@pytest.mark.parametrize("kept", [0, 1, 8, 40, 71, 72, 73, 76, 200, -1])
def test_a_truncated_entry_is_a_miss(cache: Cache, caplog: pytest.LogCaptureFixture, kept: int) -> None:
    damaged(cache, lambda data: data[:kept], caplog)


def test_any_flipped_bit_is_a_miss(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    cache.store(KEY, IMAGE)
    size = cache.path(KEY).stat().st_size
    for at in [*range(100), *range(100, size, 97), size - 1]:
        damaged(cache, lambda data, at=at: data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :], caplog)


def test_garbage_and_additions_are_misses(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    damaged(cache, lambda data: b"garbage" * 1000, caplog)
    damaged(cache, lambda data: data + b"\0", caplog)
    damaged(cache, lambda data: data * 2, caplog)


def test_an_entry_under_another_key_is_a_miss(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    other = Cache(cache.folder.parent / "other")
    other.store(key_of(1), IMAGE)
    damaged(cache, lambda data: other.path(key_of(1)).read_bytes(), caplog)


def test_an_entry_with_a_right_checksum_and_wrong_content_is_a_miss(
    cache: Cache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (b"", b"\xff\xff\xff\xff", b"\2\0\0\0{}rest"):
        monkeypatch.setattr(cache_module, "pack", lambda image, content=content: content)
        cache.store(KEY, IMAGE)
        assert cache.load(KEY) is None and not cache.path(KEY).exists()


# --- keys -------------------------------------------------------------------------------------------

REQUEST = CompileRequest(
    ptx=".version 9.0",
    name="<m>",
    entries=("a", "b"),
    target=TargetInfo(name="spirv64", processor="p", features=("fp16", "fp64")),
    backend="opencl",
    build_identity="device 1, driver 2",
    options=("-x", "-y"),
)


def changed(**fields: object) -> CompileRequest:
    return CompileRequest.model_validate({**REQUEST.model_dump(), **fields})


def target(**fields: object) -> TargetInfo:
    return TargetInfo.model_validate({**REQUEST.target.model_dump(), **fields})


CHANGES = {
    "ptx": changed(ptx=".version 9.1"),
    "entries fewer": changed(entries=("a",)),
    "entries joined": changed(entries=("ab",)),
    "entries split": changed(entries=("a", "b", "")),
    "options": changed(options=("-x",)),
    "options moved to entries": changed(entries=("a", "b", "-x"), options=("-y",)),
    "target name": changed(target=target(name="amdgcn")),
    "target processor": changed(target=target(processor="")),
    "target features": changed(target=target(features=("fp64",))),
    "backend": changed(backend="level_zero"),
    "no backend": changed(backend=""),
    "build identity": changed(build_identity="device 1, driver 3"),
    "split otherwise": changed(backend="opencldevice 1", build_identity=", driver 2"),
}


def test_the_key_depends_on_every_field_and_on_nothing_else() -> None:
    keys = {name: request_key(request) for name, request in CHANGES.items()}
    keys["as it was"] = request_key(REQUEST)
    assert len(set(keys.values())) == len(CHANGES) + 1
    assert all(len(key) == 32 for key in keys.values())
    assert request_key(changed(name="other", device_index=1)) == request_key(REQUEST)
    # A new field of a request must be thought about here.
    assert set(CompileRequest.model_fields) == {
        "ptx", "name", "entries", "target", "backend", "device_index", "build_identity", "options",
    }  # fmt: skip
    assert set(TargetInfo.model_fields) == {"name", "processor", "features"}


def test_the_key_depends_on_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = compiler_identity()
    assert "0.50" in identity[1]
    before = request_key(REQUEST)
    for place in range(len(identity)):
        other = (*identity[:place], identity[place] + "x", *identity[place + 1 :])
        assert request_key(REQUEST, other) != before
    monkeypatch.setattr(cache_module, "FORMAT", cache_module.FORMAT + 1)
    assert request_key(REQUEST) != before


def test_a_changed_source_changes_the_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "compiler" / "lower" / "x.py"
    source.parent.mkdir(parents=True)
    source.write_text("a = 1")
    monkeypatch.setattr(cache_module, "__file__", str(tmp_path / "compiler" / "cache.py"))
    before = cache_module._sources(("compiler",))
    assert cache_module._sources(("compiler",)) == before
    source.write_text("a = 2")
    assert cache_module._sources(("compiler",)) != before


def test_a_key_is_the_same_in_every_process() -> None:
    program = """
        import json, sys
        sys.path[:] = json.loads(sys.argv[1])
        from zluda.compiler.cache import request_key
        from zluda.compiler.kernel import CompileRequest
        print(request_key(CompileRequest.model_validate_json(sys.argv[2]), ("compiler 1",)).hex())
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), json.dumps(sys.path), REQUEST.model_dump_json()]
    for seed in "01":
        done = subprocess.run(
            arguments, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        assert done.stdout.strip() == request_key(REQUEST, ("compiler 1",)).hex()


def test_large_text_has_the_same_kind_of_key() -> None:
    text = "// x\n" * 50_000
    assert request_key(changed(ptx=text)) == request_key(changed(ptx=text[:10] + text[10:]))
    assert request_key(changed(ptx=text)) != request_key(changed(ptx=text + "\n"))
    assert len(request_key(changed(ptx="// \udcff"))) == 32


# --- eviction ---------------------------------------------------------------------------------------


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=100_000)
    for number in range(8):
        assert cache.store(key_of(number), image_of(10_000))
        os.utime(cache.path(key_of(number)), (1000 + number, 1000 + number))
    assert cache.load(key_of(0)) is not None  # used: now the youngest
    for number in range(8, 12):
        assert cache.store(key_of(number), image_of(10_000))
    assert cache.size() <= 100_000
    left = [number for number in range(12) if cache.load(key_of(number)) is not None]
    assert 0 in left and 1 not in left and 11 in left
    assert left == [0, *range(12 - len(left) + 1, 12)]
    assert len(left) >= 7


def test_an_image_above_the_limit_is_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = Cache(tmp_path / "cache", limit=5000)
    assert not cache.store(KEY, image_of(10_000))
    assert cache.load(KEY) is None and "ZLUDA_CACHE_MAX" in caplog.text


def test_unfinished_files_are_swept_when_they_are_old(cache: Cache) -> None:
    cache.store(KEY, IMAGE)
    old, young = cache.path(KEY).with_name("new-old"), cache.path(KEY).with_name("new-young")
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (0, time.time() - 2 * 3600))
    cache.evict()
    assert not old.exists() and young.exists() and cache.load(KEY) == IMAGE
    assert cache.size() == cache.path(KEY).stat().st_size


# --- settings and places ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1024", 1024), ("5k", 5120), ("10M", 10 << 20), ("2GiB", 2 << 30), ("1 TB", 1 << 40), ("7b", 7)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "1.5G", "2 GiBs", "1 0"])
def test_no_sizes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)
    if text:
        monkeypatch.setenv("ZLUDA_CACHE_MAX", text)
        with pytest.raises(ValueError, match="ZLUDA_CACHE_MAX"):
            Cache.from_environment()


def test_the_folder_and_the_limit_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ZLUDA_CACHE_DIR", "XDG_CACHE_HOME", "ZLUDA_CACHE_MAX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_folder() == Path("/home/ada/.cache/zluda")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_folder() == Path("/home/ada/.cache/zluda")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/ada")
    assert default_folder() == Path("/var/tmp/ada/zluda")
    monkeypatch.setenv("ZLUDA_CACHE_DIR", "/srv/kernels")
    made = Cache.from_environment()
    assert made is not None and made.folder == Path("/srv/kernels") and made.limit == 2 << 30
    monkeypatch.setenv("ZLUDA_CACHE_MAX", "3M")
    made = Cache.from_environment()
    assert made is not None and made.limit == 3 << 20
    monkeypatch.setenv("ZLUDA_CACHE_MAX", "0")
    assert Cache.from_environment() is None


def test_a_place_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # A file where the folder should be: refused to root as well, which tests often run as.
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    assert cache.load(KEY) is None
    assert not cache.store(KEY, IMAGE) and not cache.store(key_of(1), IMAGE)
    cache.discard(KEY)
    cache.evict()
    assert len([r for r in caplog.records if "cannot be written" in r.getMessage()]) == 1


def test_a_read_only_cache_still_hits(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store(KEY, IMAGE)

    def refuse(*arguments: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(cache_module.tempfile, "mkstemp", refuse)
    assert cache.load(KEY) == IMAGE
    assert not cache.store(key_of(1), IMAGE)


def test_no_half_written_entry_is_left_when_the_disk_is_full(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, other: Path) -> None:
        raise OSError(28, "No space left on device")

    cache.store(key_of(1), IMAGE)
    monkeypatch.setattr(Path, "replace", full)
    assert not cache.store(KEY, IMAGE)
    assert [path.name for path in cache.folder.rglob("new-*")] == []


# --- several processes ------------------------------------------------------------------------------

HAMMER = """
    import json, os, random, sys
    from pathlib import Path
    sys.path[:] = json.loads(sys.argv[1])
    from zluda.backend.info import Image
    from zluda.compiler.cache import Cache
    from zluda.compiler.kernel import CompiledImage
    cache = Cache(Path(sys.argv[2]), limit=200_000)
    seed = int(sys.argv[3])
    draw = random.Random(seed)
    hits = 0
    for _ in range(150):
        number = draw.randrange(40)
        key = number.to_bytes(32, "big")
        found = cache.load(key)
        if found is None:
            data = bytes([number]) * draw.randrange(1000, 20_000)
            cache.store(key, CompiledImage(image=Image(format="spirv", data=data, kernels=()), kernels=()))
        else:
            hits += 1
            assert set(found.image.data) == {number}, number
    print(hits)
"""


def test_processes_share_a_cache(tmp_path: Path) -> None:
    program = textwrap.dedent(HAMMER)
    folder = tmp_path / "cache"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(sys.path), str(folder), str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(3)
    ]
    for process in running:
        out, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert int(out) > 0
        assert "damaged" not in said, said
    cache = Cache(folder, limit=200_000)
    cache.evict()
    assert 0 < cache.size() <= 200_000
