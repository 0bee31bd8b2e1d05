"""Launches: what is checked, what reaches the backend."""

import struct

import numpy as np
import pytest
from core_fake_backend import Launch, kernel_info, ptx

from zluda.backend.seam import Dim3, LaunchError
from zluda.core import CudaError


@pytest.fixture
def load(bench):
    def made(*sizes, **options):
        bench.compiler.kernels["k"] = kernel_info("k", sizes, **options)
        return bench.context.load_module(ptx("k", variables=".global .u32 g;")).function("k")

    return made


def last(bench) -> Launch:
    bench.context.synchronize()
    return bench.fake.launches[-1]


def test_arguments_and_dimensions_arrive(bench, load):
    function = load(8, 4)
    function.launch((2, 3, 4), (32, 2, 1), struct.pack("<QI", 5, 6), 100)
    assert last(bench) == Launch("k", Dim3(2, 3, 4), Dim3(32, 2, 1), struct.pack("<QI", 5, 6), 100)


def test_hidden_arguments_follow_the_parameter_block(bench, load):
    function = load(8, 4, hidden=("module", "block"))
    function.launch((1, 1, 1), (8, 4, 2), struct.pack("<QI", 5, 6))
    expected = struct.pack("<QI4xQ4I", 5, 6, function.module.data_address, 8, 4, 2, 0)
    assert last(bench).arguments == expected
    function.launch((1, 1, 1), (4, 4, 2), struct.pack("<QI", 5, 6))
    assert last(bench).arguments[-16:] == struct.pack("<4I", 4, 4, 2, 0)


def test_flat_kernels_get_one_dimension(bench, load):
    function = load(flat=True)
    function.launch((3, 2, 1), (16, 16, 1))
    assert last(bench).block == Dim3(256, 1, 1) and last(bench).grid == Dim3(3, 2, 1)


def test_unknown_hidden_argument(bench, load):
    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
        load(hidden=("printf",)).launch((1, 1, 1), (1, 1, 1))


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        ((0, 1, 1), (1, 1, 1), 0),
        ((1, 0, 1), (1, 1, 1), 0),
        ((1, 1, 1), (1, 1, 0), 0),
        ((-1, 1, 1), (1, 1, 1), 0),
        ((2**31, 1, 1), (1, 1, 1), 0),
        ((1, 65536, 1), (1, 1, 1), 0),
        ((1, 1, 65536), (1, 1, 1), 0),
        ((1, 1, 1), (1025, 1, 1), 0),
        ((1, 1, 1), (1, 1, 65), 0),
        ((1, 1, 1), (64, 32, 1), 0),
        ((1, 1, 1), (1, 1, 1), 49153),
        ((1, 1, 1), (1, 1, 1), -1),
    ],
)
def test_dimensions_and_shared_memory_out_of_range(bench, load, grid, block, shared):
    function = load()
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        function.launch(grid, block, b"", shared)
    assert bench.fake.launches == []


def test_limits_of_the_kernel(bench, load):
    # The fake's compiler allows 512 threads.
    with pytest.raises(CudaError, match="LAUNCH_OUT_OF_RESOURCES"):
        load().launch((1, 1, 1), (513, 1, 1))
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        load(max_threads=128).launch((1, 1, 1), (129, 1, 1))
    function = load(required_block=(16, 2, 1), max_threads=32)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        function.launch((1, 1, 1), (32, 1, 1))
    function.launch((1, 1, 1), (16, 2, 1))


def test_argument_sizes(bench, load):
    function = load(8, 4)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        function.launch((1, 1, 1), (1, 1, 1), bytes(11))
    with pytest.raises(CudaError, match="LAUNCH_OUT_OF_RESOURCES"):
        function.launch((1, 1, 1), (1, 1, 1), bytes(17))
    # A C structure of 12 bytes that is aligned to 8 has 16.
    function.launch((1, 1, 1), (1, 1, 1), bytes(16))
    assert len(last(bench).arguments) == 12


def test_dynamic_shared_memory_is_opted_into(bench, load):
    function = load(static_shared=1024)
    assert function.attribute("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES") == 49152 - 1024
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        function.launch((1, 1, 1), (1, 1, 1), b"", 49152)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        function.set_attribute(8, 65536 - 1023)
    function.set_attribute(8, 65536 - 1024)
    function.launch((1, 1, 1), (1, 1, 1), b"", 65536 - 1024)
    function.set_attribute(8, 100)
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        function.launch((1, 1, 1), (1, 1, 1), b"", 65536 - 1024)


def test_attributes(bench, load):
    function = load(8, static_shared=64, max_threads=96)
    assert function.attribute(0) == 96
    assert load().attribute(0) == 512
    assert function.attribute("CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES") == 64
    assert function.attribute("CU_FUNC_ATTRIBUTE_PTX_VERSION") == 78
    assert function.attribute("CU_FUNC_ATTRIBUTE_BINARY_VERSION") == 80
    assert function.attribute("CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT") == -1
    function.set_attribute(9, 50)
    assert function.attribute(9) == 50
    for call in (
        lambda: function.attribute(99),
        lambda: function.set_attribute(1, 5),
        lambda: function.set_attribute(9, 101),
    ):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            call()


def test_every_function_attribute_has_a_value(load):
    function = load()
    for number in range(18):
        assert isinstance(function.attribute(number), int)


def test_parameters(load):
    function = load(4, 8, 1, 2)
    assert [function.parameter(i) for i in range(4)] == [(0, 4), (8, 8), (16, 1), (18, 2)]
    for index in (-1, 4):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            function.parameter(index)


def test_pack(load):
    function = load(8, 4, 4, 8, 2, 1)
    packed = function.pack([0x1122334455667788, -1, 1.5, 2.5, np.float16(1), True])
    assert packed == struct.pack("<QifdeB", 0x1122334455667788, -1, 1.5, 2.5, 1.0, 1)
    for bad in (
        [1],
        [1, 2**32, 1.0, 1.0, 1, 1],
        [1, 1, 1.0, 1.0, 1.0, 1],
        [1, np.int16(1), 1.0, 1.0, 1, 1],
        [None] * 6,
    ):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            function.pack(bad)


def test_launches_respect_the_stream(bench, load):
    function = load()
    other = bench.device.create_context()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        function.launch((1, 1, 1), (1, 1, 1), stream=other.legacy)
    stream = bench.context.create_stream()
    function.launch((1, 1, 1), (1, 1, 1), stream=stream)
    assert stream._queue.calls == ["launch k"]
    stream.destroy()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        function.launch((1, 1, 1), (1, 1, 1), stream=stream)


def test_refused_launch_is_not_sticky(bench, load):
    function = load()
    function.launch((1, 1, 1), (1, 1, 1))
    bench.fake.refuse = LaunchError("too many registers")
    with pytest.raises(CudaError, match="LAUNCH_OUT_OF_RESOURCES"):
        function.launch((1, 1, 1), (1, 1, 1))
    function.launch((1, 1, 1), (1, 1, 1))
    bench.context.synchronize()


def test_occupancy(load):
    occupancy = load(static_shared=16384, max_threads=1024).occupancy
    # 512 threads (the fake's limit), 2048 to a multiprocessor, 64 KiB of shared memory there.
    assert occupancy.max_active_blocks(512) == 4
    assert occupancy.max_active_blocks(512, 16384) == 2
    assert occupancy.max_active_blocks(513) == 0
    assert load().occupancy.max_active_blocks(1) == 32
    assert load().occupancy.max_active_blocks(48) == 32
    assert load().occupancy.max_active_blocks(96) == 21
    grid, block = load().occupancy.max_potential_block_size()
    assert (grid, block) == (16, 512)
    grid, block = load().occupancy.max_potential_block_size(lambda threads: threads * 128, 256)
    assert block * load().occupancy.max_active_blocks(block, block * 128) == 512 and block <= 256
    assert occupancy.available_dynamic_shared(2, 128) == 16384
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        occupancy.max_active_blocks(0)
