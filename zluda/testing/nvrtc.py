"""CUDA C++ to PTX by NVRTC, which needs no GPU (PyPI: cuda-bindings, nvidia-cuda-nvrtc): for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class NvrtcError(Exception):
    """NVRTC refused something; the message is its result, and its log where there is one."""


def compile_cuda(source: bytes, name: str, arch: str = "compute_80", options: Sequence[str] = ()) -> str:
    """PTX of CUDA C++ text called `name`, for an architecture such as `compute_80`. Raises NvrtcError."""
    from cuda.bindings import nvrtc

    def check(result: tuple[Any, ...], log: str = "") -> Any:
        error, *values = result
        if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise NvrtcError(f"{name}: {error.name}\n{log}".rstrip())
        return values[0] if values else None

    program = check(nvrtc.nvrtcCreateProgram(source, name.encode(), 0, [], []))
    try:
        flags = [f"--gpu-architecture={arch}".encode(), *(option.encode() for option in options)]
        compiled = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program)))
        check(nvrtc.nvrtcGetProgramLog(program, log))
        check(compiled, log.rstrip(b"\0 ").decode())
        ptx = bytearray(check(nvrtc.nvrtcGetPTXSize(program)))
        check(nvrtc.nvrtcGetPTX(program, ptx))
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return ptx.rstrip(b"\0").decode()
