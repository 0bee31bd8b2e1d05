"""An opened device on each memory road, and kernels emitted from LLVM IR."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator

import pytest
from zluda_opencl.backend import OpenCLBackend
from zluda_opencl.device import OpenCLDevice

from zluda.backend.info import Argument, ArgumentKind, Image, KernelSignature
from zluda.compiler.emit import spirv
from zluda.compiler.validate import validate

PREAMBLE = """
target triple = "spirv64-unknown-unknown"
declare spir_func i64 @_Z13get_global_idj(i32)
declare spir_func i64 @_Z12get_local_idj(i32)
declare spir_func i64 @_Z12get_group_idj(i32)
declare spir_func i64 @_Z14get_local_sizej(i32)
"""


def emit(ir: str) -> bytes:
    """Valid SPIR-V of textual IR. LLVM emits only one module of a process right, so this goes through the emitter."""
    module = spirv(PREAMBLE + ir)
    validate(module)
    return module


def signature(name: str, *arguments: tuple[str, int]) -> KernelSignature:
    """A signature from (kind, size), packed at natural alignment."""
    offset, out = 0, []
    for kind, size in arguments:
        if kind == "shared":
            out.append(Argument(kind=ArgumentKind.SHARED))
            continue
        offset = -(-offset // size) * size
        out.append(Argument(kind=ArgumentKind(kind), offset=offset, size=size))
        offset += size
    return KernelSignature(name=name, arguments=tuple(out), packed_size=offset)


def make_image(ir: str, *signatures: KernelSignature) -> Image:
    return Image(format="spirv", data=emit(ir), kernels=signatures)


class HostBytes:
    """Host memory with an address."""

    def __init__(self, content: bytes) -> None:
        self._map = mmap.mmap(-1, max(1, len(content)))
        self._map.write(content)
        self._size = len(content)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    @property
    def bytes(self) -> bytes:
        return self._map[: self._size]


@pytest.fixture(scope="session")
def backend() -> OpenCLBackend:
    return OpenCLBackend()


@pytest.fixture(scope="module", params=["usm", "svm"])
def device(request: pytest.FixtureRequest, backend: OpenCLBackend) -> Iterator[OpenCLDevice]:
    report = backend.probe()
    assert report.devices, report.unusable
    handle, info = backend._device(report.devices[0].index)
    opened = OpenCLDevice(info, handle, prefer_svm=request.param == "svm")
    yield opened
    opened.close()


@pytest.fixture
def host() -> type[HostBytes]:
    return HostBytes


@pytest.fixture(scope="session")
def sign() -> Callable[..., KernelSignature]:
    return signature


@pytest.fixture(scope="session")
def image() -> Callable[..., Image]:
    return make_image
