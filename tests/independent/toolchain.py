"""CUDA C++ to PTX by NVRTC."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cuda.bindings import nvrtc

KERNELS = Path(__file__).parent / "kernels"
FLAGS = {"plain": (), "unfused": ("--fmad=false",), "debug": ("-G",), "fast": ("--use_fast_math",)}


@cache
def ptx(name: str, arch: str, flags: str) -> str:
    """PTX of kernels/NAME.cu."""
    source = (KERNELS / f"{name}.cu").read_bytes()
    error, program = nvrtc.nvrtcCreateProgram(source, f"{name}.cu".encode(), 0, [], [])
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS
    options = [f"--gpu-architecture={arch}".encode(), *(flag.encode() for flag in FLAGS[flags])]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise AssertionError(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b"\0 ").decode()
