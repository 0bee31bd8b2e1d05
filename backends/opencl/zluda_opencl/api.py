"""OpenCL entry points, from the loader that pyopencl brings: everything that a warm start and a launch go through.

Importing pyopencl takes 0.3 s (numpy among it), which every CUDA program would pay at its start; so it is imported only
where something is compiled (compile.py).

Functions return OpenCL's error code. Those marked `quick` keep Python's lock: they never wait, and giving the lock up
costs more than the call; all others give it up, for they may wait for work that needs another Python thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Any

from zluda_opencl.errors import check, error


def _loader_path() -> str:
    """pyopencl's extension module. Its handle finds the symbols of the ICD loader it links, wherever that lies."""
    package = find_spec("pyopencl")
    if package is None or package.submodule_search_locations is None:
        raise ImportError("pyopencl is not installed")
    extension = PathFinder.find_spec("pyopencl._cl", package.submodule_search_locations)
    if extension is None or extension.origin is None:
        raise ImportError(f"pyopencl in {package.submodule_search_locations[0]} has no extension module _cl")
    return extension.origin


_library = ctypes.CDLL(_loader_path())
_quick_library = ctypes.PyDLL(_loader_path())

Call = Callable[..., int]

# cl.h, cl_ext.h
PLATFORM_NOT_FOUND_KHR = -1001
DEVICE_TYPE_ALL = 0xFFFFFFFF
DEVICE_TYPE_CPU, DEVICE_TYPE_GPU = 1 << 1, 1 << 2
QUEUE_PROPERTIES = 0x1093
QUEUE_PROFILING_ENABLE = 1 << 1
QUEUE_PRIORITY_KHR = 0x1096
PROGRAM_BUILD_LOG = 0x1183
KERNEL_NUM_ARGS = 0x1191
KERNEL_WORK_GROUP_SIZE = 0x11B0
KERNEL_PRIVATE_MEM_SIZE = 0x11B4
EVENT_COMMAND_EXECUTION_STATUS = 0x11D3
PROFILING_COMMAND_END = 0x1283
KERNEL_EXEC_INFO_SVM_PTRS = 0x11B6
KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM = 0x11B7
KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL = 0x4200
KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL = 0x4201
KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL = 0x4202


def _function(name: str, *arguments: Any, quick: bool = False, result: Any = c_int) -> Any:
    function = getattr(_quick_library if quick else _library, name)
    function.argtypes = arguments
    function.restype = result
    return function


get_platform_ids: Call = _function("clGetPlatformIDs", c_uint, c_void_p, POINTER(c_uint))
get_device_ids: Call = _function("clGetDeviceIDs", c_void_p, c_uint64, c_uint, c_void_p, POINTER(c_uint))
_info = (c_uint, c_size_t, c_void_p, POINTER(c_size_t))
get_platform_info: Call = _function("clGetPlatformInfo", c_void_p, *_info)
get_device_info: Call = _function("clGetDeviceInfo", c_void_p, *_info)

_create_context: Any = _function(
    "clCreateContext", c_void_p, c_uint, c_void_p, c_void_p, c_void_p, POINTER(c_int), result=c_void_p
)
release_context: Call = _function("clReleaseContext", c_void_p)
_create_queue: Any = _function(
    "clCreateCommandQueueWithProperties", c_void_p, c_void_p, c_void_p, POINTER(c_int), result=c_void_p
)
release_queue: Call = _function("clReleaseCommandQueue", c_void_p)

_create_program: Any = _function(
    "clCreateProgramWithBinary",
    c_void_p,
    c_uint,
    c_void_p,
    POINTER(c_size_t),
    POINTER(c_char_p),
    POINTER(c_int),
    POINTER(c_int),
    result=c_void_p,
)
build_program: Call = _function("clBuildProgram", c_void_p, c_uint, c_void_p, c_char_p, c_void_p, c_void_p)
_get_build_info: Call = _function("clGetProgramBuildInfo", c_void_p, c_void_p, *_info)
retain_program: Call = _function("clRetainProgram", c_void_p)
release_program: Call = _function("clReleaseProgram", c_void_p)

_create_kernel: Any = _function("clCreateKernel", c_void_p, c_char_p, POINTER(c_int), result=c_void_p)
release_kernel: Call = _function("clReleaseKernel", c_void_p)
_get_kernel_info: Call = _function("clGetKernelInfo", c_void_p, *_info)
_get_kernel_work_group_info: Call = _function("clGetKernelWorkGroupInfo", c_void_p, c_void_p, *_info)
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


def answer(function: Call, *arguments: Any) -> bytes | None:
    """The bytes that a clGet…Info function answers; None where it fails, as for a parameter that it does not know."""
    size = c_size_t()
    if function(*arguments, 0, None, size):
        return None
    buffer = ctypes.create_string_buffer(size.value)
    if function(*arguments, size.value, buffer, None):
        return None
    return buffer.raw


def platforms() -> list[int]:
    """All platforms. The first call makes the ICD loader load the drivers."""
    count = c_uint()
    code = get_platform_ids(0, None, count)
    if code == PLATFORM_NOT_FOUND_KHR:
        return []
    check(code, "clGetPlatformIDs")
    handles = (c_void_p * count.value)()
    check(get_platform_ids(count.value, handles, None), "clGetPlatformIDs")
    return [handle for handle in handles if handle]


def devices(platform: int) -> list[int]:
    """All devices of a platform. Raises BackendError, also where there is none."""
    count = c_uint()
    check(get_device_ids(platform, DEVICE_TYPE_ALL, 0, None, count), "clGetDeviceIDs")
    handles = (c_void_p * count.value)()
    check(get_device_ids(platform, DEVICE_TYPE_ALL, count.value, handles, None), "clGetDeviceIDs")
    return [handle for handle in handles if handle]


def create_context(device: int) -> int:
    """A context on one device."""
    code = c_int()
    return _made(_create_context(None, 1, byref(c_void_p(device)), None, None, code), "clCreateContext", code)


def create_queue(context: int, device: int, properties: list[int]) -> int:
    """An in-order queue; `properties` are pairs as clCreateCommandQueueWithProperties takes them."""
    code = c_int()
    array = (c_uint64 * (len(properties) + 1))(*properties, 0)
    return _made(_create_queue(context, device, array, code), "clCreateCommandQueueWithProperties", code)


def create_program(context: int, device: int, binary: bytes) -> tuple[int, int]:
    """A program from a native binary, not built yet: (program or 0, error code)."""
    code, status = c_int(), c_int()
    program = _create_program(
        context, 1, byref(c_void_p(device)), c_size_t(len(binary)), c_char_p(binary), status, code
    )
    return program or 0, code.value or status.value


def build_log(program: int, device: int) -> str:
    """The compiler's log of the last build."""
    log = answer(_get_build_info, program, device, PROGRAM_BUILD_LOG) or b""
    return log.rstrip(b"\0").decode(errors="replace").strip()


def create_kernel(program: int, name: str) -> tuple[int, int]:
    """A kernel: (kernel or 0, error code)."""
    code = c_int()
    return _create_kernel(program, name.encode(), code) or 0, code.value


def kernel_number(kernel: int, parameter: int) -> int:
    """A number of clGetKernelInfo."""
    return int.from_bytes(answer(_get_kernel_info, kernel, parameter) or b"", "little")


def kernel_work_group_number(kernel: int, device: int, parameter: int) -> int:
    """A number of clGetKernelWorkGroupInfo."""
    return int.from_bytes(answer(_get_kernel_work_group_info, kernel, device, parameter) or b"", "little")


def _made(handle: int | None, call: str, code: c_int) -> int:
    if not handle:
        raise error(call, code.value)
    return handle


def user_event(context: int) -> int:
    """A new user event in `context`."""
    code = c_int()
    return _made(_create_user_event(context, code), "clCreateUserEvent", code)


def event_status(event: int) -> int:
    """CL_COMPLETE (0), a positive status while it is not, or the error that execution ended with."""
    status = c_int()
    check(get_event_info(event, EVENT_COMMAND_EXECUTION_STATUS, 4, byref(status), None), "clGetEventInfo")
    return status.value
