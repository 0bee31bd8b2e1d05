"""Modules: an image in a context, its data block, and its kernels, compiled when they are first needed."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from typing import TYPE_CHECKING, NoReturn

from zluda.backend.seam import BackendError, BuildError, Kernel
from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompiledImage, CompileRequest, KernelInfo
from zluda.core.errors import CudaError, from_backend, invalid_handle
from zluda.core.function import Function
from zluda.core.image import NEWEST_PTX, index_of, ptx_of
from zluda.core.memory import Allocation
from zluda.core.options import JitOptions
from zluda.core.wait import Wait
from zluda.ptx.errors import PtxError

if TYPE_CHECKING:
    from zluda.backend.seam import LoadedModule
    from zluda.compiler.lower.data import DataLayout
    from zluda.core.context import Context
    from zluda.ptx.index import ModuleIndex
    from zluda.ptx.tree import Variable

PARSED_AT_LOAD = 256 << 10
"""Characters of PTX up to which a module is parsed as a whole when it is loaded, so that syntax errors show then."""

_logger = logging.getLogger("zluda.core")
_numbers = itertools.count(1)


class Module:
    """A CUmodule. Made by `Context.load_module`."""

    def __init__(self, context: Context, image: bytes | str, options: JitOptions, name: str) -> None:
        started = time.perf_counter()
        self.context = context
        self.options = options
        self.name = name or f"<module {next(_numbers)}>"
        """For messages."""
        self.loaded = True
        self.info_log = ""
        """For CU_JIT_INFO_LOG_BUFFER."""
        self._functions: dict[str, Function] = {}
        self._images: list[LoadedModule] = []
        self._lock = threading.Lock()
        self._ptx = ptx_of(image, self.name, context.device.compute_capability)
        self._index = self._indexed()
        self._entries = self._index.entries
        _logger.info("loaded %s: %s", self.name, _listed(self._entries))
        self._layout = self._laid_out()
        self._block: Allocation | None = None
        if self._layout.size:
            self._block = context.allocate_module(self._layout.size)
            try:
                self._fill_block()
            except CudaError:
                context.release_wait(self._block).block()
                raise
        try:
            if options.error_log:
                self.compile(self.function_names)
        except CudaError:
            self.close()
            raise
        self.wall_time = (time.perf_counter() - started) * 1e3
        """Milliseconds that loading took (CU_JIT_WALL_TIME)."""

    # --- loading ----------------------------------------------------------------------------------------

    def _indexed(self) -> ModuleIndex:
        whole = self.options.error_log or len(self._ptx) <= PARSED_AT_LOAD
        index = index_of(self._ptx, self.name, whole=whole)
        if index.version > NEWEST_PTX:
            self._note(f"{self.name}: PTX ISA {index.version[0]}.{index.version[1]} is newer than 9.0; trying it")
        return index

    def _laid_out(self) -> DataLayout:
        from zluda.compiler.lower.data import layout

        return layout(self._index.variables.values(), self._index.functions)

    def _fill_block(self) -> None:
        from zluda.compiler.lower.data import build

        assert self._block is not None
        try:
            data = build(self._layout, self._block.address, self._index.source)
        except PtxError as error:
            raise self._refused(CudaError("CUDA_ERROR_INVALID_PTX", str(error), log=str(error))) from error
        self.context.write(self._block.address, data)

    def _refused(self, error: CudaError) -> CudaError:
        _logger.error("%s", error.message)
        return error

    def _note(self, text: str) -> None:
        _logger.info("%s", text)
        self.info_log += text + "\n"

    # --- functions --------------------------------------------------------------------------------------

    @property
    def function_names(self) -> tuple[str, ...]:
        """The kernels, in the order of the PTX."""
        self._check()
        return self._entries

    @property
    def function_count(self) -> int:
        """cuModuleGetFunctionCount."""
        return len(self.function_names)

    def functions(self, count: int | None = None) -> list[Function]:
        """cuModuleEnumerateFunctions: the first `count` functions (all if None); none is compiled for it."""
        names = self.function_names
        return [self._function(name) for name in names[: len(names) if count is None else count]]

    def function(self, name: str) -> Function:
        """cuModuleGetFunction: a kernel, compiled and on the device.

        Blocks while it compiles, without locks. CUDA_ERROR_NOT_FOUND; CUDA_ERROR_INVALID_PTX, with the reason in
        `CudaError.log`, for what cannot be compiled.
        """
        self._check()
        function = self._function(name)
        function.load()
        return function

    def declared_parameters(self, name: str) -> tuple[Variable, ...]:
        """The parameters of a kernel as the PTX declares them."""
        return tuple(self._index.entry_signature(name).parameters)

    def _function(self, name: str) -> Function:
        with self._lock:
            function = self._functions.get(name)
            if function is None:
                if name not in self._entries:
                    raise CudaError("CUDA_ERROR_NOT_FOUND", f"{self.name} has no kernel named {name}")
                function = self._functions[name] = Function(self, name)
            return function

    def compile(self, names: tuple[str, ...]) -> None:
        """Compile kernels together and put them on the device."""
        if not names:
            return
        self._check()
        device = self.context.device
        request = CompileRequest(
            ptx=self._ptx,
            name=self.name,
            entries=names,
            target=device.info.target,
            backend=device.info.backend,
            device_index=device.info.index,
            build_identity=device.build_identity,
        )
        try:
            self._put(self._compiled(request))
        except BuildError as error:
            # What came from the cache may be a binary that this device no longer takes.
            self._note(f"{self.name}: {device.info.name} refuses the image of {', '.join(names)}, made anew: {error}")
            device.driver.compiler.forget(request)
            try:
                self._put(self._compiled(request))
            except BuildError as again:
                raise self._refused(from_backend(again)) from again

    def _compiled(self, request: CompileRequest) -> CompiledImage:
        try:
            return self.context.device.driver.compiler.compile(request)
        except CompileError as error:
            raise self._refused(_compile_failed(error)) from error

    def _put(self, compiled: CompiledImage) -> None:
        """Raises BuildError if the device refuses the image, CudaError for everything else."""
        if compiled.log:
            self._note(compiled.log)
        device = self.context.device
        with device.lock:
            self._check()
            self.context.check()
            try:
                image = device.open().load(compiled.image)
                self._images.append(image)
                for info in compiled.kernels:
                    self._adopt(info, image.kernel(info.name))
            except BuildError:
                raise
            except BackendError as error:
                raise self._refused(from_backend(error)) from error

    def _adopt(self, info: KernelInfo, kernel: Kernel) -> None:
        self._function(info.name).adopt(info, kernel)

    # --- variables --------------------------------------------------------------------------------------

    @property
    def data_address(self) -> int:
        """Address of the data block; 0 for a module without variables."""
        return self._block.address if self._block else 0

    def global_variable(self, name: str) -> tuple[int, int]:
        """cuModuleGetGlobal: address and size of a .global or .const variable. CUDA_ERROR_NOT_FOUND."""
        self._check()
        place = self._layout.places.get(name)
        if place is None or self._block is None:
            raise CudaError("CUDA_ERROR_NOT_FOUND", f"{self.name} has no variable named {name}")
        return self._block.address + place.offset, place.size

    def managed_variable(self, name: str) -> tuple[int, int]:
        """cuLibraryGetManaged: address and size of a variable with `.attribute(.managed)`.

        CUDA_ERROR_NOT_FOUND; CUDA_ERROR_NOT_SUPPORTED where the host does not reach device memory.
        """
        self._check()
        variable = self._index.variables.get(name)
        if variable is None or all(attribute != "managed" for attribute, _ in variable.attributes):
            raise CudaError("CUDA_ERROR_NOT_FOUND", f"{self.name} has no managed variable named {name}")
        if not self.context.device.host_reaching:
            raise CudaError("CUDA_ERROR_NOT_SUPPORTED", f"{name}: managed variables need memory that the host reaches")
        return self.global_variable(name)

    def reference(self, name: str, kind: str) -> NoReturn:
        """cuModuleGetTexRef ("texref"), cuModuleGetSurfRef ("surfref").

        CUDA_ERROR_NOT_FOUND; CUDA_ERROR_NOT_SUPPORTED for a reference that exists: textures are not built.
        """
        self._check()
        variable = self._index.variables.get(name)
        if variable is None or variable.type != kind:
            raise CudaError("CUDA_ERROR_NOT_FOUND", f"{self.name} has no {kind} named {name}")
        raise CudaError("CUDA_ERROR_NOT_SUPPORTED", f"{name}: texture and surface references are not built")

    # --- the end ----------------------------------------------------------------------------------------

    def unload(self) -> None:
        """cuModuleUnload, waiting for work in flight."""
        self.unload_wait().block()

    def unload_wait(self) -> Wait:
        """Unload: functions and variables are invalid at once, memory and code go after the work in flight."""
        self._check()
        context = self.context
        wait = context.wait_handle()
        with context.device.lock:
            self._check()
            self.loaded = False
            context.forget_module(self)
            for function in self._functions.values():
                function.unload()
        block = self._block

        def release() -> None:
            with context.device.lock:
                self._close_images()
            if block is not None and self._block is not None:
                self._block = None
                context.release_wait(block)

        return wait.then(release)

    def close(self) -> None:
        """Release code at once; the context is being emptied, or the module was never handed out."""
        with self.context.device.lock:
            self.loaded = False
            self._close_images()
            block, self._block = self._block, None
        if block is not None:
            self.context.release_wait(block)

    def _close_images(self) -> None:
        for function in self._functions.values():
            function.unload()
        images, self._images = self._images, []
        for image in images:
            image.close()

    def _check(self) -> None:
        if not self.loaded:
            raise invalid_handle(f"{self.name} was unloaded")


def _listed(names: tuple[str, ...]) -> str:
    """Kernels in a few words."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"kernel {names[0]}{more}" if names else "no kernel"


def _compile_failed(error: CompileError) -> CudaError:
    """Every failure to translate is a failed PTX JIT compilation; a time limit or a defect keeps its words."""
    log = error.message if not error.log else f"{error.message}\n{error.log}"
    return CudaError("CUDA_ERROR_INVALID_PTX", error.message, log=log)
