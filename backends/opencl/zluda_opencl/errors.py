"""OpenCL's error codes and what they become in the seam."""

from __future__ import annotations

from zluda.backend.seam import BackendError, BuildError, DeviceLost, LaunchError, OutOfMemory

NAMES = {
    -1: "CL_DEVICE_NOT_FOUND",
    -2: "CL_DEVICE_NOT_AVAILABLE",
    -3: "CL_COMPILER_NOT_AVAILABLE",
    -4: "CL_MEM_OBJECT_ALLOCATION_FAILURE",
    -5: "CL_OUT_OF_RESOURCES",
    -6: "CL_OUT_OF_HOST_MEMORY",
    -7: "CL_PROFILING_INFO_NOT_AVAILABLE",
    -8: "CL_MEM_COPY_OVERLAP",
    -11: "CL_BUILD_PROGRAM_FAILURE",
    -14: "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
    -15: "CL_COMPILE_PROGRAM_FAILURE",
    -17: "CL_LINK_PROGRAM_FAILURE",
    -30: "CL_INVALID_VALUE",
    -33: "CL_INVALID_DEVICE",
    -34: "CL_INVALID_CONTEXT",
    -35: "CL_INVALID_QUEUE_PROPERTIES",
    -36: "CL_INVALID_COMMAND_QUEUE",
    -38: "CL_INVALID_MEM_OBJECT",
    -42: "CL_INVALID_BINARY",
    -43: "CL_INVALID_BUILD_OPTIONS",
    -44: "CL_INVALID_PROGRAM",
    -45: "CL_INVALID_PROGRAM_EXECUTABLE",
    -46: "CL_INVALID_KERNEL_NAME",
    -47: "CL_INVALID_KERNEL_DEFINITION",
    -48: "CL_INVALID_KERNEL",
    -49: "CL_INVALID_ARG_INDEX",
    -50: "CL_INVALID_ARG_VALUE",
    -51: "CL_INVALID_ARG_SIZE",
    -52: "CL_INVALID_KERNEL_ARGS",
    -53: "CL_INVALID_WORK_DIMENSION",
    -54: "CL_INVALID_WORK_GROUP_SIZE",
    -55: "CL_INVALID_WORK_ITEM_SIZE",
    -56: "CL_INVALID_GLOBAL_OFFSET",
    -57: "CL_INVALID_EVENT_WAIT_LIST",
    -58: "CL_INVALID_EVENT",
    -59: "CL_INVALID_OPERATION",
    -61: "CL_INVALID_BUFFER_SIZE",
    -63: "CL_INVALID_GLOBAL_WORK_SIZE",
    -64: "CL_INVALID_PROPERTY",
    -1001: "CL_PLATFORM_NOT_FOUND_KHR",
}

_MEMORY = frozenset({-4, -6, -61})
_LOST = frozenset({-2, -33, -34, -36})


def code_name(code: int) -> str:
    """`CL_OUT_OF_RESOURCES (-5)`."""
    return f"{NAMES.get(code, 'unknown OpenCL error')} ({code})"


def error(call: str, code: int, about: str = "") -> BackendError:
    """The seam's error for a failed call: OutOfMemory, DeviceLost, or a plain BackendError."""
    message = f"{call}: {code_name(code)}" + (f": {about}" if about else "")
    if code in _MEMORY:
        return OutOfMemory(message, call=call, code=code)
    if code in _LOST:
        return DeviceLost(message, call=call, code=code)
    return BackendError(message, call=call, code=code)


def launch_error(call: str, code: int, about: str) -> BackendError:
    """The seam's error for a launch that was refused."""
    if code in _MEMORY or code in _LOST:
        return error(call, code, about)
    return LaunchError(f"{call}: {code_name(code)}: {about}", call=call, code=code)


def build_error(call: str, code: int, about: str, log: str = "") -> BackendError:
    """The seam's error for an image that was refused, with the vendor's log."""
    if code in _MEMORY or code in _LOST:
        return error(call, code, about)
    message = f"{call}: {code_name(code)}: {about}" + (f"\n{log}" if log else "")
    return BuildError(message, log=log, call=call, code=code)


def check(code: int, call: str) -> None:
    """Raise the seam's error unless `code` is CL_SUCCESS."""
    if code:
        raise error(call, code)
