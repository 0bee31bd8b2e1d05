"""What an OpenCL device is in the seam's terms: usable, with limits and capabilities, or not, with the reason."""

from __future__ import annotations

import hashlib
import struct

from zluda.backend.info import DeviceInfo, DeviceKind, DeviceLimits, PciAddress, TargetInfo, Unusable
from zluda_opencl.api import DEVICE_TYPE_CPU, DEVICE_TYPE_GPU
from zluda_opencl.query import Ask, Device

BACKEND = "opencl"
SPIRV_NEEDED = (1, 4)
"""The version that the compiler emits."""

_ADD_GLOBAL_AND_LOCAL = 1 << 1 | 1 << 17
_CLOCK_SCOPE_DEVICE = 1 << 0  # cl_khr_kernel_clock
_SYSTEM_SVM = 1 << 2
_ANY_SVM = 1 << 0 | 1 << 1 | 1 << 2


def describe(device: Device, index: int) -> DeviceInfo | Unusable:
    """The device as the seam lists it."""
    name = device.text(Ask.NAME)
    if refusal := _refusal(device):
        what = f"OpenCL device {name} ({device.platform.name}, {device.platform.version})"
        return Unusable(what=what, why=refusal[0], remedy=refusal[1])

    extensions = device.words(Ask.EXTENSIONS)
    subgroup_sizes = device.sizes(Ask.SUB_GROUP_SIZES_INTEL)
    return DeviceInfo(
        backend=BACKEND,
        index=index,
        name=name,
        vendor=device.text(Ask.VENDOR),
        kind=_kind(device),
        uuid=_uuid(device, index),
        pci=_pci(device),
        total_memory=device.number(Ask.GLOBAL_MEM_SIZE),
        driver_version=device.text(Ask.DRIVER_VERSION),
        target=TargetInfo(name="spirv64", features=_features(device, extensions, subgroup_sizes)),
        limits=_limits(device),
        capabilities=_capabilities(device, extensions, subgroup_sizes),
        # oneAPI's FPGA emulator runs on the CPU, whose own device is the better one.
        simulated="FPGA Emulation" in name,
    )


def has_usm(device: Device) -> bool:
    """Whether the device allocates device memory with plain addresses (cl_intel_unified_shared_memory)."""
    return bool(device.number(Ask.DEVICE_MEM_CAPABILITIES_INTEL) & 1)


def has_system_svm(device: Device) -> bool:
    """Whether kernels reach any host address."""
    return bool(device.number(Ask.SVM_CAPABILITIES) & _SYSTEM_SVM)


def spirv_versions(device: Device) -> list[tuple[int, int]]:
    """The SPIR-V versions that the device takes, ascending."""
    versions = []
    for word in device.words(Ask.IL_VERSION):
        name, _, version = word.rpartition("_")
        if name == "SPIR-V" and version.count(".") == 1:
            major, minor = version.split(".")
            versions.append((int(major), int(minor)))
    return sorted(versions)


def _refusal(device: Device) -> tuple[str, str] | None:
    if not device.number(Ask.AVAILABLE):
        return "the driver says that it is not available", "see whether another process has it, or restart its driver"
    if (bits := device.number(Ask.ADDRESS_BITS)) != 64:
        return f"its addresses have {bits} bits; CUDA programs need 64", "use a 64-bit device"
    if not device.number(Ask.ENDIAN_LITTLE):
        return "it is big-endian", "use a little-endian device"
    if not device.number(Ask.COMPILER_AVAILABLE):
        return "its driver has no compiler", "install the driver's compiler package"
    versions = spirv_versions(device)
    if not versions:
        return "its driver takes no SPIR-V", _spirv_remedy(device)
    if versions[-1] < SPIRV_NEEDED:
        had, needed = (".".join(map(str, version)) for version in (versions[-1], SPIRV_NEEDED))
        return f"its driver takes SPIR-V up to {had}; {needed} is needed", "update the driver"
    if not has_usm(device) and not device.number(Ask.SVM_CAPABILITIES) & _ANY_SVM:
        return (
            "it has neither unified shared memory (cl_intel_unified_shared_memory) nor shared virtual memory, so its "
            "memory has no addresses",
            "update the driver, or use another device",
        )
    return None


def _spirv_remedy(device: Device) -> str:
    if "portable computing language" in device.platform.name.lower():
        return (
            "use PoCL 4 or newer, built with the LLVM SPIR-V translator; "
            "for an x86-64 CPU: pip install 'zluda-opencl[cpu]'"
        )
    return "update the driver to one with cl_khr_il_program or OpenCL 2.1 and SPIR-V"


def _kind(device: Device) -> DeviceKind:
    kind = device.number(Ask.TYPE)
    if kind & DEVICE_TYPE_CPU:
        return DeviceKind.CPU
    if kind & DEVICE_TYPE_GPU:
        return DeviceKind.INTEGRATED_GPU if device.number(Ask.HOST_UNIFIED_MEMORY) else DeviceKind.DISCRETE_GPU
    return DeviceKind.ACCELERATOR


def _uuid(device: Device, index: int) -> bytes:
    uuid = device.raw(Ask.UUID_KHR)
    if len(uuid) == 16 and any(uuid):
        return uuid
    # Stable between runs; the index keeps two equal devices apart.
    key = "\0".join([device.platform.name, device.text(Ask.VENDOR), device.text(Ask.NAME), str(_pci(device) or index)])
    return hashlib.sha256(key.encode()).digest()[:16]


def _pci(device: Device) -> PciAddress | None:
    data = device.raw(Ask.PCI_BUS_INFO_KHR)
    if len(data) != 16:
        return None
    domain, bus, number, function = struct.unpack("=4I", data)
    return PciAddress(domain=domain, bus=bus, device=number, function=function)


def _limits(device: Device) -> DeviceLimits:
    sizes = (*device.sizes(Ask.MAX_WORK_ITEM_SIZES), 1, 1)
    return DeviceLimits(
        max_threads_per_block=device.number(Ask.MAX_WORK_GROUP_SIZE),
        max_block_dim=(sizes[0], sizes[1], sizes[2]),
        shared_memory_per_block=device.number(Ask.LOCAL_MEM_SIZE),
        max_parameter_bytes=device.number(Ask.MAX_PARAMETER_SIZE),
        multiprocessors=device.number(Ask.MAX_COMPUTE_UNITS),
        clock_khz=device.number(Ask.MAX_CLOCK_FREQUENCY) * 1000,
        l2_cache_bytes=device.number(Ask.GLOBAL_MEM_CACHE_SIZE),
        address_bits=device.number(Ask.ADDRESS_BITS),
    )


def _features(device: Device, extensions: frozenset[str], subgroup_sizes: tuple[int, ...]) -> tuple[str, ...]:
    has = {
        "fp16": "cl_khr_fp16" in extensions,
        "fp64": device.number(Ask.DOUBLE_FP_CONFIG) != 0,
        "int64-atomics": _int64_atomics(extensions),
        "float-atomics": _adds(device, Ask.SINGLE_FP_ATOMIC_CAPABILITIES_EXT),
        "float64-atomics": _adds(device, Ask.DOUBLE_FP_ATOMIC_CAPABILITIES_EXT),
        "kernel-clock": "cl_khr_kernel_clock" in extensions
        and bool(device.number(Ask.KERNEL_CLOCK_CAPABILITIES_KHR) & _CLOCK_SCOPE_DEVICE),
        "bit-instructions": "cl_khr_extended_bit_ops" in extensions,
        "subgroups": _subgroups(device, extensions),
        "subgroup-size-32": 32 in subgroup_sizes,
        "subgroup-ballot": "cl_khr_subgroup_ballot" in extensions,
        "subgroup-shuffle": "cl_khr_subgroup_shuffle" in extensions,
    }
    versions = [f"spirv-{major}.{minor}" for major, minor in spirv_versions(device)]
    return tuple(sorted([name for name, held in has.items() if held] + versions))


def _capabilities(device: Device, extensions: frozenset[str], subgroup_sizes: tuple[int, ...]) -> frozenset[str]:
    size32 = 32 in subgroup_sizes
    has = {
        "memory.system": has_system_svm(device),
        "memory.usm": True,  # with SVM alone, every launch lists all blocks
        "fp16": "cl_khr_fp16" in extensions,
        "fp64": device.number(Ask.DOUBLE_FP_CONFIG) != 0,
        "atomics.int64": _int64_atomics(extensions),
        "atomics.float32.add": _adds(device, Ask.SINGLE_FP_ATOMIC_CAPABILITIES_EXT),
        "atomics.float64.add": _adds(device, Ask.DOUBLE_FP_ATOMIC_CAPABILITIES_EXT),
        "barrier": True,
        "subgroups": _subgroups(device, extensions),
        "subgroups.size32": size32,
        "warp": size32 and {"cl_khr_subgroup_ballot", "cl_khr_subgroup_shuffle"} <= extensions,
        "host.call": True,
        "timing": device.number(Ask.PROFILING_TIMER_RESOLUTION) < 1000,
        "native.binary": True,
    }
    return frozenset(name for name, held in has.items() if held)


def _int64_atomics(extensions: frozenset[str]) -> bool:
    return {"cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"} <= extensions


def _subgroups(device: Device, extensions: frozenset[str]) -> bool:
    return "cl_khr_subgroups" in extensions or device.number(Ask.MAX_NUM_SUB_GROUPS) > 0


def _adds(device: Device, parameter: Ask) -> bool:
    return device.number(parameter) & _ADD_GLOBAL_AND_LOCAL == _ADD_GLOBAL_AND_LOCAL
