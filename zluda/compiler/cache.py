"""The disk cache of compiled images: content-addressed, checked on load, bounded, shared by any number of processes."""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
import re
import struct
import tempfile
import threading
import time
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from zluda.compiler.kernel import CompiledImage, CompileRequest
from zluda.compiler.wire import pack, unpack

_log = logging.getLogger("zluda.compiler.cache")

FORMAT = 1
"""Version of the entries' format and of what the key covers."""

DEFAULT_LIMIT = 2 << 30
"""Bytes."""

_MAGIC = b"ZLUDAC%02d" % FORMAT
_HASH = hashlib.sha256
_HEAD = struct.Struct("<8s32s32s")
"""Magic, SHA-256 of everything behind the head and of the key, key."""

_STALE = 3600.0
"""Seconds after which an unfinished file is nobody's."""

_AFTER_EVICTION = 0.9
"""Part of the limit that eviction leaves in use."""


# --- keys -------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _large_digest(text: str) -> bytes:
    return _HASH(text.encode("utf-8", "surrogateescape")).digest()


def _digest(text: str) -> bytes:
    """Digest of PTX text; of large text only once, as a module of 30 MB is asked for kernel by kernel."""
    if len(text) > 1 << 16:
        return _large_digest(text)
    return _HASH(text.encode("utf-8", "surrogateescape")).digest()


@cache
def compiler_identity() -> tuple[str, ...]:
    """What a result depends on besides the request: versions, and the sources of what makes it."""
    return (
        _version("zluda"),
        _version("llvmlite"),
        _sources(("ptx", "compiler", "backend")),
    )


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _sources(packages: Iterable[str]) -> str:
    """Digest of the Python files of some of our packages, so that a changed source tree never finds old results."""
    root = Path(__file__).resolve().parents[1]
    total = _HASH()
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            content = path.read_bytes()
            for part in (str(path.relative_to(root)).encode(), content):
                total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()


def request_key(request: CompileRequest, identity: tuple[str, ...] | None = None) -> bytes:
    """The 32-byte key of a request: SHA-256 over length-prefixed fields.

    The module's name and the device's number are left out: neither changes the result; `build_identity` names the
    device and its driver.
    """
    target = request.target
    fields: list[bytes] = [str(FORMAT).encode(), _digest(request.ptx)]
    for group in (
        compiler_identity() if identity is None else identity,
        request.entries,
        request.options,
        (target.name, target.processor),
        target.features,
        (request.backend, request.build_identity),
    ):
        fields.append(len(group).to_bytes(8, "little"))
        fields.extend(text.encode("utf-8", "surrogateescape") for text in group)
    key = _HASH()
    for field in fields:
        key.update(len(field).to_bytes(8, "little") + field)
    return key.digest()


# --- settings ---------------------------------------------------------------------------------------

_SIZE = re.compile(r"\s*(\d+)\s*(?:([kmgt])(?:i?b)?|b)?\s*", re.IGNORECASE)


def parse_size(text: str) -> int:
    """`500M`, `2GiB`, `1048576` in bytes; units are powers of 1024. Raises ValueError."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no size: write bytes, or a number with K, M, G or T")
    return int(match[1]) << (10 * (1 + "kmgt".index(match[2].lower())) if match[2] else 0)


def default_folder() -> Path | None:
    """ZLUDA_CACHE_DIR, else $XDG_CACHE_HOME/zluda, else ~/.cache/zluda; None for a user without a home."""
    if folder := os.environ.get("ZLUDA_CACHE_DIR"):
        return Path(folder)
    # The base directory specification: relative paths are to be ignored.
    if (base := os.environ.get("XDG_CACHE_HOME")) and Path(base).is_absolute():
        return Path(base) / "zluda"
    home = os.environ.get("HOME")
    if not home:
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    return Path(home) / ".cache" / "zluda"


# --- the cache --------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    used: float
    size: int
    path: str


class Cache:
    """Compiled images in a folder. No method raises for what is on the disk: a bad entry is a miss, and the log tells.

    `limit` is in bytes; past it, what was used longest ago is removed. Safe for threads and processes.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._entries = folder / f"v{FORMAT}"
        self._lock = threading.RLock()
        self._told: set[str] = set()
        self._unseen: int | None = None
        """Bytes stored since the folder was last looked through; None: never looked."""

    @classmethod
    def from_environment(cls) -> Cache | None:
        """The user's cache; None when ZLUDA_CACHE_MAX is 0 or there is no place for one.

        Raises ValueError for a ZLUDA_CACHE_MAX that is no size.
        """
        limit = DEFAULT_LIMIT
        if text := os.environ.get("ZLUDA_CACHE_MAX"):
            try:
                limit = parse_size(text)
            except ValueError as error:
                raise ValueError(f"ZLUDA_CACHE_MAX: {error}") from None
        folder = default_folder()
        if folder is None:
            _log.warning("No compile cache: the user has no home; set ZLUDA_CACHE_DIR to a folder")
        if folder is None or limit == 0:
            return None
        return cls(folder, limit)

    def path(self, key: bytes) -> Path:
        """Where the entry of a key lies."""
        name = key.hex()
        return self._entries / name[:2] / name[2:]

    def load(self, key: bytes) -> CompiledImage | None:
        """The image stored under a key; None for a miss. A damaged entry is removed."""
        path = self.path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell("read", f"The compile cache cannot be read: {error}")
            return None
        try:
            image = _decode(key, data)
        except ValueError as error:
            _log.warning("Removed a damaged entry of the compile cache, %s: %s", path, error)
            self.discard(key)
            return None
        try:
            os.utime(path)
        except OSError as error:
            # Another user's cache, or one that was just cleared: the entry is good all the same.
            _log.debug("Cannot note the use of %s: %s", path, error)
        return image

    def store(self, key: bytes, image: CompiledImage) -> bool:
        """Stores an image; False when that was not possible, which is logged once."""
        data = _encode(key, image)
        if len(data) > self.limit:
            _log.warning("An image of %d bytes is larger than the compile cache may be (ZLUDA_CACHE_MAX)", len(data))
            return False
        path = self.path(key)
        temporary = None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix="new-", dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(temporary).replace(path)
        except OSError as error:
            self._tell("write", f"The compile cache cannot be written, results are not kept: {error}")
            if temporary is not None:
                _remove(temporary)
            return False
        self._grown(len(data))
        return True

    def discard(self, key: bytes) -> None:
        """Removes an entry, if there is one."""
        try:
            self.path(key).unlink(missing_ok=True)
        except OSError as error:
            self._tell("remove", f"An entry of the compile cache cannot be removed: {error}")

    def size(self) -> int:
        """Bytes of all entries."""
        return sum(entry.size for entry in self._scan())

    def evict(self) -> None:
        """Removes what was used longest ago until a tenth of the limit is free, if the limit is passed."""
        with self._lock:
            entries = sorted(self._scan())
            total = sum(entry.size for entry in entries)
            self._unseen = 0
            if total <= self.limit:
                return
            removed = 0
            for entry in entries:
                if total <= self.limit * _AFTER_EVICTION:
                    break
                if _remove(entry.path):
                    total -= entry.size
                    removed += 1
        _log.info("Removed %d entries of the compile cache; %d bytes are left", removed, total)

    def _grown(self, size: int) -> None:
        """Notes new bytes; looks through the folder at first, then whenever the cache may have grown by a sixteenth."""
        with self._lock:
            look = self._unseen is None or self._unseen + size > self.limit // 16
            if not look:
                self._unseen = (self._unseen or 0) + size
        if look:
            self.evict()

    def _scan(self) -> list[_Entry]:
        """All finished entries. Unfinished files that nobody will finish are removed."""
        found = []
        now = time.time()
        try:
            for folder in os.scandir(self._entries):
                if not folder.is_dir():
                    continue
                for file in os.scandir(folder.path):
                    try:
                        status = file.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if not file.name.startswith("new-"):
                        found.append(_Entry(status.st_mtime, status.st_size, file.path))
                    elif now - status.st_mtime > _STALE:
                        _remove(file.path)
        except FileNotFoundError:
            # Nothing was stored yet, or somebody is clearing the cache.
            return found
        except OSError as error:
            self._tell("scan", f"The compile cache cannot be looked through: {error}")
        return found

    def _tell(self, topic: str, message: str) -> None:
        """Warns once per topic."""
        with self._lock:
            if topic in self._told:
                return
            self._told.add(topic)
        _log.warning("%s", message)


def _remove(path: str) -> bool:
    try:
        Path(path).unlink()
    except FileNotFoundError:
        return True
    except OSError as error:
        _log.warning("Cannot remove %s: %s", path, error)
        return False
    return True


def _encode(key: bytes, image: CompiledImage) -> bytes:
    data = pack(image)
    return _HEAD.pack(_MAGIC, _HASH(key + data).digest(), key) + data


def _decode(key: bytes, data: bytes) -> CompiledImage:
    if len(data) < _HEAD.size:
        raise ValueError("it is cut short")
    magic, digest, stored = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError("it is no entry of this cache")
    content = memoryview(data)[_HEAD.size :]
    check = _HASH(stored)
    check.update(content)
    if check.digest() != digest:
        raise ValueError("its checksum is wrong")
    if stored != key:
        raise ValueError("it belongs to another key")
    return unpack(content)
