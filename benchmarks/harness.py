"""Building and running the measuring programs, and the rows they give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from zluda.testing.nvrtc import compile_cuda

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """One measured figure beside what it is compared with. `ratio` is set where there is a reference."""

    what: str
    ours: str
    reference: str = ""
    ratio: float | None = None
    target: str = ""
    met: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Bench:
    """A folder with the built programs and kernels, and the environments they run in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def environment(self) -> dict[str, str]:
        """What `zluda run` would give a program."""
        return {**os.environ, **json.loads(self._env("--json"))}

    @cached_property
    def opencl(self) -> tuple[str, dict[str, str]]:
        """The OpenCL ICD loader beside the CPU device, and the environment in which it finds that device."""
        prefix = Path(sys.prefix) / "lib"
        return str(prefix / "libOpenCL.so.1"), {
            **os.environ,
            "OCL_ICD_FILENAMES": str(prefix / "libintelocl.so"),
            "LD_LIBRARY_PATH": str(prefix),
        }

    @cached_property
    def pyopencl(self) -> dict[str, str]:
        """The environment in which pyopencl, which brings another loader, finds the same device."""
        prefix = Path(sys.prefix) / "lib"
        return {**os.environ, "OCL_ICD_VENDORS": str(prefix / "libintelocl.so"), "LD_LIBRARY_PATH": str(prefix)}

    @cached_property
    def driver_program(self) -> Path:
        return self._build(
            "driver_bench.c", f"-I{self._env('--include')}", f"-L{self._env('--library')}", "-l:libcuda.so.1"
        )

    @cached_property
    def opencl_program(self) -> Path:
        return self._build("opencl_bench.c", "-ldl")

    @cached_property
    def ptx(self) -> Path:
        """benchmarks/kernels.cu compiled by NVRTC for compute_80."""
        path = self.folder / "kernels.ptx"
        path.write_text(compile_cuda((HERE / "kernels.cu").read_bytes(), "kernels.cu"))
        return path

    @property
    def opencl_source(self) -> Path:
        return HERE / "kernels.cl"

    def driver(self, *arguments: object, cache: Path | None = None, trace: Path | None = None) -> list[dict[str, Any]]:
        """Run driver_bench, its calls traced into the folder `trace` if there is one; its JSON lines."""
        environment = self.environment
        if trace is not None:
            trace.mkdir(exist_ok=True)
            environment = {**environment, "ZLUDA_TRACE": str(trace)}
        if cache is not None:
            environment = {**environment, "ZLUDA_CACHE_DIR": str(cache)}
        return self._json([self.driver_program, *arguments], environment)

    def opencl_c(self, *arguments: object) -> list[dict[str, Any]]:
        """Run opencl_bench; its JSON lines."""
        library, environment = self.opencl
        return self._json([self.opencl_program, library, *arguments], environment)

    def python(self, script: str, *arguments: object) -> list[dict[str, Any]]:
        """Run one of the pyopencl scripts; its JSON lines."""
        return self._json([sys.executable, HERE / script, *arguments], self.pyopencl)

    @staticmethod
    def _env(flag: str) -> str:
        command = [sys.executable, "-m", "zluda", "env", flag]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    @staticmethod
    def _json(command: list[Any], environment: dict[str, str]) -> list[dict[str, Any]]:
        done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"benchmarks: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _build(self, source: str, *flags: str) -> Path:
        program = self.folder / Path(source).stem
        subprocess.run(["gcc", "-std=c11", "-O2", str(HERE / source), "-o", str(program), *flags], check=True)
        return program


def workspace() -> tempfile.TemporaryDirectory[str]:
    """A folder for programs, kernels and fresh caches, gone at the end."""
    return tempfile.TemporaryDirectory(prefix="zluda-bench-")
