"""The Python API, on the fake backend."""

import gc
import struct

import numpy as np
import pytest
from core_fake_backend import FakeCompiler, FakeWindow, kernel_info, ptx, selection

import zluda
from zluda.core import CudaError, Driver
from zluda.core.gpu import Gpu


@pytest.fixture(params=[True, False], ids=["window", "device"])
def gpu(request):
    window = FakeWindow()
    compiler = FakeCompiler({"k": kernel_info("k", (8, 4, 4))})
    with Gpu(Driver(selection(window, host_reaching=(request.param,)), window, compiler)) as opened:
        opened.window = window
        opened.fake = opened.device.backend.devices[0]
        yield opened


@pytest.mark.parametrize(
    "values",
    [np.arange(12, dtype=np.int16).reshape(3, 4), np.arange(24.0).reshape(2, 3, 4)[:, ::2, 1], [1, 2, 3], 5.0, []],
)
def test_arrays_round_trip(gpu, values):
    array = gpu.array(values)
    expected = np.asarray(values)
    assert array.shape == expected.shape and array.dtype == expected.dtype and array.nbytes == expected.nbytes
    assert (array.numpy() == expected).all()


def test_results_belong_to_the_caller(gpu):
    array = gpu.array([1, 2, 3])
    first = array.numpy()
    first[:] = 0
    assert list(array.numpy()) == [1, 2, 3]


def test_write(gpu):
    array = gpu.empty((2, 2), np.float32)
    array.write([[1, 2], [3, 4]])
    assert (array.numpy() == [[1, 2], [3, 4]]).all()
    with pytest.raises(ValueError, match="shape"):
        array.write([1, 2, 3, 4])


def test_arrays_give_their_memory_back(gpu):
    free, total = gpu.context.memory_info()
    array = gpu.empty(1000)
    assert gpu.context.memory_info()[0] == free - 4000
    del array
    gc.collect()
    gpu.synchronize()
    assert gpu.context.memory_info() == (free, total)


def test_launch(gpu):
    kernel = gpu.load(ptx("k(.param .u64 x, .param .f32 y, .param .u32 z)")).function("k")
    x = gpu.array(np.zeros(4, np.float32))
    kernel.launch(3, (16, 2), x, 1.5, np.int32(-1), shared=64)
    gpu.synchronize()
    (launch,) = gpu.fake.launches
    assert launch.grid == (3, 1, 1) and launch.block == (16, 2, 1) and launch.shared_bytes == 64
    assert launch.arguments == np.uint64(x.device_address).tobytes() + np.float32(1.5).tobytes() + b"\xff" * 4
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        kernel.launch((1, 1, 1, 1), 1, x, 1.5, 1)
    with pytest.raises(CudaError, match="2 were given"):
        kernel.launch(1, 1, x, 1.5)


def test_numbers_take_the_declared_type(gpu):
    kernel = gpu.load(ptx("k(.param .u64 x, .param .f32 factor, .param .u32 n)")).function("k")
    x = gpu.array(np.zeros(4, np.float32))
    kernel.launch(1, 1, x, 3, 10.0)
    gpu.synchronize()
    assert gpu.fake.launches[-1].arguments[8:] == struct.pack("<fi", 3.0, 10)
    with pytest.raises(TypeError, match=r"argument 2 of k \(parameter .u32\): 'ten' \(str\) is no integer"):
        kernel.launch(1, 1, x, 3, "ten")


def test_close_releases_everything(gpu):
    array = gpu.array([1, 2])
    gpu.load(ptx("k", variables=".global .u32 g;")).function("k")
    gpu.close()
    gpu.close()
    assert gpu.window.live == {} and gpu.fake.memory_blocks == {} and gpu.fake.closed == 1
    del array
    with pytest.raises(CudaError):
        gpu.synchronize()


def test_files(gpu, tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(ptx("k"))
    assert gpu.load(path).names == ("k",)


def test_unknown_backend_is_an_error():
    with pytest.raises(zluda.SelectionError, match="nonesuch"):
        zluda.open(backend="nonesuch")


def test_public_names():
    assert set(zluda.__all__) <= set(dir(zluda))
    for name in zluda.__all__:
        assert getattr(zluda, name) is not None
    with pytest.raises(AttributeError):
        _ = zluda.nothing
