"""Launches: what is checked, what reaches the backend."""

import ctypes
import struct
from fractions import Fraction

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


SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}


@pytest.fixture
def pack(bench):
    """Packs one argument for a parameter declared so."""

    def made(declared, value, size=0):
        kind = declared.split("[")[0].split()[-1].split(".")[-1]
        bench.compiler.kernels["k"] = kernel_info("k", [size or SIZES[kind[1:]]])
        text = ptx(f"k(.param {declared if '[' in declared else declared + ' p'})")
        return bench.context.load_module(text).function("k").pack([value])

    return made


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (".f32", 3, struct.pack("<f", 3)),
        (".f32", True, struct.pack("<f", 1)),
        (".f32", np.int64(-2), struct.pack("<f", -2)),
        (".f32", np.float64(0.1), np.float32(0.1).tobytes()),
        (".f32", Fraction(1, 4), struct.pack("<f", 0.25)),
        (".f64", 3, struct.pack("<d", 3)),
        (".f64", np.float32(0.1), np.float64(np.float32(0.1)).tobytes()),
        (".f16", 1.5, struct.pack("<e", 1.5)),
        (".u32", -1, b"\xff" * 4),
        (".u32", 2**32 - 1, b"\xff" * 4),
        (".u32", 7.0, struct.pack("<I", 7)),
        (".u8", np.int64(200), b"\xc8"),
        (".s16", -(2**15), b"\x00\x80"),
        (".u64", np.array(5), struct.pack("<Q", 5)),
        (".u8", np.True_, b"\x01"),
        (".b32", 3, struct.pack("<I", 3)),
        (".b32", -1, b"\xff" * 4),
        (".b32", np.float32(3), struct.pack("<f", 3)),
        (".b32", 1.5, struct.pack("<f", 1.5)),
        (".b64", np.float64(3), struct.pack("<d", 3)),
        (".b64", np.int64(-3), struct.pack("<q", -3)),
        (".b16", np.float16(1), struct.pack("<e", 1)),
        (".f32", b"abcd", b"abcd"),
        (".u32", ctypes.c_int(-2), struct.pack("<i", -2)),
    ],
)
def test_pack(pack, declared, value, expected):
    assert pack(declared, value) == expected


def test_pack_structures(pack):
    point = np.array([(1, 2.5)], [("a", "<i4"), ("b", "<f4")])
    for value in (point, point[0], struct.pack("<if", 1, 2.5)):
        assert pack(".align 8 .b8 p[8]", value, 8) == struct.pack("<if", 1, 2.5)


@pytest.mark.parametrize(
    ("declared", "value", "match"),
    [
        (".u32", "3", "argument 0 of k .parameter .u32.: '3' .str. is no integer"),
        (".f32", "3", "argument 0 of k .parameter .f32.: '3' .str. is no real number"),
        (".b64", "3", ".b64"),
        (".u32", 1.5, "1.5 is no integer"),
        (".s32", np.float32(0.5), "0.5 is no integer"),
        (".s64", float("inf"), "inf is no integer"),
        (".f32", None, "no real number"),
        (".f64", 1j, "no real number"),
        (".u64", np.zeros(1), "host memory"),
        (".b16", 1.0, "2 bytes"),
    ],
)
def test_arguments_of_a_wrong_kind(pack, declared, value, match):
    with pytest.raises(TypeError, match=match):
        pack(declared, value)


@pytest.mark.parametrize(
    ("declared", "value", "match"),
    [
        (".u32", 2**32, "4294967296 is out of range, -2147483648 to 4294967295"),
        (".s32", 2**31, "out of range"),
        (".u8", -129, "out of range"),
        (".f32", 1e300, "argument 0"),
        (".b32", 2**32, "argument 0"),
        (".b32", np.int16(1), "4 bytes, not 2"),
        (".b32", np.float64(1), "4 bytes, not 8"),
        (".f32", b"abc", "4 bytes, not 3"),
    ],
)
def test_arguments_out_of_range(pack, declared, value, match):
    with pytest.raises(CudaError, match=match) as caught:
        pack(declared, value)
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"


def test_an_array_is_no_number(pack):
    class Address:
        device_address = 0x1000

    assert pack(".u64", Address()) == struct.pack("<Q", 0x1000)
    with pytest.raises(TypeError, match="by address"):
        pack(".f64", Address())


def test_number_of_arguments(load):
    with pytest.raises(CudaError, match="takes 2 arguments, 1 were given"):
        load(4, 4).pack([1])


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
