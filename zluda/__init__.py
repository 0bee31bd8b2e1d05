"""Zluda: unmodified CUDA programs on GPUs that are not NVIDIA's.

In Python, without the C ABI: `zluda.open()` gives a device; see `zluda.core` for everything CUDA has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zluda.backend.selection import SelectionError
    from zluda.core.errors import CudaError
    from zluda.core.gpu import Array, Gpu, Kernel, Program
    from zluda.core.gpu import open_gpu as open

__all__ = ["Array", "CudaError", "Gpu", "Kernel", "Program", "SelectionError", "open"]

_HOMES = {
    "Array": ("zluda.core.gpu", "Array"),
    "CudaError": ("zluda.core.errors", "CudaError"),
    "Gpu": ("zluda.core.gpu", "Gpu"),
    "Kernel": ("zluda.core.gpu", "Kernel"),
    "Program": ("zluda.core.gpu", "Program"),
    "SelectionError": ("zluda.backend.selection", "SelectionError"),
    "open": ("zluda.core.gpu", "open_gpu"),
}


def __getattr__(name: str) -> Any:
    # Every process of the project imports this package; only those that use the API pay for the core.
    if name == "__version__":
        from importlib.metadata import version

        return version("zluda")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'zluda' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home[0]), home[1])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
