"""Regular expressions that every CPython 3.11 reads alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import zluda.images
import zluda.ptx

FILES = [path for package in (zluda.ptx, zluda.images) for path in Path(next(iter(package.__path__))).glob("*.py")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_possessive_group(path: Path) -> None:
    """CPython before 3.11.5 matches `(...)*+`, `(...)++` and `(...)?+` wrongly where the group holds alternatives
    (python/cpython issue 106052); Debian 12 has 3.11.2. A possessive class such as `[a-z]*+` is right everywhere."""
    assert not re.search(r"(?<!\\)\)[*+?]\+", path.read_text())
