"""A backend whose `finalize` obeys commands in its options. Found through the entry point that a test writes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from zluda.backend.hooks import hookimpl
from zluda.backend.info import Image, ProbeReport
from zluda.backend.seam import Backend, BuildError


class FakeVendor(Backend):
    name = "fake"
    version = "1"

    def probe(self) -> ProbeReport:
        return ProbeReport(backend="fake", backend_version="1")

    def open(self, index: int) -> Any:
        raise NotImplementedError

    def finalize(self, index: int, image: Image, options: Sequence[str] = ()) -> Image | None:
        low = "-cl-opt-disable" in options
        for option in options:
            match option:
                case "none":
                    return None
                case "refuse":
                    raise BuildError("error 42", log="line 1: no", call="fakeBuild")
                case "die" if not low:
                    os.abort()
                case "die-always":
                    os.abort()
                case "hang" if not low:
                    time.sleep(600)
                case "hang-always":
                    time.sleep(600)
        return Image(format="native:fake", data=b"native " + " ".join(options).encode(), kernels=image.kernels)


@hookimpl
def zluda_backends() -> list[Backend]:
    return [FakeVendor()]
