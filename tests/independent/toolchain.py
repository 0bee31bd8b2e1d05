"""CUDA C++ to PTX by NVRTC."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from zluda.testing.nvrtc import compile_cuda

KERNELS = Path(__file__).parent / "kernels"
FLAGS = {"plain": (), "unfused": ("--fmad=false",), "debug": ("-G",), "fast": ("--use_fast_math",)}


@cache
def ptx(name: str, arch: str, flags: str) -> str:
    """PTX of kernels/NAME.cu."""
    return compile_cuda((KERNELS / f"{name}.cu").read_bytes(), f"{name}.cu", arch, FLAGS[flags])
