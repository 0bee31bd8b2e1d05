"""The ROCm backend: so far it detects devices, and says what of ROCm is missing."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from zluda.backend.info import ProbeReport, Unusable
from zluda.backend.seam import Backend, Device, NotSupported
from zluda_rocm import __version__

LIBRARY = "libamdhip64.so"
KFD = Path("/dev/kfd")
SYSTEM_DIRECTORIES = ("/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib", "/usr/lib")
DETECTS_ONLY = "this version of zluda-rocm only detects ROCm devices, it does not run on them yet"

# hip_runtime_api.h, hipError_t
_CODES = {
    3: "hipErrorNotInitialized",
    35: "hipErrorInsufficientDriver",
    100: "hipErrorNoDevice",
    101: "hipErrorInvalidDevice",
}
_NO_DEVICE = (100, 101)


class RocmBackend(Backend):
    """AMD GPUs through hip-python."""

    name = "rocm"
    version = __version__
    seam_version = 0
    rank = 10

    def __init__(
        self, kfd: Path = KFD, environment: Mapping[str, str] = os.environ, system: tuple[str, ...] = SYSTEM_DIRECTORIES
    ) -> None:
        """The parameters are for tests."""
        self._kfd, self._environment, self._system = kfd, environment, system

    def probe(self) -> ProbeReport:
        # What is missing is seen without loading anything: most machines have no AMD GPU, and importing hip-python
        # costs a fifth of a second.
        missing = list(self._missing())
        if missing:
            return self._report(missing)
        return self._ask_hip()

    def open(self, index: int) -> Device:  # noqa: ARG002
        raise NotSupported(DETECTS_ONLY)

    def _report(self, unusable: list[Unusable], runtime: str = "") -> ProbeReport:
        return ProbeReport(backend=self.name, backend_version=self.version, runtime=runtime, unusable=tuple(unusable))

    def _missing(self) -> Iterator[Unusable]:
        if importlib.util.find_spec("hip") is None:
            yield Unusable(what="hip-python", why="it is not installed", remedy="pip install 'zluda-rocm[rocm]'")
        found = library_files(self._environment, self._system)
        if not found:
            yield Unusable(
                what="ROCm runtime",
                why=f"{LIBRARY} is not in LD_LIBRARY_PATH, ROCM_PATH, HIP_PATH or {', '.join(self._system)}",
                remedy="install ROCm 6.1 or newer (package hip-runtime-amd), or set ROCM_PATH",
            )
        elif not any(file.name == LIBRARY for file in found):
            yield Unusable(
                what="ROCm runtime",
                why=f"there is {found[0]}, but hip-python opens the unversioned {LIBRARY}, which is not there",
                remedy="install ROCm's development package (hip-dev), or link the file under that name and set "
                "LD_LIBRARY_PATH",
            )
        if not self._kfd.exists():
            yield Unusable(
                what="AMD GPU",
                why=f"there is no {self._kfd}: no AMD GPU, or the amdgpu kernel driver is not loaded",
                remedy="load amdgpu; in a container pass --device /dev/kfd --device /dev/dri",
            )
        elif not os.access(self._kfd, os.R_OK | os.W_OK):
            yield Unusable(
                what="AMD GPU",
                why=f"no permission to read and write {self._kfd}",
                remedy="sudo usermod -aG render,video $USER, then log in again",
            )

    def _ask_hip(self) -> ProbeReport:
        try:
            from hip import hip as module

            hip: Any = module
            (code,) = hip.hipInit(0)
            if code == 0:
                code, count = hip.hipGetDeviceCount()
        except (ImportError, RuntimeError) as error:
            # hip-python raises RuntimeError when it cannot open the library or finds no symbol in it.
            remedy = "make hip-python's version match ROCm's: pip install 'hip-python==<ROCm version>.*'"
            return self._report([Unusable(what="ROCm runtime", why=f"hip-python: {error}", remedy=remedy)])
        if int(code):
            return self._report([_failed(int(code))])
        runtime = _version(hip)
        if not count:
            return self._report([_failed(100)], runtime)
        remedy = "use another backend for now; `zluda devices` lists what is usable"
        devices = [Unusable(what=f"ROCm device {index}", why=DETECTS_ONLY, remedy=remedy) for index in range(count)]
        return self._report(devices, runtime)


def library_files(environment: Mapping[str, str], system: tuple[str, ...]) -> list[Path]:
    """Files of HIP's runtime, where the dynamic linker or hip-python look, the unversioned name first."""
    places = [part for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part]
    for name in ("ROCM_PATH", "HIP_PATH"):
        if environment.get(name):
            places.append(f"{environment[name]}/lib")
    found = [file for place in [*places, *system] for file in sorted(Path(place).glob(f"{LIBRARY}*"))]
    return sorted(found, key=lambda file: file.name != LIBRARY)


def _failed(code: int) -> Unusable:
    name = f"{_CODES.get(code, 'hipError_t')} ({code})"
    if code in _NO_DEVICE:
        return Unusable(
            what="AMD GPU",
            why=f"ROCm finds no device: {name}",
            remedy="rocminfo shows what ROCm sees; check HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, and whether "
            "this ROCm supports the GPU",
        )
    return Unusable(
        what="ROCm runtime", why=f"hipInit failed: {name}", remedy="check that ROCm and the amdgpu driver match"
    )


def _version(hip: Any) -> str:
    code, version = hip.hipRuntimeGetVersion()
    if int(code):
        return "ROCm of unknown version"
    # HIP_VERSION: major * 10,000,000 + minor * 100,000 + patch
    return f"HIP {version // 10_000_000}.{version // 100_000 % 100}.{version % 100_000}"
