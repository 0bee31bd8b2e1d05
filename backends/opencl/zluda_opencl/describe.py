"""What an OpenCL device is in the seam's terms: usable, with limits and capabilities, or not, with the reason."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import pyopencl as cl

from zluda.backend.info import DeviceInfo, DeviceKind, DeviceLimits, PciAddress, TargetInfo, Unusable
from zluda_opencl import api

BACKEND = "opencl"
SPIRV_NEEDED = (1, 4)
"""The version that the compiler emits."""

_ADD_GLOBAL_AND_LOCAL = 1 << 1 | 1 << 17
_SYSTEM_SVM = 1 << 2
_ANY_SVM = 1 << 0 | 1 << 1 | 1 << 2


def describe(device: Any, index: int) -> DeviceInfo | Unusable:
    """The device as the seam lists it."""
    platform = device.platform
    what = f"OpenCL device {device.name.strip()} ({platform.name.strip()}, {platform.version.strip()})"
    if refusal := _refusal(device):
        return Unusable(what=what, why=refusal[0], remedy=refusal[1])

    extensions = frozenset(device.extensions.split())
    subgroup_sizes = _sizes(api.device_info(device.int_ptr, api.DEVICE_SUB_GROUP_SIZES_INTEL))
    return DeviceInfo(
        backend=BACKEND,
        index=index,
        name=device.name.strip(),
        vendor=device.vendor.strip(),
        kind=_kind(device),
        uuid=_uuid(device, index),
        pci=_pci(device),
        total_memory=device.global_mem_size,
        driver_version=device.driver_version.strip(),
        target=TargetInfo(name="spirv64", features=_features(device, extensions, subgroup_sizes)),
        limits=_limits(device),
        capabilities=_capabilities(device, extensions, subgroup_sizes),
        # oneAPI's FPGA emulator runs on the CPU, whose own device is the better one.
        simulated="FPGA Emulation" in device.name,
    )


def has_usm(device: Any) -> bool:
    """Whether the device allocates device memory with plain addresses (cl_intel_unified_shared_memory)."""
    return bool(_number(device, api.DEVICE_DEVICE_MEM_CAPABILITIES_INTEL) & 1)


def has_system_svm(device: Any) -> bool:
    """Whether kernels reach any host address."""
    return bool(_svm(device) & _SYSTEM_SVM)


def spirv_versions(device: Any) -> list[tuple[int, int]]:
    """The SPIR-V versions that the device takes, ascending."""
    text = (api.device_info(device.int_ptr, api.DEVICE_IL_VERSION) or b"").rstrip(b"\0").decode(errors="replace")
    versions = []
    for word in text.split():
        name, _, version = word.rpartition("_")
        if name == "SPIR-V" and version.count(".") == 1:
            major, minor = version.split(".")
            versions.append((int(major), int(minor)))
    return sorted(versions)


def _refusal(device: Any) -> tuple[str, str] | None:
    if not device.available:
        return "the driver says that it is not available", "see whether another process has it, or restart its driver"
    if device.address_bits != 64:
        return f"its addresses have {device.address_bits} bits; CUDA programs need 64", "use a 64-bit device"
    if not device.endian_little:
        return "it is big-endian", "use a little-endian device"
    if not device.compiler_available:
        return "its driver has no compiler", "install the driver's compiler package"
    versions = spirv_versions(device)
    if not versions:
        return "its driver takes no SPIR-V", _spirv_remedy(device)
    if versions[-1] < SPIRV_NEEDED:
        had, needed = (".".join(map(str, version)) for version in (versions[-1], SPIRV_NEEDED))
        return f"its driver takes SPIR-V up to {had}; {needed} is needed", "update the driver"
    if not has_usm(device) and not _svm(device) & _ANY_SVM:
        return (
            "it has neither unified shared memory (cl_intel_unified_shared_memory) nor shared virtual memory, so its "
            "memory has no addresses",
            "update the driver, or use another device",
        )
    return None


def _spirv_remedy(device: Any) -> str:
    if "portable computing language" in device.platform.name.lower():
        return (
            "use PoCL 4 or newer, built with the LLVM SPIR-V translator; "
            "for an x86-64 CPU: pip install 'zluda-opencl[cpu]'"
        )
    return "update the driver to one with cl_khr_il_program or OpenCL 2.1 and SPIR-V"


def _kind(device: Any) -> DeviceKind:
    if device.type & cl.device_type.CPU:
        return DeviceKind.CPU
    if device.type & cl.device_type.GPU:
        return DeviceKind.INTEGRATED_GPU if device.host_unified_memory else DeviceKind.DISCRETE_GPU
    return DeviceKind.ACCELERATOR


def _uuid(device: Any, index: int) -> bytes:
    uuid = api.device_info(device.int_ptr, api.DEVICE_UUID_KHR)
    if uuid is not None and len(uuid) == 16 and any(uuid):
        return uuid
    # Stable between runs; the index keeps two equal devices apart.
    key = "\0".join([device.platform.name, device.vendor, device.name, str(_pci(device) or index)])
    return hashlib.sha256(key.encode()).digest()[:16]


def _pci(device: Any) -> PciAddress | None:
    data = api.device_info(device.int_ptr, api.DEVICE_PCI_BUS_INFO_KHR)
    if data is None or len(data) != 16:
        return None
    domain, bus, number, function = struct.unpack("=4I", data)
    return PciAddress(domain=domain, bus=bus, device=number, function=function)


def _limits(device: Any) -> DeviceLimits:
    sizes = [int(size) for size in device.max_work_item_sizes] + [1, 1]
    return DeviceLimits(
        max_threads_per_block=device.max_work_group_size,
        max_block_dim=(sizes[0], sizes[1], sizes[2]),
        shared_memory_per_block=device.local_mem_size,
        max_parameter_bytes=device.max_parameter_size,
        multiprocessors=device.max_compute_units,
        clock_khz=device.max_clock_frequency * 1000,
        l2_cache_bytes=device.global_mem_cache_size,
        address_bits=device.address_bits,
    )


def _features(device: Any, extensions: frozenset[str], subgroup_sizes: tuple[int, ...]) -> tuple[str, ...]:
    has = {
        "fp16": "cl_khr_fp16" in extensions,
        "fp64": bool(device.double_fp_config),
        "int64-atomics": _int64_atomics(extensions),
        "float-atomics": _adds(device, api.DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT),
        "float64-atomics": _adds(device, api.DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT),
        "bit-instructions": "cl_khr_extended_bit_ops" in extensions,
        "subgroups": _subgroups(device, extensions),
        "subgroup-size-32": 32 in subgroup_sizes,
        "subgroup-ballot": "cl_khr_subgroup_ballot" in extensions,
        "subgroup-shuffle": "cl_khr_subgroup_shuffle" in extensions,
    }
    versions = [f"spirv-{major}.{minor}" for major, minor in spirv_versions(device)]
    return tuple(sorted([name for name, held in has.items() if held] + versions))


def _capabilities(device: Any, extensions: frozenset[str], subgroup_sizes: tuple[int, ...]) -> frozenset[str]:
    size32 = 32 in subgroup_sizes
    has = {
        "memory.system": has_system_svm(device),
        "memory.usm": True,  # with SVM alone, every launch lists all blocks
        "fp16": "cl_khr_fp16" in extensions,
        "fp64": bool(device.double_fp_config),
        "atomics.int64": _int64_atomics(extensions),
        "atomics.float32.add": _adds(device, api.DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT),
        "atomics.float64.add": _adds(device, api.DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT),
        "barrier": True,
        "subgroups": _subgroups(device, extensions),
        "subgroups.size32": size32,
        "warp": size32 and {"cl_khr_subgroup_ballot", "cl_khr_subgroup_shuffle"} <= extensions,
        "host.call": True,
        "timing": device.profiling_timer_resolution < 1000,
        "native.binary": True,
    }
    return frozenset(name for name, held in has.items() if held)


def _int64_atomics(extensions: frozenset[str]) -> bool:
    return {"cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"} <= extensions


def _subgroups(device: Any, extensions: frozenset[str]) -> bool:
    return "cl_khr_subgroups" in extensions or _number(device, api.DEVICE_MAX_NUM_SUB_GROUPS) > 0


def _adds(device: Any, parameter: int) -> bool:
    return _number(device, parameter) & _ADD_GLOBAL_AND_LOCAL == _ADD_GLOBAL_AND_LOCAL


def _svm(device: Any) -> int:
    return _number(device, int(cl.device_info.SVM_CAPABILITIES))


def _number(device: Any, parameter: int) -> int:
    return int.from_bytes(api.device_info(device.int_ptr, parameter) or b"", "little")


def _sizes(data: bytes | None) -> tuple[int, ...]:
    return struct.unpack(f"={len(data) // 8}Q", data) if data else ()
