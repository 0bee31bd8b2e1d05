"""OpenCL's codes in the seam's terms, and failures of execution."""

from __future__ import annotations

import pytest
from zluda_opencl import api
from zluda_opencl.errors import build_error, check, error, launch_error

from zluda.backend.seam import BackendError, BuildError, DeviceLost, LaunchError, OutOfMemory


@pytest.mark.parametrize(
    ("code", "plain", "launch", "build"),
    [
        (-4, OutOfMemory, OutOfMemory, OutOfMemory),
        (-6, OutOfMemory, OutOfMemory, OutOfMemory),
        (-61, OutOfMemory, OutOfMemory, OutOfMemory),
        (-2, DeviceLost, DeviceLost, DeviceLost),
        (-5, BackendError, LaunchError, BuildError),
        (-11, BackendError, LaunchError, BuildError),
        (-54, BackendError, LaunchError, BuildError),
        (-63, BackendError, LaunchError, BuildError),
        (-9999, BackendError, LaunchError, BuildError),
    ],
)
def test_classes(code: int, plain: type, launch: type, build: type) -> None:
    assert type(error("clX", code)) is plain
    assert type(launch_error("clX", code, "a kernel")) is launch
    assert type(build_error("clX", code, "an image", "log")) is build


def test_messages_name_the_call_and_the_code() -> None:
    failure = error("clFinish", -5, "a queue")
    assert str(failure) == "clFinish: CL_OUT_OF_RESOURCES (-5): a queue"
    assert (failure.call, failure.code) == ("clFinish", -5)
    assert str(error("clX", -9999)) == "clX: unknown OpenCL error (-9999)"
    build = build_error("clBuildProgram", -11, "kernels k", "line 3: no")
    assert isinstance(build, BuildError) and build.log == "line 3: no"
    assert str(build).endswith("kernels k\nline 3: no")
    check(0, "clX")


def test_failed_execution_comes_out_of_synchronize_and_markers(device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intel's CPU runtime never fails a command after it was enqueued, so the event's status is made up."""
    queue = device.create_queue()
    memory = device.allocate(16)
    marker = queue.record()
    queue.fill(memory, b"\0", 16)
    with monkeypatch.context() as patch:
        patch.setattr(api, "event_status", lambda event: -5)
        for call in (queue.synchronize, marker.query, marker.synchronize):
            with pytest.raises(BackendError, match=r"execution: CL_OUT_OF_RESOURCES \(-5\)"):
                call()
    queue.synchronize()
    device.free(memory)
    queue.close()
