"""Memory pools and stream-ordered allocation, and managed memory's advice."""

import pytest

from zluda.core import CudaError, MemoryKind, MemoryPool, managed
from zluda.core.managed import Location

MIB = 1 << 20
DEVICE, HOST = Location(1, 0), Location(2, -1)


def stream_of(bench):
    return bench.context.create_stream(flags=1)


def test_allocate_and_free_in_order(any_bench):
    stream = stream_of(any_bench)
    free, _ = any_bench.context.memory_info()
    pool = any_bench.device.pools.default
    address = stream.allocate(1000)
    allocation = any_bench.driver.find(address + 999)
    assert (allocation.address, allocation.size, allocation.pool) == (address, 1000, pool)
    assert pool.used == pool.reserved == 1024
    stream.free(address)
    assert any_bench.driver.find(address) is None
    assert (pool.used, pool.used_high, pool.reserved) == (0, 1024, 1024)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        stream.free(address)
    stream.synchronize()
    assert pool.reserved == 0
    assert any_bench.context.memory_info()[0] == free


@pytest.mark.parametrize("what", ["stream", "event", "context"])
def test_what_is_beyond_the_threshold_goes_at_each_kind_of_synchronisation(any_bench, what):
    stream, event = stream_of(any_bench), any_bench.context.create_event()
    pool = any_bench.device.pools.default
    pool.release_threshold = 4096
    stream.free(stream.allocate(4096))
    stream.synchronize()
    assert pool.reserved == 4096
    both = stream.allocate(4096), stream.allocate(2048)
    for address in both:
        stream.free(address)
    event.record(stream)
    {"stream": stream, "event": event, "context": any_bench.context}[what].synchronize()
    assert pool.reserved <= 4096


def test_the_same_stream_takes_memory_back_without_waiting(any_bench):
    stream, other = stream_of(any_bench), stream_of(any_bench)
    any_bench.fake.hold()
    first = stream.allocate(MIB)
    stream.fill(first, 1, 1, 100)
    stream.free(first)
    elsewhere = other.allocate(MIB)
    assert elsewhere != first
    assert stream.allocate(MIB) == first


def test_another_stream_takes_what_is_no_longer_used(any_bench):
    stream, other = stream_of(any_bench), stream_of(any_bench)
    pool = any_bench.device.pools.default
    pool.release_threshold = 8 * MIB
    first = stream.allocate(MIB)
    stream.free(first)
    stream.synchronize()
    pool.opportunistic = False
    second = other.allocate(MIB)
    assert second != first
    pool.opportunistic = True
    assert other.allocate(MIB) == first


def test_a_block_is_not_wasted_on_something_small(any_bench):
    stream = stream_of(any_bench)
    first = stream.allocate(MIB)
    stream.free(first)
    small = stream.allocate(4096)
    assert small != first
    assert stream.allocate(MIB - MIB // 8) == first


def test_a_stream_waits_for_another_where_no_memory_is_left(any_bench):
    """The second user's fill comes behind the first one's, although the streams know nothing of each other."""
    stream, other = stream_of(any_bench), stream_of(any_bench)
    any_bench.fake.hold()
    first = stream.allocate(6 * MIB)
    stream.fill(first, 1, 1, 16)
    stream.free(first)
    second = other.allocate(6 * MIB, patient=False)
    assert second == first
    other.fill(second, 2, 1, 16)
    any_bench.fake.release()
    assert any_bench.context.read(second, 16, other) == b"\2" * 16
    any_bench.context.synchronize()
    assert any_bench.context.read(second, 16, other) == b"\2" * 16


def test_without_that_permission_a_patient_call_waits_itself(any_bench):
    stream, other = stream_of(any_bench), stream_of(any_bench)
    any_bench.device.pools.default.internal_dependencies = False
    any_bench.fake.hold()
    first = stream.allocate(6 * MIB)
    stream.free(first)
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        other.allocate(6 * MIB, patient=False)
    any_bench.fake.held = False
    other.allocate(6 * MIB)
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        other.allocate(6 * MIB)


def test_pools_give_way_to_other_allocations(any_bench):
    stream = stream_of(any_bench)
    any_bench.device.pools.default.release_threshold = 8 * MIB
    stream.free(stream.allocate(6 * MIB))
    any_bench.context.free(any_bench.context.allocate(6 * MIB))
    stream.free(stream.allocate(6 * MIB))
    pool = MemoryPool(any_bench.device)
    stream.allocate(6 * MIB, pool)


def test_a_limited_pool(any_bench):
    stream = stream_of(any_bench)
    pool = MemoryPool(any_bench.device, max_size=MIB)
    stream.allocate(MIB // 2, pool)
    with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
        stream.allocate(MIB, pool)
    address = stream.allocate(MIB // 2, pool)
    stream.free(address)
    stream.allocate(MIB // 4, pool)  # what is free in the pool gives way


def test_trim_keeps_what_it_is_told(any_bench):
    stream = stream_of(any_bench)
    pool = any_bench.device.pools.default
    pool.release_threshold = 8 * MIB
    for address in [stream.allocate(MIB) for _ in range(4)]:
        stream.free(address)
    any_bench.context.synchronize()
    pool.trim(5 * MIB)
    assert pool.reserved == 4 * MIB
    pool.trim(2 * MIB + 1)
    assert pool.reserved == 3 * MIB
    pool.trim()
    assert pool.reserved == 0


def test_trim_leaves_what_is_in_use(any_bench):
    stream = stream_of(any_bench)
    pool = any_bench.device.pools.default
    kept, freed = stream.allocate(MIB), stream.allocate(MIB)
    any_bench.fake.hold()
    stream.fill(freed, 1, 1, 10)
    stream.free(freed)
    pool.trim()
    assert pool.reserved == 2 * MIB
    any_bench.fake.release()
    any_bench.context.synchronize()
    assert pool.reserved == MIB
    stream.free(kept)


def test_destroying_a_pool(any_bench):
    stream = stream_of(any_bench)
    pools = any_bench.device.pools
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        pools.default.destroy()
    pool = MemoryPool(any_bench.device)
    pools.set_current(pool)
    address = stream.allocate(MIB)
    assert any_bench.driver.find(address).pool is pool
    pool.destroy()
    assert pools.current is pools.default
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        pool.destroy()
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        stream.allocate(16, pool)
    stream.fill(address, 3, 1, 16)
    assert any_bench.context.read(address, 16, stream) == b"\3" * 16
    stream.free(address)
    stream.synchronize()
    assert pool.drained


def test_memory_outlives_the_context_whose_stream_it_came_from(any_bench):
    context = any_bench.device.create_context()
    address = context.create_stream().allocate(4096)
    context.destroy()
    stream = stream_of(any_bench)
    stream.fill(address, 4, 1, 16)
    assert any_bench.context.read(address, 16, stream) == b"\4" * 16
    any_bench.context.free(address)


def test_a_ruined_context_does_not_keep_memory_of_pools(any_bench):
    stream = stream_of(any_bench)
    pool = any_bench.device.pools.default
    address = stream.allocate(4096)
    any_bench.context.fail(CudaError("CUDA_ERROR_LAUNCH_FAILED"))
    with pytest.raises(CudaError, match="LAUNCH_FAILED"):
        stream.free(address)
    assert (pool.used, any_bench.driver.find(address)) == (0, None)
    pool.trim()
    assert pool.reserved == 0


def test_ordinary_memory_freed_in_order(any_bench):
    stream = stream_of(any_bench)
    free, _ = any_bench.context.memory_info()
    address = any_bench.context.allocate(MIB)
    any_bench.fake.hold()
    stream.fill(address, 1, 1, 10)
    stream.free(address)
    assert any_bench.driver.find(address) is None
    assert any_bench.context.memory_info()[0] == free - MIB
    any_bench.fake.release()
    stream.synchronize()
    assert any_bench.context.memory_info()[0] == free
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        stream.free(any_bench.context.allocate_host(64))


def test_host_and_managed_pools(bench):
    stream = stream_of(bench)
    for kind in (MemoryKind.HOST, MemoryKind.MANAGED):
        pool = MemoryPool(bench.device, kind)
        address = stream.allocate(4096, pool)
        assert bench.driver.find(address).kind is kind
        stream.fill(address, 5, 1, 4096)
        stream.synchronize()
        assert bench.window.view(address, 4096) == b"\5" * 4096
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            bench.context.free_host(address)
        bench.context.free(address)
        pool.destroy()
        assert pool.drained


def test_managed_memory_needs_a_device_that_reaches_the_window(any_bench):
    if any_bench.device.host_reaching:
        address = any_bench.context.allocate_managed(4096, 1)
        assert any_bench.driver.find(address).kind is MemoryKind.MANAGED
        any_bench.context.free(address)
    else:
        with pytest.raises(CudaError, match="NOT_SUPPORTED"):
            any_bench.context.allocate_managed(4096, 1)
        with pytest.raises(CudaError, match="NOT_SUPPORTED"):
            MemoryPool(any_bench.device, MemoryKind.MANAGED)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        any_bench.context.allocate_managed(4096, 4)
    reaching = int(any_bench.device.host_reaching)
    assert any_bench.device.attribute("CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY") == reaching
    assert any_bench.device.attribute("CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS") == reaching
    assert any_bench.device.attribute("CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED") == 1


def test_advice_by_pages(bench):
    page = managed.PAGE
    base = bench.context.allocate_managed(16 * page, 1)
    driver = bench.driver
    managed.advise(driver, base + 2 * page + 1, page, 1, HOST)  # touches two pages
    assert managed.usage(driver, base + 2 * page, 2 * page).read_mostly
    assert not managed.usage(driver, base + 2 * page, 2 * page + 1).read_mostly
    assert not managed.usage(driver, base, 16 * page).read_mostly
    managed.advise(driver, base, 16 * page, 5, DEVICE)
    managed.advise(driver, base, 4 * page, 5, HOST)
    assert managed.usage(driver, base, 4 * page).accessed_by == {DEVICE, HOST}
    assert managed.usage(driver, base, 5 * page).accessed_by == {DEVICE}
    managed.prefetch(driver, base, 16 * page, DEVICE)
    managed.prefetch(driver, base + 15 * page, page, HOST)
    assert managed.usage(driver, base, 15 * page).prefetched == DEVICE
    assert managed.usage(driver, base, 16 * page).prefetched is None
    for bad in ((base, 17 * page), (base, 0), (bench.context.allocate(64), 64)):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            managed.usage(driver, *bad)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        managed.advise(driver, base, page, 7, HOST)


def test_advice_that_is_undone_leaves_one_run(bench):
    page = managed.PAGE
    base = bench.context.allocate_managed(64 * page, 1)
    for at in range(0, 64, 2):
        managed.advise(bench.driver, base + at * page, page, 3, DEVICE)
    managed.advise(bench.driver, base, 64 * page, 4, DEVICE)
    assert bench.driver.find(base).advice._starts == [0]
