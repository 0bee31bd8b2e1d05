"""Devices: ordinals, attributes, what the environment may change."""

import pytest
from core_fake_backend import FakeCompiler, FakeWindow, selection

from zluda.core import CudaError, Driver
from zluda.core.device import compute_capability
from zluda.spec.attributes import device_attributes, function_attributes, numbers
from zluda.spec.errors import by_code, errors


def test_ordinals():
    window = FakeWindow()
    driver = Driver(selection(window, host_reaching=(True, False)), window, FakeCompiler())
    assert [d.name for d in driver.devices] == ["Fake device 0", "Fake device 1"]
    assert driver.device(1).ordinal == 1
    for ordinal in (-1, 2):
        with pytest.raises(CudaError, match="INVALID_DEVICE"):
            driver.device(ordinal)
    assert driver.version == 13050
    driver.close()


def test_no_device():
    window = FakeWindow()
    with pytest.raises(CudaError, match="NO_DEVICE"):
        Driver(selection(window, host_reaching=()), window, FakeCompiler()).device(0)


def test_attributes(bench):
    attribute = bench.device.attribute
    assert attribute("CU_DEVICE_ATTRIBUTE_WARP_SIZE") == attribute(10) == 32
    # The fake allows 4096 threads and 64 KiB; CUDA's own limits are the smaller ones.
    assert attribute("CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK") == 1024
    assert attribute("CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z") == 64
    assert attribute("CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X") == 2**31 - 1
    assert attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK") == 49152
    assert attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") == 65536
    assert attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT") == 4
    assert attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR") == 8
    assert attribute("CU_DEVICE_ATTRIBUTE_INTEGRATED") == 1
    for unknown in (0, 10_000, "CU_DEVICE_ATTRIBUTE_NONE"):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            attribute(unknown)


def test_every_attribute_has_a_value_and_a_reason(bench):
    for number, spec in device_attributes().items():
        assert isinstance(bench.device.attribute(number), int)
        assert spec.value is None or spec.why
    assert all(spec.value is None or spec.why for spec in function_attributes().values())
    assert numbers()["CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK"] == 8


def test_compute_capability_from_the_environment(monkeypatch):
    assert compute_capability(None) == compute_capability("") == (8, 0)
    assert compute_capability("12.1") == (12, 1)
    for bad in ("8", "8.x", "sm_80"):
        with pytest.raises(ValueError, match="ZLUDA_COMPUTE_CAPABILITY"):
            compute_capability(bad)
    monkeypatch.setenv("ZLUDA_COMPUTE_CAPABILITY", "7.5")
    window = FakeWindow()
    driver = Driver(selection(window), window, FakeCompiler())
    assert driver.device(0).compute_capability == (7, 5)


def test_errors_against_cuda_bindings():
    driver = pytest.importorskip("cuda.bindings.driver")
    ours = {name: spec.code for name, spec in errors().items()}
    theirs = {result.name: int(result) for result in driver.CUresult}
    assert {name: code for name, code in theirs.items() if name in ours} == theirs
    assert by_code()[700].sticky and not by_code()[600].sticky
    assert len(by_code()) == len(errors())


def test_attribute_numbers_against_cuda_bindings():
    driver = pytest.importorskip("cuda.bindings.driver")
    for enum in (driver.CUdevice_attribute, driver.CUfunction_attribute):
        theirs = {a.name: int(a) for a in enum if not a.name.endswith("_MAX")}
        assert {name: numbers().get(name) for name in theirs} == theirs
