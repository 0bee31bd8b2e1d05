"""Finding drivers, and what is said of those and of devices that cannot be used."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from zluda_opencl import describe, icd
from zluda_opencl.backend import OpenCLBackend
from zluda_opencl.query import Ask, Device

from zluda.backend.info import DeviceInfo, DeviceKind, Unusable

INTEL = icd._intel_cpu_runtime()

PROBE = """
import json
from zluda_opencl.backend import OpenCLBackend
report = OpenCLBackend().probe()
print(json.dumps([[d.name for d in report.devices], [u.model_dump() for u in report.unusable]]))
"""


def probe_elsewhere(**variables: str) -> tuple[list[str], list[dict[str, str]]]:
    """Devices and unusable entries in a fresh process, which has no variables about OpenCL but these."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OCL_", "OPENCL_", "LD_", "CL_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROBE], env=clean | variables, capture_output=True, text=True, timeout=60, check=True
    )
    devices, unusable = json.loads(done.stdout)
    return devices, unusable


def test_intels_cpu_runtime_is_found_without_any_variable() -> None:
    devices, unusable = probe_elsewhere()
    assert len(devices) == 1 and "Intel" in devices[0]
    assert unusable == []


@pytest.mark.parametrize("how", ["library", "icd", "directory", "OCL_ICD_FILENAMES"])
def test_a_driver_named_twice_gives_its_devices_once(tmp_path: Path, how: str) -> None:
    link = tmp_path / "libcpu.so"
    link.symlink_to(str(INTEL))
    (tmp_path / "cpu.icd").write_text(f"{link}\n")
    value = {"library": str(link), "icd": f"{tmp_path}/cpu.icd", "directory": str(tmp_path)}
    variables = {"OCL_ICD_FILENAMES": str(link)} if how == "OCL_ICD_FILENAMES" else {"OCL_ICD_VENDORS": value[how]}
    devices, unusable = probe_elsewhere(**variables)
    assert len(devices) == 1
    assert unusable == []


def test_a_driver_that_does_not_load_is_told_about_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "gone.icd").write_text("libgone_with_the_wind.so\n")
    (tmp_path / "junk.icd").write_text(f"{tmp_path}/junk.so\n")
    (tmp_path / "junk.so").write_text("this is no library")
    devices, unusable = probe_elsewhere(OCL_ICD_VENDORS=str(tmp_path))
    assert len(devices) == 1
    gone, junk = unusable
    assert "libgone_with_the_wind.so" in gone["what"] and "cannot open shared object file" in gone["why"]
    assert str(tmp_path / "gone.icd") in gone["remedy"]
    assert "junk.so" in junk["what"] and "does not load" in junk["why"]


def names(**environment: str) -> list[str]:
    return [driver.library for driver in icd.find_drivers(environment)]


def test_where_drivers_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix, system = tmp_path / "venv", tmp_path / "vendors"
    (prefix / "etc/OpenCL/vendors").mkdir(parents=True)
    (prefix / "lib").mkdir()
    system.mkdir()
    (prefix / "lib/libpocl.so").touch()
    (prefix / "etc/OpenCL/vendors/pocl.icd").write_text(f"{prefix}/lib/libpocl.so\n")
    (prefix / "etc/OpenCL/vendors/broken.icd").write_text("/opt/build/machine/libintelocl.so\n")
    (system / "gpu.icd").write_text("libgpu.so\nsecond line\n")
    (system / "empty.icd").write_text("\n")
    (system / "other.txt").write_text("libother.so\n")
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(icd, "SYSTEM_VENDORS", str(system))
    monkeypatch.setattr(icd, "INTEL_CPU_DISTRIBUTION", "no-such-distribution")
    pocl, intel = f"{prefix}/lib/libpocl.so", f"{prefix}/lib/libintelocl.so"

    assert names() == ["libgpu.so", pocl]
    Path(intel).touch()
    assert names() == ["libgpu.so", pocl, intel]
    assert names(OCL_ICD_VENDORS="/x/liby.so") == ["/x/liby.so", pocl, intel]
    assert names(OCL_ICD_VENDORS="gpu.icd") == ["libgpu.so", pocl, intel]
    assert names(OCL_ICD_VENDORS=str(prefix / "etc/OpenCL/vendors/pocl.icd")) == [pocl, intel]
    assert names(OCL_ICD_VENDORS=str(system)) == ["libgpu.so", pocl, intel]
    assert names(OPENCL_VENDOR_PATH=str(tmp_path)) == [pocl, intel]
    assert names(OCL_ICD_FILENAMES="/a/liba.so:libb.so") == ["libgpu.so", "/a/liba.so", "libb.so", pocl, intel]
    assert names(OCL_ICD_FILENAMES=intel) == ["libgpu.so", intel, pocl]


def test_the_users_variables_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", "mine")
    monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)
    with icd.offered([icd.Driver("/a/liba.so", "test")]):
        directory = Path(os.environ["OCL_ICD_VENDORS"])
        assert [file.read_text() for file in directory.glob("*.icd")] == ["/a/liba.so\n"]
    assert os.environ["OCL_ICD_VENDORS"] == "mine"
    assert "OCL_ICD_FILENAMES" not in os.environ
    assert not directory.exists()


def test_without_any_driver_the_remedy_is_named() -> None:
    code = "import sys; sys.prefix = '/nowhere'\nfrom zluda_opencl import icd\nicd.INTEL_CPU_DISTRIBUTION = 'nothing'\n"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OCL_")} | {"OPENCL_VENDOR_PATH": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", code + PROBE], env=clean, capture_output=True, text=True, timeout=60, check=True
    )
    devices, unusable = json.loads(done.stdout)
    assert devices == []
    assert [entry["what"] for entry in unusable] == ["OpenCL"]
    assert "no OpenCL driver" in unusable[0]["why"]
    assert "pip install 'zluda-opencl[cpu]'" in unusable[0]["remedy"]


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


ANSWERS = {
    Ask.NAME: b"Fake GPU \0",
    Ask.VENDOR: b"Fake\0",
    Ask.DRIVER_VERSION: b"1.2\0",
    Ask.AVAILABLE: u32(1),
    Ask.COMPILER_AVAILABLE: u32(1),
    Ask.ADDRESS_BITS: u32(64),
    Ask.ENDIAN_LITTLE: u32(1),
    Ask.EXTENSIONS: b"cl_khr_fp16 cl_khr_subgroup_ballot\0",
    Ask.TYPE: u64(4),
    Ask.GLOBAL_MEM_SIZE: u64(1 << 30),
    Ask.MAX_WORK_GROUP_SIZE: u64(256),
    Ask.MAX_WORK_ITEM_SIZES: u64(256, 128, 64),
    Ask.LOCAL_MEM_SIZE: u64(65536),
    Ask.MAX_PARAMETER_SIZE: u64(2048),
    Ask.MAX_COMPUTE_UNITS: u32(10),
    Ask.MAX_CLOCK_FREQUENCY: u32(1500),
    Ask.GLOBAL_MEM_CACHE_SIZE: u64(1 << 20),
    Ask.PROFILING_TIMER_RESOLUTION: u64(80),
    Ask.IL_VERSION: b"SPIR-V_1.0 SPIR-V_1.5 SPIR-V_1.4\0",
    Ask.DEVICE_MEM_CAPABILITIES_INTEL: u64(1),
    Ask.SUB_GROUP_SIZES_INTEL: u64(16, 32),
}


class FakeDevice(Device):
    """A device with made-up answers."""

    def __init__(self, changes: dict[Ask, bytes]) -> None:
        self.handle = 1
        self.platform = SimpleNamespace(name="Fake OpenCL", version="OpenCL 3.0")
        self.answers = ANSWERS | changes

    def raw(self, parameter: Ask) -> bytes:
        return self.answers.get(parameter, b"")


def describing(changes: dict[Ask, bytes], index: int = 0) -> DeviceInfo | Unusable:
    return describe.describe(FakeDevice(changes), index)


def test_a_usable_device() -> None:
    info = describing({Ask.PCI_BUS_INFO_KHR: struct.pack("<4I", 0, 3, 0, 1), Ask.UUID_KHR: bytes(range(16))})
    assert info.name == "Fake GPU"
    assert info.kind is DeviceKind.DISCRETE_GPU
    assert str(info.pci) == "0000:03:00.1"
    assert info.uuid == bytes(range(16))
    assert info.target.features == (
        "fp16",
        "spirv-1.0",
        "spirv-1.4",
        "spirv-1.5",
        "subgroup-ballot",
        "subgroup-size-32",
    )
    assert info.limits.max_block_dim == (256, 128, 64)
    assert info.limits.clock_khz == 1_500_000
    assert {"fp16", "subgroups.size32"} <= info.capabilities
    # No shuffles, no doubles, no system memory: not claimed.
    assert not {"warp", "fp64", "memory.system", "atomics.int64"} & info.capabilities


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({Ask.AVAILABLE: u32(0)}, "not available"),
        ({Ask.ADDRESS_BITS: u32(32)}, "32 bits"),
        ({Ask.ENDIAN_LITTLE: u32(0)}, "big-endian"),
        ({Ask.COMPILER_AVAILABLE: u32(0)}, "no compiler"),
        ({Ask.IL_VERSION: b"\0"}, "takes no SPIR-V"),
        ({Ask.IL_VERSION: b"PTX_8.0 odd\0"}, "takes no SPIR-V"),
        ({Ask.IL_VERSION: b"SPIR-V_1.0 SPIR-V_1.2\0"}, "SPIR-V up to 1.2; 1.4 is needed"),
        ({Ask.DEVICE_MEM_CAPABILITIES_INTEL: u64(0)}, "neither unified shared memory"),
    ],
)
def test_why_a_device_is_unusable(changes: dict[Ask, bytes], why: str) -> None:
    entry = describing(changes)
    assert isinstance(entry, Unusable)
    assert entry.what == "OpenCL device Fake GPU (Fake OpenCL, OpenCL 3.0)"
    assert why in entry.why
    assert entry.remedy


def test_pocl_gets_advice_of_its_own() -> None:
    device = FakeDevice({Ask.IL_VERSION: b"\0"})
    device.platform.name = "Portable Computing Language"
    entry = describe.describe(device, 0)
    assert isinstance(entry, Unusable) and "PoCL 4 or newer" in entry.remedy


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({Ask.TYPE: u64(2)}, DeviceKind.CPU),
        ({Ask.TYPE: u64(4), Ask.HOST_UNIFIED_MEMORY: u32(1)}, DeviceKind.INTEGRATED_GPU),
        ({Ask.TYPE: u64(8)}, DeviceKind.ACCELERATOR),
    ],
)
def test_kinds(changes: dict[Ask, bytes], kind: DeviceKind) -> None:
    assert describing(changes).kind is kind


def test_devices_without_a_uuid_get_one_that_is_stable_and_their_own() -> None:
    first, again, second = (describing({}, index).uuid for index in (0, 0, 1))
    assert first == again != second


def test_the_fpga_emulator_is_a_simulated_device() -> None:
    assert describing({Ask.NAME: b"Intel(R) FPGA Emulation Device\0"}).simulated


def test_a_device_answers_what_pyopencl_reads(backend: OpenCLBackend) -> None:
    """pyopencl as the oracle of our own reading."""
    import pyopencl as cl

    ours, info = backend._device(backend.probe().devices[0].index)
    theirs = cl.Device.from_int_ptr(ours.handle)
    assert info.name == theirs.name.strip()
    assert info.total_memory == theirs.global_mem_size
    assert info.limits.max_threads_per_block == theirs.max_work_group_size
    assert list(info.limits.max_block_dim) == list(theirs.max_work_item_sizes)
    assert info.limits.shared_memory_per_block == theirs.local_mem_size
    assert ours.words(Ask.EXTENSIONS) == set(theirs.extensions.split())
    for parameter in (Ask.SINGLE_FP_CONFIG, Ask.DOUBLE_FP_CONFIG, Ask.TYPE, Ask.MAX_PARAMETER_SIZE):
        assert ours.number(parameter) == theirs.get_info(int(parameter)), parameter.name


def test_a_warm_start_does_not_import_pyopencl() -> None:
    code = """
import sys
from zluda_opencl.backend import OpenCLBackend
backend = OpenCLBackend()
device = backend.open(backend.probe().devices[0].index)
device.create_queue().synchronize()
device.close()
assert not {"pyopencl", "numpy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def test_an_index_that_is_no_device(backend: OpenCLBackend) -> None:
    from zluda.backend.seam import BackendError

    with pytest.raises(BackendError, match="no usable device 99"):
        backend.open(99)


def test_opening_and_closing_many_times_leaks_no_memory_or_thread(backend: OpenCLBackend) -> None:
    import threading

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def once() -> None:
        device = backend.open(0)
        queue = device.create_queue()
        device.allocate(1 << 20)
        queue.host_call(lambda: None)
        queue.record()
        device.close()
        device.close()

    for _ in range(5):
        once()
    threads, before = threading.active_count(), resident()
    for _ in range(30):
        once()
    assert threading.active_count() == threads
    assert resident() - before < 16 << 20


def test_the_build_identity_names_device_and_driver(backend: OpenCLBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    info = backend.probe().devices[0]
    identity = backend.build_identity(info.index)
    assert info.name in identity and info.driver_version in identity and info.uuid.hex() in identity
    monkeypatch.setenv("CL_CONFIG_CPU_TARGET_ARCH", "skx")
    assert backend.build_identity(info.index) != identity
