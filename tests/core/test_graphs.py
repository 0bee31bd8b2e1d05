"""Executable graphs: steps enqueued again and again, in the order given."""

import pytest
from core_fake_backend import kernel_info, ptx

from zluda.core import CudaError
from zluda.core.graph import CopyStep, ExecutableGraph, FillStep, KernelStep, NoStep, RecordStep, WaitStep


@pytest.fixture
def memory(any_bench):
    bench = any_bench
    bench.address = bench.context.allocate(4096)
    return bench


def test_steps_run_in_order_and_again(memory):
    context, address = memory.context, memory.address
    graph = ExecutableGraph(
        context,
        [
            FillStep(address, 16, 7, 1, 16, 1),
            NoStep(),
            CopyStep(address + 64, 16, 1, address, 16, 1, 16, 1, 1),
            FillStep(address, 16, 0x0102, 2, 2, 3),
        ],
    )
    assert len(graph) == 4
    for _ in range(2):
        context.legacy.fill(address, 0, 1, 256)
        graph.launch(context.legacy)
        context.synchronize()
        assert bytes(context.read(address + 64, 16)) == bytes([7]) * 16
        # Two words of two bytes a row, rows 16 bytes apart; the rest of the first row is the first fill's.
        assert bytes(context.read(address, 16)) == bytes([2, 1, 2, 1]) + bytes([7]) * 12
        assert bytes(context.read(address + 16, 6)) == bytes([2, 1, 2, 1, 0, 0])
        assert bytes(context.read(address + 48, 4)) == bytes(4)


def test_a_copy_of_three_dimensions(memory):
    context, address = memory.context, memory.address
    context.write(address, bytes(range(128)))
    # 2 slices of 2 rows of 4 bytes: from rows of 8 and slices of 32 bytes to packed ones.
    step = CopyStep(address + 1024, 4, 2, address, 8, 4, 4, 2, 2)
    ExecutableGraph(context, [step]).launch(context.legacy)
    expected = [z * 32 + y * 8 + x for z in range(2) for y in range(2) for x in range(4)]
    assert list(context.read(address + 1024, 16)) == expected


def test_a_kernel_takes_its_arguments_along(bench):
    bench.compiler.kernels["k"] = kernel_info("k", [8])
    function = bench.context.load_module(ptx("k(.param .u64 x)")).function("k")
    graph = ExecutableGraph(bench.context, [KernelStep(function, (2, 3, 4), (5, 6, 7), 0, bytes(range(8)))])
    graph.launch(bench.context.legacy)
    bench.context.synchronize()
    (launch,) = bench.fake.launches
    assert launch.arguments == bytes(range(8))
    assert (tuple(launch.grid), tuple(launch.block)) == ((2, 3, 4), (5, 6, 7))


def test_events_are_recorded_and_waited_for_at_each_launch(bench):
    context = bench.context
    event = context.create_event()
    address = context.allocate(16)
    fill = FillStep(address, 16, 1, 1, 16, 1)
    first, second = context.create_stream(1), context.create_stream(1)
    records = ExecutableGraph(context, [fill, RecordStep(event)])
    waits = ExecutableGraph(context, [WaitStep(event), fill])
    bench.fake.hold()
    records.launch(first)
    waits.launch(second)
    assert not event.query()
    assert bench.fake.queues[1].calls[0] == "wait q0"
    bench.fake.release()
    context.synchronize()
    assert event.query()


def test_parts_and_replacements(memory):
    context, address = memory.context, memory.address
    fills = [FillStep(address + i, 1, i + 1, 1, 1, 1) for i in range(4)]
    graph = ExecutableGraph(context, fills)
    context.legacy.fill(address, 0, 1, 4)
    graph.launch(context.legacy, 1, 2)
    assert bytes(context.read(address, 4)) == bytes([0, 2, 3, 0])
    graph.replace(0, FillStep(address, 1, 9, 1, 1, 1))
    graph.replace(1, NoStep())
    context.legacy.fill(address, 0, 1, 4)
    graph.launch(context.legacy)
    assert bytes(context.read(address, 4)) == bytes([9, 0, 3, 4])
    with pytest.raises(CudaError, match="CUDA_ERROR_INVALID_VALUE"):
        graph.replace(4, NoStep())
    graph.replace_all([fills[3]])
    context.legacy.fill(address, 0, 1, 4)
    graph.launch(context.legacy)
    assert bytes(context.read(address, 4)) == bytes([0, 0, 0, 4])


def test_launches_of_one_graph_keep_their_order_across_streams(bench):
    context = bench.context
    address = context.allocate(16)
    graph = ExecutableGraph(context, [FillStep(address, 16, 1, 1, 16, 1)])
    first, second = context.create_stream(1), context.create_stream(1)
    bench.fake.hold()
    graph.launch(first)
    graph.launch(second)
    assert bench.fake.queues[1].calls[:2] == ["wait q0", "fill"]
    first.destroy()
    graph.launch(second)
    assert bench.fake.queues[1].calls.count("wait q0") == 1
    bench.fake.release()
    context.synchronize()


def test_a_stream_of_another_context(bench):
    """The steps run in their own context, behind the stream's work and before what follows in it."""
    other = bench.device.create_context()
    address = bench.context.allocate(16)
    graph = ExecutableGraph(bench.context, [FillStep(address, 16, 1, 1, 16, 1)])
    foreign = other.create_stream(1)
    bench.fake.hold()
    foreign.fill(other.allocate(16), 2, 1, 16)
    graph.launch(foreign)
    foreign.fill(address, 3, 1, 1)
    calls = {queue.name: [call for call in queue.calls if call != "flush"] for queue in bench.fake.queues}
    assert calls["q1"][:2] == ["wait q0", "fill"]
    assert calls["q0"] == ["fill", "record", "wait q1", "fill"]
    bench.fake.release()
    other.synchronize()
    assert bytes(bench.fake.bytes_at(address, 2)) == bytes([3, 1])
    graph.close()
    graph.close()
    other.destroy()


def test_a_destroyed_event_is_an_error_of_the_launch(bench):
    event = bench.context.create_event()
    graph = ExecutableGraph(bench.context, [RecordStep(event)])
    event.destroy()
    with pytest.raises(CudaError, match="CUDA_ERROR_INVALID_HANDLE"):
        graph.launch(bench.context.legacy)
