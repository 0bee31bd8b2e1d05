"""What the probe says on machines with parts of Level Zero missing, and with a stand-in for its loader."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from zluda_level_zero.backend import DETECTS_ONLY, LevelZeroBackend

from zluda.backend.seam import NotSupported

# A zeDriverGet after a failed zeInit crashes in loader 1.8, and so it does here. The offset of the name is ze_api.h's.
LOADER = """
#include <stdint.h>
#include <string.h>
static int ready;
int zeInit(int flags) { ready = !FAIL; return FAIL; }
int zeDriverGet(uint32_t *count, void **drivers) {
    if (!ready) *(volatile int *)0 = 0;
    if (drivers) drivers[0] = (void *)0x100000001;
    *count = 1;
    return 0;
}
int zeDeviceGet(void *driver, uint32_t *count, void **devices) {
    if (driver != (void *)0x100000001) return 0x78000005;
    *count = DEVICES;
    if (devices) for (int i = 0; i < DEVICES; i++) devices[i] = (void *)(0x200000000 + i);
    return 0;
}
int zeDeviceGetProperties(void *device, void *properties) {
    if (*(uint32_t *)properties != 3) return 0x78000004;
    char *name = (char *)properties + 112;
    strcpy(name, "Fake GPU ?");
    name[9] = '0' + (int)((uintptr_t)device & 0xff);
    return 0;
}
"""


@pytest.fixture
def dri(tmp_path: Path) -> Path:
    path = tmp_path / "dri"
    path.mkdir()
    (path / "renderD128").touch()
    return path


@pytest.fixture
def loader(tmp_path: Path):
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")

    def build(fail: int = 0, devices: int = 1) -> str:
        (tmp_path / "ze.c").write_text(LOADER)
        library = tmp_path / f"libze_{fail}_{devices}.so"
        defines = [f"-DFAIL={fail}", f"-DDEVICES={devices}"]
        subprocess.run(["cc", "-shared", "-fPIC", *defines, "-o", str(library), str(tmp_path / "ze.c")], check=True)
        return str(library)

    return build


def test_a_machine_without_level_zero(tmp_path: Path) -> None:
    report = LevelZeroBackend(tmp_path / "none", "libze_loader_that_is_not_there.so.1").probe()
    reasons = {entry.what: entry for entry in report.unusable}
    assert "libze_loader_that_is_not_there.so.1: cannot open" in reasons["Level Zero loader"].why
    assert "libze1" in reasons["Level Zero loader"].remedy
    assert f"there is no {tmp_path}/none/renderD*" in reasons["Intel GPU"].why


def test_no_permission(dri: Path, loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (entry,) = LevelZeroBackend(dri, loader()).probe().unusable
    assert "no permission" in entry.why and "render" in entry.remedy


def test_a_failed_init_says_so_and_calls_nothing_else(dri: Path, loader) -> None:
    (entry,) = LevelZeroBackend(dri, loader(fail=0x78000001)).probe().unusable
    assert entry.why.startswith("zeInit: ZE_RESULT_ERROR_UNINITIALIZED (0x78000001)")


def test_an_unknown_code_is_shown(dri: Path, loader) -> None:
    (entry,) = LevelZeroBackend(dri, loader(fail=0x7FFF0000)).probe().unusable
    assert "0x7fff0000" in entry.why


def test_devices_are_named_and_not_claimed(dri: Path, loader) -> None:
    report = LevelZeroBackend(dri, loader(devices=2)).probe()
    assert report.devices == ()
    assert [(entry.what, entry.why) for entry in report.unusable] == [
        ("Fake GPU 0", DETECTS_ONLY),
        ("Fake GPU 1", DETECTS_ONLY),
    ]


def test_no_device(dri: Path, loader) -> None:
    (entry,) = LevelZeroBackend(dri, loader(devices=0)).probe().unusable
    assert entry.why == "Level Zero finds no GPU"


def test_opening_is_refused() -> None:
    with pytest.raises(NotSupported, match="only detects"):
        LevelZeroBackend().open(0)
