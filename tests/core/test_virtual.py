"""Virtual memory in a window that is really mapped."""

import pytest
from core_fake_backend import FakeCompiler, selection

from zluda.core import CudaError, Driver, MemoryKind
from zluda.core.virtual import GRANULARITY, NONE, READ_WRITE, PhysicalMemory
from zluda.window import window as windows


@pytest.fixture
def driver():
    window = windows.open_window(1 << 30)
    made = Driver(selection(window), window, FakeCompiler())
    made.device(0).retain_primary()
    yield made
    made.close()
    window.close()


def test_one_memory_at_two_addresses(driver):
    free, _ = driver.device(0).memory_info()
    memory = PhysicalMemory(driver.device(0), GRANULARITY)
    assert driver.device(0).memory_info()[0] == free - GRANULARITY
    virtual = driver.virtual
    first, second = virtual.reserve(2 * GRANULARITY), virtual.reserve(GRANULARITY, 4 * GRANULARITY)
    assert first % GRANULARITY == 0 and second % (4 * GRANULARITY) == 0
    for address in (first, second):
        virtual.map(address, GRANULARITY, memory)
        assert driver.find(address) is None
        virtual.set_access_wait(address, GRANULARITY, READ_WRITE).block()
        assert driver.find(address + GRANULARITY - 1).kind is MemoryKind.VIRTUAL
    driver.window.view(first, 5)[:] = b"bytes"
    assert bytes(driver.window.view(second, 5)) == b"bytes"
    virtual.unmap_wait(first, GRANULARITY).block()
    assert driver.find(first) is None
    virtual.set_access_wait(second, GRANULARITY, NONE).block()
    assert driver.find(second) is None
    virtual.unmap_wait(second, GRANULARITY).block()
    virtual.free(first, 2 * GRANULARITY)
    virtual.free(second, GRANULARITY)
    driver.window.view(first, 1)[:] = b"x"
    memory.destroy()
    memory.destroy()
    assert driver.device(0).memory_info()[0] == free


def test_ranges_go_on_over_neighbouring_mappings(driver):
    memory = [PhysicalMemory(driver.device(0), GRANULARITY) for _ in range(2)]
    base = driver.virtual.reserve(3 * GRANULARITY)
    for number, piece in enumerate(memory):
        driver.virtual.map(base + number * GRANULARITY, GRANULARITY, piece)
        driver.virtual.set_access_wait(base + number * GRANULARITY, GRANULARITY, READ_WRITE).block()
    driver.memory.require(base + 5, 2 * GRANULARITY - 5)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        driver.memory.require(base + 5, 2 * GRANULARITY - 4)


def test_sizes(driver):
    for size in (0, 4096, GRANULARITY + 1):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            PhysicalMemory(driver.device(0), size)
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        PhysicalMemory(driver.device(0), 1 << 40)
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        driver.virtual.reserve(1 << 40)


def test_only_where_the_window_is_reached(driver):
    other = Driver(selection(driver.window, host_reaching=(False,)), driver.window, FakeCompiler())
    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
        PhysicalMemory(other.device(0), GRANULARITY)
    assert other.device(0).attribute("CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED") == 0
