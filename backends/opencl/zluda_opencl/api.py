"""OpenCL entry points for the hot paths and for what pyopencl does not offer, from the loader that pyopencl links.

Functions return OpenCL's error code. Those of `quick` keep Python's lock: they never wait, and giving the lock up costs
more than the call; all others give it up, for they may wait for work that needs another Python thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

import pyopencl as cl
import pyopencl._cl as _cl

from zluda_opencl.errors import error

# The extension module's own handle finds the symbols of the loader it is linked to, wherever that lies.
_library = ctypes.CDLL(_cl.__file__)
_quick_library = ctypes.PyDLL(_cl.__file__)

Call = Callable[..., int]

# cl.h, cl_ext.h
DEVICE_TYPE_ALL = 0xFFFFFFFF
EVENT_COMMAND_EXECUTION_STATUS = 0x11D3
PROFILING_COMMAND_END = 0x1283
KERNEL_EXEC_INFO_SVM_PTRS = 0x11B6
KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM = 0x11B7
KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL = 0x4200
KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL = 0x4201
KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL = 0x4202
DEVICE_SUB_GROUP_SIZES_INTEL = 0x4108
DEVICE_PCI_BUS_INFO_KHR = 0x410F
DEVICE_UUID_KHR = 0x106A
DEVICE_IL_VERSION = 0x105B
DEVICE_MAX_NUM_SUB_GROUPS = 0x105C
DEVICE_DEVICE_MEM_CAPABILITIES_INTEL = 0x4191
DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4231
DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4232
ICDL_VERSION, ICDL_NAME = 2, 3


def _function(name: str, *arguments: Any, quick: bool = False, result: Any = c_int) -> Any:
    function = getattr(_quick_library if quick else _library, name)
    function.argtypes = arguments
    function.restype = result
    return function


get_platform_ids: Call = _function("clGetPlatformIDs", c_uint, c_void_p, POINTER(c_uint))
get_device_ids: Call = _function("clGetDeviceIDs", c_void_p, c_uint64, c_uint, c_void_p, POINTER(c_uint))
get_device_info: Call = _function("clGetDeviceInfo", c_void_p, c_uint, c_size_t, c_void_p, POINTER(c_size_t))
build_program: Call = _function("clBuildProgram", c_void_p, c_uint, POINTER(c_void_p), c_char_p, c_void_p, c_void_p)

set_kernel_exec_info: Call = _function("clSetKernelExecInfo", c_void_p, c_uint, c_size_t, c_void_p, quick=True)
set_kernel_arg: Call = _function("clSetKernelArg", c_void_p, c_uint, c_size_t, c_char_p, quick=True)
set_kernel_arg_svm: Call = _function("clSetKernelArgSVMPointer", c_void_p, c_uint, c_void_p, quick=True)

_events = (c_uint, POINTER(c_void_p), POINTER(c_void_p))
enqueue_kernel: Call = _function(
    "clEnqueueNDRangeKernel", c_void_p, c_void_p, c_uint, c_void_p, c_void_p, c_void_p, *_events
)
enqueue_svm_copy: Call = _function("clEnqueueSVMMemcpy", c_void_p, c_uint, c_void_p, c_void_p, c_size_t, *_events)
enqueue_svm_fill: Call = _function("clEnqueueSVMMemFill", c_void_p, c_void_p, c_char_p, c_size_t, c_size_t, *_events)
enqueue_marker: Call = _function("clEnqueueMarkerWithWaitList", c_void_p, *_events)
enqueue_barrier: Call = _function("clEnqueueBarrierWithWaitList", c_void_p, *_events)
flush: Call = _function("clFlush", c_void_p)
finish: Call = _function("clFinish", c_void_p)

wait_for_events: Call = _function("clWaitForEvents", c_uint, POINTER(c_void_p))
get_event_info: Call = _function("clGetEventInfo", c_void_p, c_uint, c_size_t, c_void_p, c_void_p, quick=True)
get_profiling_info: Call = _function("clGetEventProfilingInfo", c_void_p, c_uint, c_size_t, c_void_p, c_void_p)
release_event: Call = _function("clReleaseEvent", c_void_p)
set_user_event_status: Call = _function("clSetUserEventStatus", c_void_p, c_int)
_create_user_event: Any = _function("clCreateUserEvent", c_void_p, POINTER(c_int), result=c_void_p)

svm_allocate: Any = _function("clSVMAlloc", c_void_p, c_size_t, c_size_t, c_uint, result=c_void_p)
svm_free: Any = _function("clSVMFree", c_void_p, c_void_p, result=None)

_extension_address: Any = _function("clGetExtensionFunctionAddressForPlatform", c_void_p, c_char_p, result=c_void_p)


class Usm:
    """The entry points of cl_intel_unified_shared_memory on one platform."""

    def __init__(self, platform: int) -> None:
        self.platform = platform
        self.device_allocate = self._get(
            "clDeviceMemAllocINTEL", *(c_void_p,) * 3, c_size_t, c_uint, POINTER(c_int), result=c_void_p
        )
        self.free = self._get("clMemFreeINTEL", c_void_p, c_void_p)
        self.copy = self._get("clEnqueueMemcpyINTEL", c_void_p, c_uint, c_void_p, c_void_p, c_size_t, *_events)
        self.fill = self._get("clEnqueueMemFillINTEL", c_void_p, c_void_p, c_char_p, c_size_t, c_size_t, *_events)
        self.set_kernel_arg = self._get("clSetKernelArgMemPointerINTEL", c_void_p, c_uint, c_void_p, quick=True)

    def _get(self, name: str, *arguments: Any, quick: bool = False, result: Any = c_int) -> Any:
        address = _extension_address(self.platform, name.encode())
        if not address:
            raise error("clGetExtensionFunctionAddressForPlatform", -59, f"the platform has no {name}")
        prototype = ctypes.PYFUNCTYPE if quick else ctypes.CFUNCTYPE
        return prototype(result, *arguments)(address)


def device_info(device: int, parameter: int) -> bytes | None:
    """The bytes of clGetDeviceInfo; None where the device does not know the parameter."""
    size = c_size_t()
    if get_device_info(device, parameter, 0, None, size):
        return None
    buffer = ctypes.create_string_buffer(size.value)
    if get_device_info(device, parameter, size.value, buffer, None):
        return None
    return buffer.raw


def wake_drivers() -> None:
    """Have the ICD loader load the drivers and have these look for their devices, without Python's lock.

    A driver that hangs then does so here, and not in pyopencl, which would keep the lock and stop the other probes.
    Errors are left to pyopencl, which makes the same calls again.
    """
    count = c_uint()
    if get_platform_ids(0, None, count):
        return
    platforms = (c_void_p * count.value)()
    get_platform_ids(count.value, platforms, None)
    for platform in platforms:
        get_device_ids(platform, DEVICE_TYPE_ALL, 0, None, c_uint())


def loader() -> str:
    """Name and version of the ICD loader and of pyopencl."""
    names = []
    # Only ocl-icd tells; pyopencl's own build of it hides the function.
    if hasattr(_library, "clGetICDLoaderInfoOCLICD"):
        ask = _function("clGetICDLoaderInfoOCLICD", c_int, c_size_t, c_char_p, c_void_p)
        for parameter in (ICDL_NAME, ICDL_VERSION):
            buffer = ctypes.create_string_buffer(128)
            if not ask(parameter, len(buffer), buffer, None):
                names.append(buffer.value.decode(errors="replace"))
    return " ".join([*names, f"pyopencl {cl.VERSION_TEXT}"])


def user_event(context: int) -> int:
    """A new user event in `context`."""
    code = c_int()
    event: int | None = _create_user_event(context, code)
    if not event:
        raise error("clCreateUserEvent", code.value)
    return event


def event_status(event: int) -> int:
    """CL_COMPLETE (0), a positive status while it is not, or the error that execution ended with."""
    status = c_int()
    code = get_event_info(event, EVENT_COMMAND_EXECUTION_STATUS, 4, ctypes.byref(status), None)
    if code:
        raise error("clGetEventInfo", code)
    return status.value
