"""The Level Zero backend: so far it detects devices, and says what of Level Zero is missing."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from zluda.backend.info import ProbeReport, Unusable
from zluda.backend.seam import Backend, Device, NotSupported
from zluda_level_zero import __version__
from zluda_level_zero.loader import LIBRARY, LevelZeroError, device_names

DRI = Path("/dev/dri")
DETECTS_ONLY = "this version of zluda-level-zero only detects Level Zero devices, it does not run on them yet"

_UNINITIALIZED = 0x78000001
_INSTALL_DRIVER = "install Intel's Level Zero GPU driver (Debian: intel-level-zero-gpu, or libze-intel-gpu1)"


class LevelZeroBackend(Backend):
    """Intel GPUs through Level Zero."""

    name = "level_zero"
    version = __version__
    seam_version = 0
    rank = 20

    def __init__(self, dri: Path = DRI, library: str = LIBRARY) -> None:
        """The parameters are for tests."""
        self._dri, self._library = dri, library

    def probe(self) -> ProbeReport:
        # Without a render node there is nothing to find, and no driver need be loaded.
        if missing := list(self._missing()):
            return self._report(*missing)
        try:
            names = device_names(self._library)
        except LevelZeroError as error:
            why = f"{error}: the loader found no working driver" if error.code == _UNINITIALIZED else str(error)
            return self._report(Unusable(what="Level Zero driver", why=why, remedy=_INSTALL_DRIVER))
        if not names:
            return self._report(Unusable(what="Intel GPU", why="Level Zero finds no GPU", remedy=_INSTALL_DRIVER))
        remedy = "use the opencl backend for now"
        return self._report(*(Unusable(what=name, why=DETECTS_ONLY, remedy=remedy) for name in names))

    def open(self, index: int) -> Device:  # noqa: ARG002
        raise NotSupported(DETECTS_ONLY)

    def _report(self, *unusable: Unusable) -> ProbeReport:
        return ProbeReport(backend=self.name, backend_version=self.version, unusable=unusable)

    def _missing(self) -> Iterator[Unusable]:
        try:
            # The loader alone is small; it looks for drivers only when zeInit is called.
            ctypes.CDLL(self._library)
        except OSError as error:
            remedy = "install the Level Zero loader (Debian and Ubuntu: libze1) and Intel's GPU driver"
            yield Unusable(what="Level Zero loader", why=str(error), remedy=remedy)
        nodes = sorted(self._dri.glob("renderD*"))
        if not nodes:
            yield Unusable(
                what="Intel GPU",
                why=f"there is no {self._dri}/renderD*: no GPU, or its kernel driver is not loaded",
                remedy="load the i915 or xe driver; in a container pass --device /dev/dri",
            )
        elif not any(os.access(node, os.R_OK | os.W_OK) for node in nodes):
            yield Unusable(
                what="Intel GPU",
                why=f"no permission to read and write {', '.join(map(str, nodes))}",
                remedy="sudo usermod -aG render $USER, then log in again",
            )
