"""Running cases through the CUDA driver API of any libcuda.so.1, by ctypes: NVIDIA's own, or zluda's client library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from .case import Case
from .launch import Buffer, Launch, Value, with_addresses

INVALID_PTX = 218
UNSUPPORTED_PTX_VERSION = 222
NO_BINARY_FOR_GPU = 209
NOT_SUPPORTED = 801
REFUSALS = {NO_BINARY_FOR_GPU, INVALID_PTX, UNSUPPORTED_PTX_VERSION, NOT_SUPPORTED}
"""Results that mean: this driver does not take this module."""
ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES = 5, 6
"""CUjit_option."""
LOG_SIZE = 8192
DEFAULT_SHARED = 48 << 10
MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
"""CUfunction_attribute."""


class Unsupported(Exception):
    """The device cannot run the case; the message says why."""


class DriverError(Exception):
    """A driver call failed."""

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(f"{call}: {text} ({code})")
        self.code = code


class DriverApi:
    """A driver with the primary context of one device current; a context manager."""

    def __init__(self, library: str = "libcuda.so.1", ordinal: int = 0) -> None:
        """Load the library and make the device's primary context current. Raises OSError and DriverError."""
        self._library = ctypes.CDLL(library)
        self._call("cuInit", ctypes.c_uint(0))
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(ordinal))
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, ctypes.c_int(len(name)), self._device)
        self.name = name.value.decode()
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        self.version = version.value
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self._modules: dict[str, ctypes.c_void_p | DriverError] = {}

    def __enter__(self) -> DriverApi:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unload the modules and release the context."""
        for module in self._modules.values():
            if isinstance(module, ctypes.c_void_p):
                self._call("cuModuleUnload", module)
        self._modules.clear()
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)

    def run(self, case: Case, launch: Launch) -> list[bytes]:
        """The images of the buffers after the launch. Unsupported where the module is refused; DriverError."""
        function = ctypes.c_void_p()
        try:
            self._call("cuModuleGetFunction", ctypes.byref(function), self._module(case), launch.kernel.encode())
            if launch.shared > DEFAULT_SHARED:
                self._call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE_BYTES, ctypes.c_int(launch.shared))
        except DriverError as error:
            if error.code in REFUSALS:
                raise Unsupported(str(error)) from error
            raise
        allocations: list[int] = []
        try:
            return self._launch(function, launch, allocations)
        finally:
            for address in allocations:
                self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def _launch(self, function: ctypes.c_void_p, launch: Launch, allocations: list[int]) -> list[bytes]:
        given: list[int] = []
        for argument in launch.arguments:
            if isinstance(argument, Value):
                given.append(0)
                continue
            address = ctypes.c_uint64()
            self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(len(argument.image)))
            allocations.append(address.value)
            given.append(address.value + argument.start)
        parameters = []
        for argument, address_given in zip(launch.arguments, given, strict=True):
            if isinstance(argument, Buffer):
                image = with_addresses(argument.image, argument.fixups, given)
                base = ctypes.c_uint64(address_given - argument.start)
                self._call("cuMemcpyHtoD_v2", base, image, ctypes.c_size_t(len(image)))
                if argument.passed:
                    parameters.append(ctypes.create_string_buffer(address_given.to_bytes(8, "little"), 8))
            else:
                data = with_addresses(argument.data, argument.fixups, given)
                parameters.append(ctypes.create_string_buffer(data, len(data)))
        pointers = (ctypes.c_void_p * max(1, len(parameters)))(*(ctypes.addressof(p) for p in parameters))
        shape = [ctypes.c_uint(n) for n in (*launch.grid, *launch.block, launch.shared)]
        self._call("cuLaunchKernel", function, *shape, ctypes.c_void_p(), pointers, ctypes.c_void_p())
        self._call("cuCtxSynchronize")
        return self._read_back(launch.arguments, given)

    def _read_back(self, arguments: Sequence[Value | Buffer], given: Sequence[int]) -> list[bytes]:
        images = []
        for argument, address in zip(arguments, given, strict=True):
            if isinstance(argument, Buffer):
                back = ctypes.create_string_buffer(len(argument.image))
                base = ctypes.c_uint64(address - argument.start)
                self._call("cuMemcpyDtoH_v2", back, base, ctypes.c_size_t(len(back)))
                images.append(back.raw)
        return images

    def _module(self, case: Case) -> ctypes.c_void_p:
        """The case's module, loaded once."""
        if case.ptx_name not in self._modules:
            try:
                self._modules[case.ptx_name] = self._load(case.ptx)
            except DriverError as error:
                self._modules[case.ptx_name] = error
        module = self._modules[case.ptx_name]
        if isinstance(module, DriverError):
            raise module
        return module

    def _load(self, ptx: str) -> ctypes.c_void_p:
        log = ctypes.create_string_buffer(LOG_SIZE)
        options = (ctypes.c_int * 2)(ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_SIZE)
        module = ctypes.c_void_p()
        try:
            self._call(
                "cuModuleLoadDataEx", ctypes.byref(module), ptx.encode() + b"\0", ctypes.c_uint(2), options, values
            )
        except DriverError as error:
            text = log.value.decode(errors="replace").strip()
            raise DriverError("cuModuleLoadDataEx", error.code, f"{error}; {text}") from None
        return module

    def _call(self, name: str, *arguments: Any) -> None:
        code = int(getattr(self._library, name)(*arguments))
        if code:
            raise DriverError(name, code, self._error_name(code))

    def _error_name(self, code: int) -> str:
        text = ctypes.c_char_p()
        known = self._library.cuGetErrorName(ctypes.c_int(code), ctypes.byref(text)) == 0
        return text.value.decode() if known and text.value else "unknown error"
