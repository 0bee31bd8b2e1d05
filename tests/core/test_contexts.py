"""Contexts: life, current stack, sticky errors, the order in which things go."""

import gc
import threading

import pytest

from zluda.backend.seam import BackendError, DeviceLost, LaunchError, OutOfMemory
from zluda.core import CudaError, current
from zluda.core.errors import from_backend


def test_primary_context_is_one_and_counted(bench):
    device = bench.device
    assert device.primary_state() == (0, True)
    assert device.retain_primary() is bench.context
    device.release_primary()
    assert device.primary_state() == (0, True)
    device.release_primary()
    assert device.primary_state() == (0, False)
    with pytest.raises(CudaError, match="INVALID_CONTEXT"):
        device.release_primary()
    with pytest.raises(CudaError, match="CONTEXT_IS_DESTROYED"):
        bench.context.allocate(4)
    assert device.retain_primary() is bench.context
    bench.context.allocate(4)


def test_last_release_takes_everything_along(bench):
    context = bench.context
    address = context.allocate(100)
    context.legacy.fill(address, 0, 1, 100)
    queue = context.legacy._queue
    bench.device.release_primary()
    assert queue.closed == 1
    assert bench.window.live == {}
    assert bench.driver.find(address) is None


def test_reset_keeps_retains(bench):
    address = bench.context.allocate(100)
    bench.device.reset_primary()
    assert bench.device.primary_state() == (0, True)
    assert bench.driver.find(address) is None
    bench.context.allocate(100)
    bench.device.release_primary()
    assert bench.device.primary_state() == (0, False)
    bench.device.reset_primary()
    assert bench.device.primary_state() == (0, False)


def test_flags(bench):
    bench.device.set_primary_flags(4)
    assert bench.device.primary_state() == (4, True)
    for bad in (3, 5, 0x100):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            bench.device.set_primary_flags(bad)
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            bench.device.create_context(flags=bad)
    context = bench.device.create_context(flags=1 | 8)
    assert context.flags == 9 and context.api_version == 3020


def test_destroy_waits_closes_in_order_and_pops(bench):
    context = bench.device.create_context()
    context.load_module(".version 8.0\n.target sm_75\n.address_size 64\n.global .u32 g;\n")
    context.allocate(64)
    context.allocate_host(64)
    stream = context.create_stream()
    stream.fill(context.allocate(64), 1, 1, 64)
    event = context.create_event()
    event.record(stream)
    current.push(context)
    context.destroy()
    assert current.get() is None
    assert bench.window.live == {}
    assert ("closed with work in it", stream._queue) not in bench.fake.log
    for call in (context.synchronize, lambda: context.allocate(1), context.create_stream, context.create_event):
        with pytest.raises(CudaError, match="CONTEXT_IS_DESTROYED"):
            call()
    with pytest.raises(CudaError, match="CONTEXT_IS_DESTROYED"):
        context.destroy()
    with pytest.raises(CudaError):
        event.query()


def test_destroying_waits_for_work(bench):
    context = bench.device.create_context()
    address = context.allocate(64)
    bench.fake.hold()
    context.legacy.fill(address, 1, 1, 64)
    wait = context.destroy_wait()
    assert not wait.done() and bench.window.live
    with pytest.raises(CudaError, match="CONTEXT_IS_DESTROYED"):
        context.check()
    bench.fake.release()
    assert wait.done() and wait.done()
    assert bench.window.live == {}


def test_the_primary_context_cannot_be_destroyed(bench):
    with pytest.raises(CudaError, match="INVALID_CONTEXT"):
        bench.context.destroy()


def test_current_stack_of_a_thread(bench):
    a, b = bench.device.create_context(), bench.device.create_context()
    assert current.get() is None
    with pytest.raises(CudaError, match="INVALID_CONTEXT"):
        current.pop()
    with pytest.raises(CudaError, match="INVALID_CONTEXT"):
        current.require()
    current.push(a)
    current.push(b)
    assert current.require() is b
    current.set(a)
    assert current.pop() is a and current.get() is a
    current.set(None)
    assert current.get() is None


def test_sticky_error_comes_back_from_every_call(bench):
    context = bench.context
    address = context.allocate(64)

    def crash(launch):
        raise BackendError("segmentation fault", call="fakeRun")

    stream, other, event = context.create_stream(), context.create_stream(), context.create_event()
    bench.fake.hold()
    stream.host_call(lambda: crash(None))
    wait = stream.wait_handle()
    bench.fake.release()
    with pytest.raises(CudaError, match="LAUNCH_FAILED"):
        wait.block()
    calls = [
        context.synchronize,
        lambda: context.allocate(4),
        lambda: context.free(address),
        lambda: context.load_module("x"),
        lambda: other.fill(address, 0, 1, 1),
        lambda: event.record(other),
        other.synchronize,
        other.query,
        context.create_event,
        context.legacy.query,
    ]
    for call in calls:
        with pytest.raises(CudaError, match="LAUNCH_FAILED"):
            call()
    bench.device.reset_primary()
    context.allocate(4)
    context.synchronize()


def test_sticky_error_shows_in_a_wait_that_has_nothing_left(bench):
    wait = bench.context.wait_handle()
    bench.context.fail(CudaError("CUDA_ERROR_ILLEGAL_ADDRESS", "from outside"))
    with pytest.raises(CudaError, match="ILLEGAL_ADDRESS"):
        wait.done()


def test_the_first_sticky_error_stays(bench):
    bench.context.fail(CudaError("CUDA_ERROR_LAUNCH_TIMEOUT"))
    bench.context.fail(CudaError("CUDA_ERROR_ILLEGAL_ADDRESS"))
    with pytest.raises(CudaError, match="LAUNCH_TIMEOUT"):
        bench.context.synchronize()


def test_an_error_of_the_call_is_not_sticky(bench):
    address = bench.context.allocate(64)
    bench.fake.refuse = BackendError("no", call="fakeFill")
    with pytest.raises(CudaError, match="UNKNOWN"):
        bench.context.legacy.fill(address, 0, 1, 1)
    bench.context.legacy.fill(address, 0, 1, 1)
    bench.context.synchronize()


def test_device_loss_is_sticky(bench):
    address = bench.context.allocate(64)
    stream = bench.context.create_stream()
    stream.fill(address, 0, 1, 1)
    bench.fake.refuse = DeviceLost("unplugged")
    with pytest.raises(CudaError, match="LAUNCH_FAILED"):
        stream.host_call(lambda: None)
    with pytest.raises(CudaError, match="LAUNCH_FAILED"):
        bench.context.check()


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (OutOfMemory("x"), "CUDA_ERROR_OUT_OF_MEMORY"),
        (LaunchError("x"), "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
        (DeviceLost("x"), "CUDA_ERROR_LAUNCH_FAILED"),
        (BackendError("x"), "CUDA_ERROR_UNKNOWN"),
    ],
)
def test_backend_errors_in_cuda_terms(error, name):
    assert from_backend(error).name == name


def test_limits(bench):
    context = bench.context
    assert context.limit(0) == 1024 and context.limit(1) == 1 << 20
    context.set_limit(0, 4096)
    assert context.limit(0) == 4096
    context.set_limit(5, 1000)
    assert context.limit(5) == 128
    for call in (lambda: context.limit(0x20), lambda: context.set_limit(0x20, 1)):
        with pytest.raises(CudaError, match="UNSUPPORTED_LIMIT"):
            call()


def test_closing_the_driver_closes_everything_once(bench):
    context = bench.device.create_context()
    context.load_module(".version 8.0\n.target sm_75\n.address_size 64\n.global .u32 g;\n")
    streams = [context.create_stream(), context.legacy, bench.context.per_thread(1)]
    address = context.allocate(64)
    for stream in streams:
        stream.fill(address, 1, 1, 64)
    event = bench.context.create_event()
    event.record()
    bench.driver.close()
    bench.driver.close()
    assert all(q.closed == 1 for q in bench.fake.queues)
    assert all(m.closed == 1 for m in bench.fake.modules)
    assert bench.fake.closed == 1
    assert bench.window.live == {}
    assert not [entry for entry in bench.fake.log if entry[0] == "closed with work in it"]
    assert bench.fake.log[-1][0] == "close device"
    del streams, event
    gc.collect()
    assert all(m.closed == 1 for m in bench.fake.markers)


def test_retaining_while_the_last_release_is_under_way(bench):
    context = bench.context
    context.legacy.fill(context.allocate(64), 1, 1, 64)
    bench.fake.hold()
    context.legacy.fill(context.allocate(64), 1, 1, 64)
    queue = context.legacy._queue
    bench.device.release_primary_wait()
    assert bench.device.primary_state() == (0, False)
    timer = threading.Timer(0.05, bench.fake.release)
    timer.start()
    assert bench.device.retain_primary() is context
    timer.join()
    assert queue.closed == 1 and bench.window.live == {} and context.active
    context.allocate(64)


def test_closing_while_a_destruction_is_under_way(bench):
    context = bench.device.create_context()
    bench.fake.hold()
    context.legacy.fill(context.allocate(64), 1, 1, 64)
    context.destroy_wait()
    bench.fake.release()
    bench.driver.close()
    assert bench.window.live == {} and all(q.closed == 1 for q in bench.fake.queues)
