"""One device for all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from zluda.testing import CoreExecutor, load_cases


@pytest.fixture(scope="session")
def executor() -> Iterator[CoreExecutor]:
    """The machine's OpenCL device, through the core. The kernels of a module are compiled together."""
    import zluda

    gpu = zluda.open("opencl")
    with gpu, CoreExecutor(gpu, load_cases("verify")) as made:
        yield made
