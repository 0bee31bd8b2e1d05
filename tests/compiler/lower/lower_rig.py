"""Compiles CUDA C++ (NVRTC) and PTX, and runs whole kernels on the OpenCL CPU device."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cpu import device, queue

from zluda.backend.seam import Dim3
from zluda.compiler.kernel import CompileRequest, KernelInfo
from zluda.compiler.lower import Lowered, lower
from zluda.compiler.lower.data import build, layout
from zluda.compiler.portable import compile_portable
from zluda.compiler.target import target_for
from zluda.ptx.index import index_module
from zluda.testing.nvrtc import compile_cuda

Argument = np.ndarray[Any, Any] | np.generic | bytes

KERNELS = Path(__file__).parent / "kernels"
HEADER = ".version 8.7\n.target sm_90\n.address_size 64\n"


@cache
def cuda_ptx(name: str, arch: str) -> str:
    """PTX that NVRTC makes of kernels/NAME.cu."""
    return compile_cuda((KERNELS / f"{name}.cu").read_bytes(), f"{name}.cu", arch)


def lowered(ptx: str, *entries: str) -> Lowered:
    """LLVM IR and kernels, for looking at."""
    index = index_module(ptx, "<test>")
    return lower(index, entries or index.entries, target_for(device().info.target))


class Module:
    """A compiled and loaded module with its data block."""

    def __init__(self, ptx: str, *entries: str) -> None:
        self.index = index_module(ptx, "<test>")
        request = CompileRequest(ptx=ptx, name="<test>", entries=entries, target=device().info.target)
        compiled = compile_portable(request)
        self.loaded = device().load(compiled.image)
        self.infos: dict[str, KernelInfo] = {info.name: info for info in compiled.kernels}
        self.layout = layout(self.index.variables.values(), self.index.functions)
        self.block = aligned(np.zeros(max(16, self.layout.size), np.uint8))
        data = build(self.layout, self.block.ctypes.data, self.index.source)
        self.block[: len(data)] = np.frombuffer(data, np.uint8)

    def launch(
        self, name: str, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Argument], shared: int = 0
    ) -> None:
        """Run a kernel to its end; arrays are passed by address, bytes and numbers by value."""
        info = self.infos[name]
        sizes = (*block, 1, 1)[:3]
        packed = bytearray(info.signature.packed_size)
        for parameter, argument in zip(info.parameters, arguments, strict=True):
            data = _bytes(argument)
            assert len(data) == parameter.size, (name, parameter, len(data))
            packed[parameter.offset : parameter.offset + parameter.size] = data
        at = -(-info.parameter_bytes // 8) * 8
        for hidden in info.hidden:
            data = {"module": struct.pack("<Q", self.block.ctypes.data), "block": struct.pack("<4I", *sizes, 0)}[hidden]
            packed[at : at + len(data)] = data
            at += len(data)
        threads = Dim3(sizes[0] * sizes[1] * sizes[2], 1, 1) if info.flat else Dim3(*sizes)
        bytes_shared = info.static_shared_bytes + shared
        queue().launch(self.loaded.kernel(name), Dim3(*(*grid, 1, 1)[:3]), threads, bytes(packed), bytes_shared)
        queue().synchronize()


def _bytes(argument: Argument) -> bytes:
    if isinstance(argument, bytes):
        return argument
    if isinstance(argument, np.ndarray):
        return struct.pack("<Q", argument.ctypes.data)
    return argument.tobytes()


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy at a multiple of 256 bytes, as CUDA allocations are."""
    raw = np.zeros(array.nbytes + 256, np.uint8)
    start = -raw.ctypes.data % 256
    view = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def poisoned(*shape: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    """An output that nothing was written to yet: all 77."""
    return aligned(np.full(shape, 77, dtype))
