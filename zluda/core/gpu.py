"""The Python API: open a device, load PTX, launch, read back."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from zluda.backend.selection import BACKEND_VARIABLE, select, why_none
from zluda.core.driver import Driver
from zluda.core.errors import CudaError, invalid_value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from zluda.core.device import CudaDevice
    from zluda.core.function import Function
    from zluda.core.module import Module
    from zluda.core.stream import Stream

Extent = int | Sequence[int]


class _Closable(Protocol):
    def close(self) -> object: ...


def open_gpu(backend: str | None = None, device: int = 0) -> Gpu:
    """Open a device in this process, by ordinal; `backend` as ZLUDA_BACKEND names it (None: as the environment says).

    Raises SelectionError for a backend that cannot be used, and CudaError where there is no such device; both say why.
    """
    from zluda.compiler.cache import Cache
    from zluda.compiler.service import CompileService
    from zluda.window import open_window

    environment = dict(os.environ)
    if backend is not None:
        environment[BACKEND_VARIABLE] = backend
    selection = select(environment)
    if not selection.chosen:
        raise CudaError("CUDA_ERROR_NO_DEVICE", why_none(selection, environment))
    window = open_window()
    compiler = CompileService(Cache.from_environment())
    try:
        return Gpu(Driver(selection, window, compiler), device, (compiler, window))
    except BaseException:
        compiler.close()
        window.close()
        raise


class Gpu:
    """An open device with its primary context: a context manager. `device`, `context` and `driver` are the core's."""

    def __init__(self, driver: Driver, ordinal: int = 0, resources: Sequence[_Closable] = ()) -> None:
        """Takes the driver over, and what is to be closed after it."""
        self.driver = driver
        self.device: CudaDevice = driver.device(ordinal)
        self.context = self.device.retain_primary()
        self._resources = resources
        self._dropped: deque[int] = deque()
        self._open = True

    def __repr__(self) -> str:
        return f"<Gpu {self.device.ordinal}: {self.name}>"

    def __enter__(self) -> Gpu:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The device's name."""
        return self.device.name

    def load(self, image: str | bytes | Path) -> Program:
        """Load PTX text, an image that holds PTX, or a file of either (a Path). Errors as `Context.load_module`."""
        if isinstance(image, Path):
            return Program(self.context.load_module_file(image))
        return Program(self.context.load_module(image))

    def empty(self, shape: Extent, dtype: DTypeLike = "float32") -> Array:
        """An array on the device, its contents undefined."""
        return Array(self, shape, dtype)

    def array(self, values: ArrayLike) -> Array:
        """An array on the device with the values of anything numpy makes an array of; float64 stays float64."""
        import numpy as np

        source = np.asarray(values, order="C")
        made = Array(self, source.shape, source.dtype)
        made.write(source)
        return made

    def stream(self, *, non_blocking: bool = False, priority: int = 0) -> Stream:
        """A new stream."""
        return self.context.create_stream(int(non_blocking), priority)

    def synchronize(self) -> None:
        """Wait for all work. Raises what went wrong in it."""
        self.release_dropped()
        self.context.synchronize()

    def close(self) -> None:
        """Wait for all work and release everything; arrays and kernels are invalid after it. Twice is harmless."""
        if self._open:
            self._open = False
            self.driver.close()
            for resource in self._resources:
                resource.close()

    def drop(self, address: int) -> None:
        """An array is gone: its memory is released at the next call here, as that may need the device."""
        if self._open:
            self._dropped.append(address)

    def release_dropped(self) -> None:
        """Release the memory of arrays that are gone."""
        while self._dropped:
            self.context.free_wait(self._dropped.popleft())


class Array:
    """Device memory with a shape and a numpy dtype. Released when the last reference goes."""

    def __init__(self, gpu: Gpu, shape: Extent, dtype: DTypeLike) -> None:
        import numpy as np

        self.shape = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self._gpu = gpu
        self.device_address = 0
        """The address kernels get; 0 for an array without elements."""
        if self.nbytes:
            gpu.release_dropped()
            self.device_address = gpu.context.allocate(self.nbytes)

    def __repr__(self) -> str:
        return f"<Array {self.shape} {self.dtype} at {self.device_address:#x}>"

    def __len__(self) -> int:
        return self.shape[0]

    def __del__(self) -> None:
        if getattr(self, "device_address", 0):
            self._gpu.drop(self.device_address)

    def numpy(self, stream: Stream | None = None) -> NDArray[Any]:
        """The values as a numpy array, as they are after the work in `stream` (None: the default stream)."""
        import numpy as np

        data = self._gpu.context.read(self.device_address, self.nbytes, stream) if self.nbytes else bytearray()
        return np.frombuffer(data, self.dtype).reshape(self.shape)

    def write(self, values: ArrayLike, stream: Stream | None = None) -> None:
        """Overwrite all values, behind the work in `stream`; the shape must be the same. Raises ValueError."""
        import numpy as np

        source = np.asarray(values, self.dtype, order="C")
        if source.shape != self.shape:
            raise ValueError(f"values of shape {source.shape} for an array of shape {self.shape}")
        if self.nbytes:
            self._gpu.context.write(self.device_address, source.reshape(-1).view(np.uint8).data, stream)


class Program:
    """A loaded module."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def function(self, name: str) -> Kernel:
        """The kernel of that name, compiled. Errors as `Module.function`."""
        return Kernel(self.module.function(name))

    @property
    def names(self) -> tuple[str, ...]:
        """The kernels of the module."""
        return self.module.function_names

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a .global or .const variable."""
        return self.module.global_variable(name)


class Kernel:
    """A kernel to launch."""

    def __init__(self, function: Function) -> None:
        self.core_function = function
        self.name = function.name

    def __repr__(self) -> str:
        return f"<Kernel {self.name}>"

    def launch(
        self, grid: Extent, block: Extent, *arguments: Any, shared: int = 0, stream: Stream | None = None
    ) -> None:
        """Launch `grid` blocks of `block` threads (a number, or up to three) with one argument per parameter.

        Arrays are passed by address, Python and numpy numbers as the parameter's PTX type: 3 for an .f32 is 3.0.
        `shared` is the dynamic shared memory in bytes. Errors as `Function.launch` and `Function.pack`.
        """
        function = self.core_function
        function.launch(_three(grid), _three(block), function.pack(arguments), shared, stream)


def _three(extent: Extent) -> tuple[int, int, int]:
    if isinstance(extent, int):
        return extent, 1, 1
    if not 1 <= len(extent) <= 3:
        raise invalid_value(f"{len(extent)} dimensions: 1 to 3 are possible")
    x, y, z = (*extent, 1, 1)[:3]
    return int(x), int(y), int(z)
