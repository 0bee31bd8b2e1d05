"""Stream memory operations: conditions by the manual's formulas, order, and waits that are given up."""

from __future__ import annotations

import threading
import time

import pytest

from zluda.backend.seam import BackendError
from zluda.core import CudaError, memory_operation
from zluda.core.memory_operation import AND, EQ, GEQ, NOR, MemoryWait, Peek, fulfilled, wait_value, write_value


@pytest.mark.parametrize("width", [4, 8])
def test_conditions(width):
    bits = 8 * width
    everything = (1 << bits) - 1

    def signed(number):
        number &= everything
        return number - (1 << bits) if number >> (bits - 1) else number

    numbers = [0, 1, 2, 5, 1 << 31, (1 << 31) - 1, 1 << (bits - 1), everything, everything - 1]
    for found in numbers:
        for value in numbers:
            value &= everything
            found &= everything
            assert fulfilled(found, value, width, GEQ) == (signed(found - value) >= 0)
            assert fulfilled(found, value, width, EQ) == (found == value)
            assert fulfilled(found, value, width, AND) == ((found & value) != 0)
            assert fulfilled(found, value, width, NOR) == ((~(found | value) & everything) != 0)


def test_writes_and_satisfied_waits_keep_the_order(any_bench):
    context = any_bench.context
    stream = context.create_stream()
    address = context.allocate(16)
    any_bench.fake.hold()
    write_value(stream, address, 7, 4)
    write_value(stream, address + 8, -1, 8)
    any_bench.fake.release()
    stream.synchronize()
    assert context.read(address, 4) == (7).to_bytes(4, "little")
    assert context.read(address + 8, 8) == b"\xff" * 8
    peek = Peek(context, address, 4)
    assert peek.value() == 7
    peek.close()


def test_later_work_waits(bench):
    """The fake device runs host calls where it is pumped, so the value is there before the wait is due."""
    stream = bench.context.create_stream()
    address = bench.context.allocate(8)
    bench.fake.hold()
    write_value(stream, address, 3, 8)
    wait_value(stream, address, 3, 8, EQ)
    assert len(bench.context.memory_waits) == 1
    bench.fake.release()
    stream.synchronize()
    assert not bench.context.memory_waits


def test_a_wait_ends_when_memory_changes_and_is_given_up_with_its_context(bench, monkeypatch):
    context = bench.context
    address = context.allocate(4)
    context.write(address, bytes(4))
    wait = MemoryWait(context, address, lambda found: found == 5)
    thread = threading.Thread(target=wait.run)
    thread.start()
    thread.join(0.02)
    assert thread.is_alive()
    context.write(address, (5).to_bytes(4, "little"))
    thread.join(5)
    assert not thread.is_alive()

    monkeypatch.setattr(memory_operation, "PATIENCE", 0.05)
    wait = MemoryWait(context, address, lambda _: False)
    started = time.monotonic()
    wait.give_up_soon()
    with pytest.raises(BackendError, match="given up"):
        wait.run()
    assert context.error is not None and context.error.name == "CUDA_ERROR_LAUNCH_FAILED"
    assert 0.05 <= time.monotonic() - started < 2


def test_what_is_refused(bench):
    stream = bench.context.create_stream()
    address = bench.context.allocate(8)
    for wrong, width in ((address + 2, 4), (address + 4, 8), (address + 8, 4), (8, 4)):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            write_value(stream, wrong, 0, width)
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            wait_value(stream, wrong, 0, width)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        wait_value(stream, address, 0, 4, 4)
    stream.destroy()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        write_value(stream, address, 0, 4)
    assert not bench.context.memory_waits
