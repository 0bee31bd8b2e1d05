"""The seam: the abstract classes a vendor backend implements. Knows devices, queues and bytes; nothing of CUDA or PTX.

Threads: the core serialises calls on one `Device`, its queues and modules, with the exception of `Marker.query`,
`Marker.synchronize`, `Marker.elapsed` and `Queue.synchronize`, which may be called from any thread at any time.
Errors: every method may raise a `BackendError` and nothing else; after one the object is still usable unless it is
`DeviceLost`.
Ownership: each object owns its vendor handles; `close()` releases them, in any order, and twice is harmless.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from zluda.backend.info import DeviceInfo, Image, KernelSignature, ProbeReport


class BackendError(Exception):
    """A vendor call failed. `call` names it, `code` is the vendor's result; the message says what happened."""

    def __init__(self, message: str, *, call: str = "", code: int | None = None) -> None:
        super().__init__(message)
        self.call = call
        self.code = code


class OutOfMemory(BackendError):
    """The device has no memory left for a request."""


class BuildError(BackendError):
    """The vendor refused an image; `log` is the compiler's log."""

    def __init__(self, message: str, *, log: str = "", call: str = "", code: int | None = None) -> None:
        super().__init__(message, call=call, code=code)
        self.log = log


class LaunchError(BackendError):
    """A launch was refused (sizes, resources)."""


class DeviceLost(BackendError):
    """The device or its runtime is gone; nothing on it can be used any more."""


class NotSupported(BackendError):
    """An optional method that this backend does not have."""


class Dim3(NamedTuple):
    x: int
    y: int = 1
    z: int = 1


class Marker(ABC):
    """A point in a queue's order."""

    @abstractmethod
    def query(self) -> bool:
        """Whether everything before the marker has finished. Raises what execution raised."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block until it has. Raises what execution raised."""

    @abstractmethod
    def elapsed(self, later: Marker) -> float:
        """Milliseconds of device time from this marker to `later`; both were recorded with timing and are finished."""

    def close(self) -> None:  # noqa: B027 - a marker may hold nothing
        """Release what the marker holds."""


class Kernel(ABC):
    """A launchable function of a loaded module."""

    signature: KernelSignature
    max_threads_per_block: int
    private_bytes: int = 0
    """Bytes of private (local) memory a thread uses, as the vendor reports it."""


class LoadedModule(ABC):
    """An image on a device."""

    @abstractmethod
    def kernel(self, name: str) -> Kernel:
        """The kernel of that name; KeyError if the image has none."""

    @abstractmethod
    def close(self) -> None: ...


class Queue(ABC):
    """An in-order queue. Everything but `synchronize` returns at once; addresses are device addresses (ints)."""

    @abstractmethod
    def copy(self, destination: int, source: int, size: int) -> None:
        """Copy `size` bytes; either side may be device memory or host memory that the device can reach."""

    @abstractmethod
    def fill(self, destination: int, pattern: bytes, count: int) -> None:
        """Write `pattern` (1, 2, 4, 8 or 16 bytes) `count` times."""

    @abstractmethod
    def launch(self, kernel: Kernel, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        """Run `grid` blocks of `block` threads. `arguments` are the packed bytes that `kernel.signature` describes."""

    @abstractmethod
    def record(self, timing: bool = False) -> Marker:
        """A marker after everything enqueued so far."""

    @abstractmethod
    def wait(self, marker: Marker) -> None:
        """Later work of this queue starts only when `marker` (of any queue of this device) has been reached."""

    @abstractmethod
    def host_call(self, function: Callable[[], None]) -> None:
        """Call `function` on some thread when earlier work has finished; later work waits for its return."""

    @abstractmethod
    def flush(self) -> None:
        """Make sure that what was enqueued starts without further calls."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block until the queue is empty. Raises what execution raised."""

    @abstractmethod
    def close(self) -> None: ...

    def native(self) -> Any | None:
        """Reserved: a C function table (launch, copy, fill, record, wait) for a native drain; None where none."""
        return None


class Device(ABC):
    """An opened device."""

    info: DeviceInfo

    @abstractmethod
    def allocate(self, size: int, alignment: int = 256) -> int:
        """Device memory of `size` bytes (> 0); its address. Raises OutOfMemory."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Give back what `allocate` returned."""

    @abstractmethod
    def memory(self) -> tuple[int, int]:
        """Free and total bytes."""

    @abstractmethod
    def create_queue(self, priority: int = 0) -> Queue:
        """A new in-order queue; lower numbers are more urgent, as in CUDA."""

    @abstractmethod
    def load(self, image: Image) -> LoadedModule:
        """Put an image on the device. Raises BuildError with the vendor's log."""

    @abstractmethod
    def close(self) -> None: ...

    # What a device may have.

    def import_host(self, address: int, size: int) -> None:  # noqa: ARG002
        """Let the device reach host memory at the same address. A device with `memory.system` needs nothing done."""
        raise NotSupported(f"{self.info.name} cannot import host memory")

    def release_host(self, address: int) -> None:  # noqa: ARG002
        """Undo `import_host`."""
        raise NotSupported(f"{self.info.name} cannot import host memory")


class Backend(ABC):
    """A vendor's stack. Constructing one does nothing; vendor libraries are loaded by `probe` and `open`."""

    name: str
    """`opencl`, `rocm`, `level_zero`, …: what ZLUDA_BACKEND names."""
    version: str
    seam_version: int = 0
    rank: int = 50
    """Preference among backends for devices of one kind, lower first: ROCm 10, Level Zero 20, third parties 50,
    OpenCL 90."""

    @abstractmethod
    def probe(self) -> ProbeReport:
        """Look for devices. Never raises: what is missing or broken is told in the report's `unusable`."""

    @abstractmethod
    def open(self, index: int) -> Device:
        """Open the device that `probe` listed under `index`."""

    def finalize(self, index: int, image: Image, options: Sequence[str] = ()) -> Image | None:  # noqa: ARG002
        """Compile a portable image to the device's native binary; called in a compile worker, never in the driver.

        None where the vendor hands back no binary. Raises BuildError.
        """
        return None

    def build_identity(self, index: int) -> str:  # noqa: ARG002
        """Everything a native binary depends on besides its input (device, driver version), for the cache key."""
        return ""
