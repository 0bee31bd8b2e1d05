"""A backend in memory, for tests of the core: it executes when it is told to, and starts nothing that was not flushed.

As strict as the seam allows: a command runs only after its queue's `flush` (waiting for a marker flushes the marker's
own queue, no other), work of different queues runs in whatever order the test chooses, and a marker that can never be
reached is an error instead of a hang.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from zluda.backend.info import (
    Argument,
    ArgumentKind,
    DeviceInfo,
    DeviceKind,
    DeviceLimits,
    Image,
    KernelSignature,
    ProbeReport,
    TargetInfo,
)
from zluda.backend.seam import (
    Backend,
    BackendError,
    BuildError,
    Device,
    Dim3,
    Kernel,
    LoadedModule,
    Marker,
    OutOfMemory,
    Queue,
)
from zluda.backend.selection import Selection
from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompiledImage, CompileRequest, KernelInfo, Parameter

WINDOW_BASE = 0x6000_0000_0000
DEVICE_BASE = 0x7000_0000_0000


class FakeWindow:
    """A window over a bytearray; first fit is enough here: addresses only go up, frees are recorded."""

    def __init__(self, size: int = 32 << 20) -> None:
        self.base = WINDOW_BASE
        self.size = size
        self.data = bytearray(size)
        self.live: dict[int, int] = {}
        self._next = self.base

    def allocate(self, size: int, alignment: int = 256) -> int:
        address = -(-self._next // alignment) * alignment
        if address + size > self.base + self.size:
            raise MemoryError("the fake window is full")
        self._next = address + size
        self.live[address] = size
        return address

    def free(self, address: int) -> None:
        size = self.live.pop(address)
        if address + size == self._next:
            self._next = address

    def show(self, address: int, size: int, source: int, access: int) -> None:
        raise AssertionError("virtual memory needs a window that is mapped")

    def view(self, address: int, size: int) -> memoryview:
        offset = address - self.base
        if not (offset >= 0 and offset + size <= self.size):
            raise ValueError(f"{address:#x} is outside the window")
        return memoryview(self.data)[offset : offset + size]


@dataclass
class Launch:
    """A launch as the backend saw it."""

    kernel: str
    grid: Dim3
    block: Dim3
    arguments: bytes
    shared_bytes: int


class FakeMarker(Marker):
    def __init__(self, queue: FakeQueue, timing: bool) -> None:
        self.queue = queue
        self.timing = timing
        self.time: float | None = None
        self.error: BackendError | None = None
        self.closed = 0
        queue.device.markers.append(self)

    @property
    def reached(self) -> bool:
        return self.time is not None or self.error is not None

    def query(self) -> bool:
        assert not self.closed
        self.queue.device.pump()
        if self.error:
            raise self.error
        return self.time is not None

    def synchronize(self) -> None:
        assert not self.closed
        device = self.queue.device
        with device.changed:
            self.queue.flush()
            while not self.reached:
                device.pump()
                if self.reached:
                    break
                if not device.held:
                    raise AssertionError("waiting for a marker that is never reached: a queue was not flushed")
                if not device.changed.wait(10):
                    raise AssertionError("waiting for a marker while the fake device is held")
        if self.error:
            raise self.error

    def elapsed(self, later: Marker) -> float:
        assert isinstance(later, FakeMarker) and self.timing and later.timing
        assert self.time is not None and later.time is not None
        return later.time - self.time

    def close(self) -> None:
        self.closed += 1


class FakeKernel(Kernel):
    def __init__(self, signature: KernelSignature) -> None:
        self.signature = signature
        self.max_threads_per_block = 512


class FakeModule(LoadedModule):
    def __init__(self, device: FakeDevice, image: Image) -> None:
        self.device = device
        self.image = image
        self.closed = 0
        self._kernels = {s.name: FakeKernel(s) for s in image.kernels}

    def kernel(self, name: str) -> Kernel:
        return self._kernels[name]

    def close(self) -> None:
        if not self.closed:
            self.device.log.append(("close module", self.image.kernels[0].name))
        self.closed += 1


class FakeQueue(Queue):
    def __init__(self, device: FakeDevice, priority: int) -> None:
        self.device = device
        self.priority = priority
        self.name = f"q{len(device.queues)}"
        self.commands: list[tuple[str, Callable[[], object]]] = []
        self.waits: dict[int, FakeMarker] = {}
        self.flushed = 0
        self.done = 0
        self.closed = 0
        self.calls: list[str] = []

    def _add(self, what: str, action: Callable[[], object]) -> None:
        assert not self.closed
        self.calls.append(what)
        if self.device.refuse is not None:
            error, self.device.refuse = self.device.refuse, None
            raise error
        self.commands.append((what, action))

    def copy(self, destination: int, source: int, size: int) -> None:
        def action() -> None:
            self.device.store(destination, bytes(self.device.bytes_at(source, size)))

        self._add("copy", action)

    def fill(self, destination: int, pattern: bytes, count: int) -> None:
        self._add("fill", lambda: self.device.store(destination, pattern * count))

    def launch(self, kernel: Kernel, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        launch = Launch(kernel.signature.name, grid, block, arguments, shared_bytes)
        assert len(arguments) == kernel.signature.packed_size

        def action() -> None:
            self.device.launches.append(launch)
            function = self.device.kernels.get(launch.kernel)
            if function is not None:
                function(launch)

        self._add(f"launch {launch.kernel}", action)

    def record(self, timing: bool = False) -> Marker:
        marker = FakeMarker(self, timing)

        def action() -> None:
            marker.time = self.device.clock
            marker.error = self.error

        self._add("record", action)
        return marker

    error: BackendError | None = None

    def wait(self, marker: Marker) -> None:
        assert isinstance(marker, FakeMarker) and not marker.closed
        self.waits[len(self.commands)] = marker
        self._add(f"wait {marker.queue.name}", lambda: None)

    def host_call(self, function: Callable[[], None]) -> None:
        self._add("host_call", function)

    def flush(self) -> None:
        assert not self.closed
        self.calls.append("flush")
        self.flushed = len(self.commands)

    def synchronize(self) -> None:
        raise AssertionError("the core waits for markers")

    def close(self) -> None:
        if not self.closed:
            self.device.log.append(("close queue", self.name))
            if self.done != len(self.commands):
                self.device.log.append(("closed with work in it", self.name))
        self.closed += 1

    def step(self) -> bool:
        """Run the next command, if it may run."""
        if self.done >= self.flushed:
            return False
        awaited = self.waits.get(self.done)
        if awaited is not None and not awaited.reached:
            return False
        what, action = self.commands[self.done]
        self.device.clock += 1.0
        self.device.order.append((self.name, what))
        try:
            action()
        except BackendError as error:
            self.error = error
        self.done += 1
        return True


class FakeDevice(Device):
    """`held` stops execution; `step(queue)` and `release()` let it go on."""

    def __init__(self, backend: FakeBackend, info: DeviceInfo) -> None:
        self.backend = backend
        self.info = info
        self.window = backend.window
        self.queues: list[FakeQueue] = []
        self.refused_images = 0
        self.modules: list[FakeModule] = []
        self.markers: list[FakeMarker] = []
        self.launches: list[Launch] = []
        self.kernels: dict[str, Callable[[Launch], None]] = {}
        self.order: list[tuple[str, str]] = []
        self.log: list[tuple[str, object]] = []
        self.memory_blocks: dict[int, bytearray] = {}
        self.capacity = 8 << 20
        self.clock = 0.0
        self.held = False
        self.refuse: BackendError | None = None
        self.closed = 0
        self.changed = threading.Condition(threading.RLock())
        self._next = DEVICE_BASE

    def hold(self) -> None:
        self.held = True

    def release(self) -> None:
        with self.changed:
            self.held = False
            self.pump()
            self.changed.notify_all()

    def pump(self) -> None:
        """Run whatever may run."""
        with self.changed:
            while not self.held and any([q.step() for q in self.queues]):
                pass

    def step(self, queue: FakeQueue, count: int = 1) -> None:
        with self.changed:
            for _ in range(count):
                assert queue.step()
            self.changed.notify_all()

    def bytes_at(self, address: int, size: int) -> memoryview:
        for base, block in self.memory_blocks.items():
            if base <= address and address + size <= base + len(block):
                return memoryview(block)[address - base : address - base + size]
        return self.window.view(address, size)

    def store(self, address: int, data: bytes) -> None:
        self.bytes_at(address, len(data))[:] = data

    def allocate(self, size: int, alignment: int = 256) -> int:
        if size + sum(map(len, self.memory_blocks.values())) > self.capacity:
            raise OutOfMemory("the fake device is full", call="fakeAllocate")
        address = -(-self._next // alignment) * alignment
        self._next = address + size
        self.memory_blocks[address] = bytearray(size)
        return address

    def free(self, address: int) -> None:
        self.log.append(("free", address))
        del self.memory_blocks[address]

    def memory(self) -> tuple[int, int]:
        return self.capacity - sum(map(len, self.memory_blocks.values())), self.capacity

    def create_queue(self, priority: int = 0) -> Queue:
        queue = FakeQueue(self, priority)
        self.queues.append(queue)
        return queue

    def load(self, image: Image) -> LoadedModule:
        if self.refused_images:
            self.refused_images -= 1
            raise BuildError("not this image", log="no", call="fakeLoad")
        module = FakeModule(self, image)
        self.modules.append(module)
        return module

    def close(self) -> None:
        self.log.append(("close device", self.info.index))
        self.closed += 1


def info(index: int, *, host_reaching: bool) -> DeviceInfo:
    return DeviceInfo(
        backend="fake",
        index=index,
        name=f"Fake device {index}",
        vendor="Nobody",
        kind=DeviceKind.CPU if host_reaching else DeviceKind.DISCRETE_GPU,
        uuid=uuid.uuid5(uuid.NAMESPACE_DNS, f"fake{index}").bytes,
        total_memory=8 << 20,
        driver_version="1",
        target=TargetInfo(name="spirv64"),
        limits=DeviceLimits(
            max_threads_per_block=4096,
            max_block_dim=(4096, 4096, 4096),
            shared_memory_per_block=65536,
            multiprocessors=4,
        ),
        capabilities=frozenset({"memory.system"} if host_reaching else ()),
    )


class FakeBackend(Backend):
    name = "fake"
    version = "0"

    def __init__(self, window: FakeWindow, infos: Sequence[DeviceInfo]) -> None:
        self.window = window
        self.infos = infos
        self.devices: dict[int, FakeDevice] = {}

    def probe(self) -> ProbeReport:
        return ProbeReport(backend=self.name, backend_version="0", devices=tuple(self.infos))

    def open(self, index: int) -> Device:
        return self.devices.setdefault(index, FakeDevice(self, self.infos[index]))

    def build_identity(self, index: int) -> str:
        return f"fake {index}"


def selection(window: FakeWindow, *, host_reaching: Sequence[bool] = (True,)) -> Selection:
    """A selection of fake devices, one for each item."""
    infos = tuple(info(i, host_reaching=reaches) for i, reaches in enumerate(host_reaching))
    return Selection(
        chosen=infos,
        usable=infos,
        passed_over=(),
        backends={"fake": FakeBackend(window, infos)},
    )


def kernel_info(
    name: str,
    sizes: Sequence[int] = (),
    *,
    hidden: Sequence[str] = (),
    flat: bool = False,
    static_shared: int = 0,
    max_threads: int | None = None,
    required_block: tuple[int, int, int] | None = None,
) -> KernelInfo:
    """A kernel with parameters of these sizes, each naturally aligned."""
    parameters, offset = [], 0
    for size in sizes:
        offset = -(-offset // size) * size
        parameters.append(Parameter(offset=offset, size=size, align=size))
        offset += size
    packed = offset
    if hidden:
        packed = -(-packed // 8) * 8 + sum(16 if name == "block" else 8 for name in hidden)
    arguments = tuple(Argument(kind=ArgumentKind.VALUE, offset=p.offset, size=p.size) for p in parameters)
    return KernelInfo(
        name=name,
        parameters=tuple(parameters),
        parameter_bytes=offset,
        hidden=tuple(hidden),
        signature=KernelSignature(name=name, arguments=arguments, packed_size=packed),
        static_shared_bytes=static_shared,
        flat=flat,
        max_threads=max_threads,
        required_block=required_block,
        ptx_version=(7, 8),
        sm=75,
    )


@dataclass
class FakeCompiler:
    """Hands back prepared kernels, by name; a name that is not prepared fails as unsupported PTX."""

    kernels: dict[str, KernelInfo] = field(default_factory=dict)
    requests: list[CompileRequest] = field(default_factory=list)
    forgotten: list[CompileRequest] = field(default_factory=list)
    gate: threading.Event | None = None

    def forget(self, request: CompileRequest) -> None:
        self.forgotten.append(request)

    def compile(self, request: CompileRequest) -> CompiledImage:
        self.requests.append(request)
        if self.gate is not None:
            assert self.gate.wait(10)
        found = []
        for name in request.entries:
            if name not in self.kernels:
                raise CompileError(f"{name}: nothing here is lowered", kind="unsupported", log="line 1: nothing")
            found.append(self.kernels[name])
        image = Image(format="fake", data=b"code", kernels=tuple(k.signature for k in found))
        return CompiledImage(image=image, kernels=tuple(found))


def ptx(*kernels: str, variables: str = "", version: str = "7.8") -> str:
    """A module with empty kernels, each a name, or a name with its parameters: `k(.param .u64 x)`."""
    entries = "\n".join(f".visible .entry {k if '(' in k else k + '()'} {{ ret; }}" for k in kernels)
    return f".version {version}\n.target sm_75\n.address_size 64\n{variables}\n{entries}\n"
