"""What the probe says on machines with parts of ROCm missing, and with a stand-in for its runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from zluda_rocm.backend import DETECTS_ONLY, RocmBackend

from zluda.backend.info import ProbeReport
from zluda.backend.seam import NotSupported

RUNTIME = """
#include <stdlib.h>
static int env(const char *name) { const char *v = getenv(name); return v ? atoi(v) : 0; }
int hipInit(unsigned flags) { return env("FAKE_INIT"); }
int hipGetDeviceCount(int *count) { *count = env("FAKE_COUNT"); return env("FAKE_COUNT_CODE"); }
int hipRuntimeGetVersion(int *version) { *version = 60241133; return 0; }
"""

PROBE = """
import sys
from pathlib import Path
from zluda_rocm.backend import RocmBackend
print(RocmBackend(kfd=Path(sys.argv[1])).probe().model_dump_json())
"""


@pytest.fixture
def kfd(tmp_path: Path) -> Path:
    file = tmp_path / "kfd"
    file.touch()
    return file


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "rocm" / "lib"
    path.mkdir(parents=True)
    return path


def test_a_machine_without_rocm(tmp_path: Path) -> None:
    report = RocmBackend(tmp_path / "kfd", {}, (str(tmp_path),)).probe()
    assert report.devices == ()
    reasons = {entry.what: entry for entry in report.unusable}
    assert "libamdhip64.so is not in" in reasons["ROCm runtime"].why
    assert "install ROCm 6.1 or newer" in reasons["ROCm runtime"].remedy
    assert "no AMD GPU, or the amdgpu kernel driver is not loaded" in reasons["AMD GPU"].why


def test_hip_python_missing(kfd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    reasons = {e.what: e for e in RocmBackend(kfd, {}, ()).probe().unusable}
    assert reasons["hip-python"].remedy == "pip install 'zluda-rocm[rocm]'"


@pytest.mark.parametrize("variable", ["ROCM_PATH", "HIP_PATH", "LD_LIBRARY_PATH"])
def test_only_a_versioned_library(kfd: Path, directory: Path, variable: str) -> None:
    (directory / "libamdhip64.so.6").touch()
    value = str(directory if variable == "LD_LIBRARY_PATH" else directory.parent)
    (entry,) = RocmBackend(kfd, {variable: value}, ()).probe().unusable
    assert f"there is {directory}/libamdhip64.so.6" in entry.why


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(kfd: Path, directory: Path) -> None:
    (directory / "libamdhip64.so").touch()
    kfd.chmod(0)
    (entry,) = RocmBackend(kfd, {}, (str(directory),)).probe().unusable
    assert "no permission" in entry.why and "render" in entry.remedy


def test_no_permission_as_the_system_calls_say(kfd: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "libamdhip64.so").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (entry,) = RocmBackend(kfd, {}, (str(directory),)).probe().unusable
    assert "no permission" in entry.why and "render" in entry.remedy


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("settings", "whys"),
    [
        ({"FAKE_COUNT": "2"}, [DETECTS_ONLY, DETECTS_ONLY]),
        ({"FAKE_COUNT": "0"}, ["ROCm finds no device: hipErrorNoDevice (100)"]),
        ({"FAKE_COUNT_CODE": "100"}, ["ROCm finds no device: hipErrorNoDevice (100)"]),
        ({"FAKE_INIT": "101"}, ["ROCm finds no device: hipErrorInvalidDevice (101)"]),
        ({"FAKE_INIT": "35"}, ["hipInit failed: hipErrorInsufficientDriver (35)"]),
        ({"FAKE_INIT": "999"}, ["hipInit failed: hipError_t (999)"]),
    ],
)
def test_what_the_runtime_answers(
    tmp_path_factory: pytest.TempPathFactory, kfd: Path, settings: dict[str, str], whys: list[str]
) -> None:
    pytest.importorskip("hip")
    directory = tmp_path_factory.mktemp("hip")
    (directory / "hip.c").write_text(RUNTIME)
    library = directory / "libamdhip64.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(directory / "hip.c")], check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(kfd)],
        env=dict(os.environ) | settings | {"LD_LIBRARY_PATH": str(directory)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    report = ProbeReport.model_validate_json(done.stdout)
    assert [entry.why for entry in report.unusable] == whys
    assert report.devices == ()
    assert report.runtime == ("HIP 6.2.41133" if "FAKE_COUNT" in settings else "")


def test_opening_is_refused() -> None:
    with pytest.raises(NotSupported, match="only detects"):
        RocmBackend().open(0)
