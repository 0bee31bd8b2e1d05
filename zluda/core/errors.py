"""CUDA results as exceptions, and what a backend's errors mean in CUDA's terms."""

from __future__ import annotations

from zluda.backend.seam import (
    BackendError,
    BuildError,
    DeviceLost,
    LaunchError,
    NotSupported,
    OutOfMemory,
)
from zluda.spec.errors import errors


class CudaError(Exception):
    """A call failed with the CUresult `name`. The message says what happened; `log` is a compiler's log, if one ran."""

    def __init__(self, name: str, message: str = "", *, log: str = "") -> None:
        spec = errors()[name]
        self.name = name
        self.code = spec.code
        """The CUresult's number."""
        self.text = spec.text
        """What cuGetErrorString gives."""
        self.sticky = spec.sticky
        """Whether the context is ruined by it."""
        self.message = message or spec.text
        self.log = log
        super().__init__(f"{name} ({self.message})")


def invalid_value(message: str) -> CudaError:
    """CUDA_ERROR_INVALID_VALUE, saying which value."""
    return CudaError("CUDA_ERROR_INVALID_VALUE", message)


def invalid_handle(message: str) -> CudaError:
    """CUDA_ERROR_INVALID_HANDLE, saying which handle."""
    return CudaError("CUDA_ERROR_INVALID_HANDLE", message)


def from_backend(error: BackendError, *, executing: bool = False) -> CudaError:
    """The CUDA error for a backend's; `executing` for one that came out of device work, not of the call itself."""
    message = f"{error.call}: {error}" if error.call else str(error)
    if isinstance(error, OutOfMemory):
        return CudaError("CUDA_ERROR_OUT_OF_MEMORY", message)
    if isinstance(error, BuildError):
        return CudaError("CUDA_ERROR_INVALID_PTX", message, log=error.log)
    if isinstance(error, DeviceLost) or executing:
        return CudaError("CUDA_ERROR_LAUNCH_FAILED", message)
    if isinstance(error, LaunchError):
        return CudaError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", message)
    if isinstance(error, NotSupported):
        return CudaError("CUDA_ERROR_NOT_SUPPORTED", message)
    return CudaError("CUDA_ERROR_UNKNOWN", message)
