"""Functions: a kernel of a module, its attributes, and its launches."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from zluda.backend.seam import BackendError, Dim3, Kernel
from zluda.compiler.kernel import KernelInfo
from zluda.core.arguments import argument_bytes
from zluda.core.errors import CudaError, from_backend, invalid_handle, invalid_value
from zluda.core.occupancy import Occupancy
from zluda.spec.attributes import function_attributes, numbers

if TYPE_CHECKING:
    from zluda.core.module import Module
    from zluda.core.stream import Stream


Dimensions = Sequence[int]

_KEPT = {
    "CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH": 1,
    "CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT": 1,
    "CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH": 1,
    "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED": 1,
    "CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE": 2,
}
"""Attributes that change nothing without clusters, and the greatest value of each: a cluster is one block."""


class _Plan(NamedTuple):
    """A launch configuration that was checked, ready to be used again."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    device_grid: Dim3
    device_block: Dim3
    device_shared: int
    """Static and dynamic shared memory together: the kernel's one shared block."""
    hidden: bytes
    """What follows the CUDA parameter block: padding and hidden arguments."""


class Function:
    """A CUfunction. Made by `Module.function`; those of `Module.functions` are compiled by `load` or a launch."""

    def __init__(self, module: Module, name: str) -> None:
        self.module = module
        self.name = name
        self.context = module.context
        self._info: KernelInfo | None = None
        self._kernel: Kernel | None = None
        self._lock = threading.Lock()
        self._device_lock = module.context.device.lock
        self._max_dynamic_shared = 0
        self._carveout = -1
        self._kept: dict[str, int] = {}
        self._size = -1
        self._plan: _Plan | None = None

    def __repr__(self) -> str:
        return f"<Function {self.name} of {self.module.name}>"

    # --- loading ----------------------------------------------------------------------------------------

    @property
    def loaded(self) -> bool:
        """cuFuncIsLoaded: whether it is compiled and on the device."""
        return self._kernel is not None

    def load(self) -> None:
        """cuFuncLoad: compile the kernel if it is not; blocks without holding the device. As `Module.function`."""
        if self._kernel is None:
            with self._lock:
                if self._kernel is None:
                    self.module.compile((self.name,))

    def adopt(self, info: KernelInfo, kernel: Kernel) -> None:
        """Take the compiled kernel. The device's lock is held."""
        device = self.context.device
        if info.signature.packed_size != _packed_size(info):
            message = (
                f"{self.name} takes {info.signature.packed_size} bytes of arguments, its parts {_packed_size(info)}"
            )
            raise CudaError("CUDA_ERROR_UNKNOWN", message)
        self._info = info
        default = device.attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK")
        self._max_dynamic_shared = max(0, default - info.static_shared_bytes)
        self._size = info.parameter_bytes
        self._plan = None
        self._kernel = kernel

    def unload(self) -> None:
        """Forget the kernel; its module goes."""
        self._kernel = None
        self._plan = None

    @property
    def info(self) -> KernelInfo:
        """What the compiler says about the kernel; compiles it if it is not."""
        if self._info is None:
            self._check()
            self.load()
        assert self._info is not None
        return self._info

    # --- attributes -------------------------------------------------------------------------------------

    def attribute(self, attribute: int | str) -> int:
        """cuFuncGetAttribute, by number or CU_FUNC_ATTRIBUTE_* name. CUDA_ERROR_INVALID_VALUE for an unknown one."""
        self._check()
        number = numbers().get(attribute, -1) if isinstance(attribute, str) else attribute
        spec = function_attributes().get(number)
        if spec is None:
            raise invalid_value(f"no function attribute {attribute}")
        if spec.value is not None:
            return spec.value
        info = self.info
        match spec.property:
            case "max_threads_per_block":
                return self.max_threads_per_block
            case "static_shared_bytes":
                return info.static_shared_bytes
            case "const_bytes":
                return info.const_bytes
            case "local_bytes":
                return max(info.local_bytes, self._loaded_kernel().private_bytes)
            case "ptx_version":
                return info.ptx_version[0] * 10 + info.ptx_version[1]
            case "binary_version":
                major, minor = self.context.device.compute_capability
                return major * 10 + minor
            case "max_dynamic_shared":
                return self._max_dynamic_shared
            case "shared_carveout":
                return self._carveout
            case "kept":
                return self._kept.get(spec.name, 0)
        raise KeyError(f"spec/attributes.toml: the core computes no {spec.property}")

    def set_attribute(self, attribute: int | str, value: int) -> None:
        """cuFuncSetAttribute: the greatest dynamic shared size, or one that is only kept.

        CUDA_ERROR_INVALID_VALUE for another attribute or a value out of its range; CUDA_ERROR_NOT_SUPPORTED for
        clusters of several blocks.
        """
        self._check()
        number = numbers().get(attribute, -1) if isinstance(attribute, str) else attribute
        spec = function_attributes().get(number)
        settable = spec.property if spec is not None and spec.settable else None
        if settable == "max_dynamic_shared":
            limit = self.context.device.attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
            if not 0 <= value <= limit - self.info.static_shared_bytes:
                static = self.info.static_shared_bytes
                raise invalid_value(
                    f"{value} bytes of dynamic and {static} of static shared memory; {limit} is the limit"
                )
            self._max_dynamic_shared = value
            self._plan = None
        elif settable == "shared_carveout":
            if not -1 <= value <= 100:
                raise invalid_value(f"a carve-out of {value} percent")
            self._carveout = value
        elif settable == "kept" and spec is not None:
            if value < 0 or (value > _KEPT[spec.name] and "REQUIRED" not in spec.name):
                raise invalid_value(f"{spec.name} of {value}")
            if value > _KEPT[spec.name]:
                raise CudaError("CUDA_ERROR_NOT_SUPPORTED", f"{spec.name} of {value}: there are no clusters")
            self._kept[spec.name] = value
        else:
            raise invalid_value(f"function attribute {attribute} cannot be set")

    @property
    def max_threads_per_block(self) -> int:
        """The most threads a launch may have: of the device, the vendor's compiler, and .maxntid or .reqntid."""
        limits = [
            self.context.device.attribute("CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK"),
            self._loaded_kernel().max_threads_per_block,
        ]
        if self.info.max_threads is not None:
            limits.append(self.info.max_threads)
        return min(limits)

    def parameter(self, index: int) -> tuple[int, int]:
        """cuFuncGetParamInfo: offset and size of a parameter, bytes. CUDA_ERROR_INVALID_VALUE past the last."""
        parameters = self.info.parameters
        if not 0 <= index < len(parameters):
            raise invalid_value(f"{self.name} has {len(parameters)} parameters, none is number {index}")
        return parameters[index].offset, parameters[index].size

    @property
    def occupancy(self) -> Occupancy:
        """What cuOccupancy* functions answer."""
        return Occupancy(
            self.context.device,
            self.max_threads_per_block,
            self.info.static_shared_bytes,
            self._max_dynamic_shared,
        )

    # --- launches ---------------------------------------------------------------------------------------

    def pack(self, values: Sequence[Any]) -> bytes:
        """The parameter block for Python values: each by its parameter's declared type, see `argument_bytes`.

        CUDA_ERROR_INVALID_VALUE where number, range or size do not fit; TypeError for what is no argument at all.
        """
        info = self.info
        if len(values) != len(info.parameters):
            raise invalid_value(f"{self.name} takes {len(info.parameters)} arguments, {len(values)} were given")
        block = bytearray(info.parameter_bytes)
        declared = self.module.declared_parameters(self.name)
        for index, (value, parameter, variable) in enumerate(zip(values, info.parameters, declared, strict=True)):
            data = argument_bytes(value, variable, parameter.size, index, self.name)
            block[parameter.offset : parameter.offset + parameter.size] = data
        return bytes(block)

    def launch(
        self,
        grid: Dimensions,
        block: Dimensions,
        arguments: bytes = b"",
        shared_bytes: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """cuLaunchKernel: `grid` blocks of `block` threads (three numbers each) in `stream` (None: the default one).

        `arguments` is the packed parameter block: what `extra` holds, or kernelParams put at their offsets.
        CUDA_ERROR_INVALID_VALUE for dimensions of 0 or above the device's or the kernel's limits, too little argument
        data, or too much dynamic shared memory; CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES for too much argument data or more
        threads than the vendor's compiler made the kernel for; CUDA_ERROR_INVALID_HANDLE for another context's stream.
        """
        kernel = self._kernel
        if kernel is None:
            kernel = self._loaded_kernel()
        plan = self._plan
        if plan is None or plan.grid != grid or plan.block != block or plan.shared_bytes != shared_bytes:
            plan = self._make_plan(kernel, tuple(grid), tuple(block), shared_bytes)
        if len(arguments) != self._size:
            arguments = self._fitted(arguments)
        context = self.context
        if stream is None:
            stream = context.legacy
        elif stream.context is not context:
            raise invalid_handle("the function and the stream belong to different contexts")
        with self._device_lock:
            queue = stream.enter()
            try:
                queue.launch(kernel, plan.device_grid, plan.device_block, arguments + plan.hidden, plan.device_shared)
            except BackendError as error:
                raise context.fail(from_backend(error)) from error

    def _make_plan(self, kernel: Kernel, grid: tuple[int, ...], block: tuple[int, ...], shared_bytes: int) -> _Plan:
        info, device = self.info, self.context.device
        if len(grid) != 3 or len(block) != 3:
            raise invalid_value("grid and block have three dimensions")
        for what, dims in (("GRID", grid), ("BLOCK", block)):
            for axis, extent in zip("XYZ", dims, strict=True):
                limit = device.attribute(f"CU_DEVICE_ATTRIBUTE_MAX_{what}_DIM_{axis}")
                if not 0 < extent <= limit:
                    raise invalid_value(f"{what.lower()} dimension {axis.lower()} of {extent}; 1 to {limit} is allowed")
        threads = block[0] * block[1] * block[2]
        limit = device.attribute("CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK")
        if threads > limit:
            raise invalid_value(f"blocks of {threads} threads; {limit} is the limit")
        if info.required_block is not None and block != info.required_block:
            raise invalid_value(f"{self.name} requires blocks of {info.required_block}, not {block}")
        if info.max_threads is not None and threads > info.max_threads:
            raise invalid_value(
                f"{self.name} was compiled for blocks of at most {info.max_threads} threads, not {threads}"
            )
        if threads > kernel.max_threads_per_block:
            message = f"{self.name} runs with at most {kernel.max_threads_per_block} threads to a block, not {threads}"
            raise CudaError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", message)
        if not 0 <= shared_bytes <= self._max_dynamic_shared:
            message = f"{shared_bytes} bytes of dynamic shared memory; {self._max_dynamic_shared} are allowed"
            raise invalid_value(f"{message} (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)")
        plan = _Plan(
            grid,
            block,
            shared_bytes,
            Dim3(*grid),
            Dim3(threads) if info.flat else Dim3(*block),
            info.static_shared_bytes + shared_bytes,
            self._hidden(info, block),
        )
        self._plan = plan
        return plan

    def _hidden(self, info: KernelInfo, block: tuple[int, ...]) -> bytes:
        parts = [bytes(_padding(info))]
        for name in info.hidden:
            if name == "module":
                parts.append(self.module.data_address.to_bytes(8, "little"))
            elif name == "block":
                parts.append(struct.pack("<4I", *block, 0))
            else:
                raise CudaError("CUDA_ERROR_NOT_SUPPORTED", f"{self.name} needs the hidden argument {name!r}")
        return b"".join(parts)

    def _fitted(self, arguments: bytes) -> bytes:
        """Argument data of another size than the parameter block's: a structure padded at its end is cut."""
        size = self.info.parameter_bytes
        if len(arguments) < size:
            raise invalid_value(f"{self.name} takes {size} bytes of arguments, {len(arguments)} were given")
        if len(arguments) > -(-size // 16) * 16:
            message = f"{self.name} takes {size} bytes of arguments, {len(arguments)} were given"
            raise CudaError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", message)
        return bytes(arguments[:size])

    def _loaded_kernel(self) -> Kernel:
        self._check()
        self.load()
        kernel = self._kernel
        assert kernel is not None
        return kernel

    def _check(self) -> None:
        if not self.module.loaded:
            raise invalid_handle(f"the module of {self.name} was unloaded")


def _padding(info: KernelInfo) -> int:
    """Bytes between the parameter block and the hidden arguments, which start at a multiple of 8."""
    return -info.parameter_bytes % 8 if info.hidden else 0


def _packed_size(info: KernelInfo) -> int:
    return info.parameter_bytes + _padding(info) + sum(16 if name == "block" else 8 for name in info.hidden)
