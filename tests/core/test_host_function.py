"""Functions of the host that are told how the work before them went."""

from __future__ import annotations

import pytest

from zluda.backend.seam import BackendError
from zluda.core import CudaError, host_function


def test_in_order_and_told_of_success(bench):
    seen = []
    stream = bench.context.create_stream()
    bench.fake.hold()
    host_function.enqueue(stream, lambda status: seen.append(("first", status)))
    host_function.enqueue(stream, lambda status: seen.append(("second", status)))
    assert seen == []
    bench.fake.release()
    stream.synchronize()
    assert seen == [("first", 0), ("second", 0)]


def test_told_of_what_went_wrong_before(bench):
    seen = []
    stream = bench.context.create_stream(flags=1)
    address = bench.context.allocate(4)
    bench.fake.hold()
    stream.fill(address, 0, 4, 1)
    stream._queue.error = BackendError("the device fails")
    host_function.enqueue(stream, seen.append)
    bench.fake.release()
    with pytest.raises(CudaError, match="LAUNCH_FAILED"):
        stream.synchronize()
    assert seen == [719]
    with pytest.raises(CudaError, match="LAUNCH_FAILED"):
        host_function.enqueue(stream, seen.append)
    assert seen == [719]


def test_a_destroyed_stream_takes_none(bench):
    stream = bench.context.create_stream()
    stream.destroy()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        host_function.enqueue(stream, lambda status: None)
