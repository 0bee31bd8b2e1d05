"""The client library, built from the tree with gcc, and C programs on it."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from zluda.client.generate import generate

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = ROOT / "zluda" / "client" / "src"
PATHS = [ROOT, *sorted((ROOT / "backends").iterdir())]

BINDINGS_START = r"""
import ctypes
from cuda.bindings import driver
def check(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result
    return result[1:] if len(result) > 2 else result[1] if len(result) > 1 else None
check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
context = check(driver.cuDevicePrimaryCtxRetain(device))
check(driver.cuCtxSetCurrent(context))
"""
"""How a program on NVIDIA's bindings begins: `check`, and the device's primary context current."""

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
TIMEOUT = 60


def compile_c(arguments: list[str | Path]) -> None:
    done = subprocess.run(["gcc", "-std=c11", "-O1", "-g", *WARNINGS, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@dataclass
class Running:
    """A program that runs; `tag` marks its own driver process."""

    process: subprocess.Popen[str]
    tag: str

    def drivers(self) -> list[int]:
        """Process ids of its driver process and what that started."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != self.process.pid:
                try:
                    environment = (entry / "environ").read_bytes()
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                except OSError:
                    continue
                if f"ZLUDA_TEST_TAG={self.tag}".encode() in environment and state not in "ZX":
                    found.append(int(entry.name))
        return found

    def driver(self) -> int:
        """The one driver process."""
        (found,) = self.drivers()
        return found

    def expect(self, line: str) -> None:
        """Read up to a line of the program's output."""
        assert self.process.stdout is not None
        for text in self.process.stdout:
            if text.strip() == line:
                return
        raise AssertionError(f"the program ended without saying {line!r}: {self.process.stderr.read()}")  # type: ignore[union-attr]

    def gone_within(self, seconds: float) -> bool:
        """Whether the driver process goes away in that time."""
        until = time.monotonic() + seconds
        while self.drivers():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True


@dataclass
class Client:
    """The built library, and running programs on it."""

    folder: Path
    library: Path
    """Where libcuda.so.1 and cuda.h are."""
    running: list[Running] = field(default_factory=list)

    def build(self, name: str, *options: str) -> Path:
        """A program of programs/*.c."""
        program = self.folder / name.removesuffix(".c")
        compile_c(
            [
                HERE / "programs" / name,
                f"-I{self.library}",
                f"-L{self.library}",
                "-l:libcuda.so.1",
                "-lpthread",
                "-o",
                program,
                *options,
            ]
        )
        return program

    def environment(self, real: bool = False, **extra: str) -> dict[str, str]:
        """Variables under which a program finds the library; `real` for the installed backends."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("ZLUDA_", "CUDA_", "PYTHON"))}
        environment |= {
            "LD_LIBRARY_PATH": str(self.library),
            "ZLUDA_PYTHON": str(self.library / ("real_python" if real else "fake_python")),
        }
        return environment | extra

    def start(self, command: list[str | Path], environment: dict[str, str] | None = None) -> Running:
        """Start a program."""
        tag = uuid.uuid4().hex
        environment = (environment or self.environment()) | {"ZLUDA_TEST_TAG": tag}
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        )
        return self.adopt(process, tag)

    def adopt(self, process: subprocess.Popen[str], tag: str) -> Running:
        """Take care of a program that was started with ZLUDA_TEST_TAG set to `tag`."""
        self.running.append(Running(process, tag))
        return self.running[-1]

    def run(
        self, command: list[str | Path], environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; its driver must be gone a second later."""
        running = self.start(command, environment)
        try:
            out, err = running.process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            running.process.kill()
            out, err = running.process.communicate()
            raise AssertionError(f"{command} hangs; it said\n{out}\n{err}") from None
        assert running.gone_within(1.0), "the driver process is still there"
        return subprocess.CompletedProcess(command, running.process.returncode, out, err)

    def check(self, name: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
        """Build and run a program of programs/*.c that checks itself; its output."""
        done = self.run([self.build(name), *arguments], environment)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def stop(self) -> None:
        for running in self.running:
            if running.process.poll() is None:
                running.process.kill()
                running.process.communicate()
        self.running.clear()


def _script(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """The library, built once."""
    # One for all workers of a parallel run: the first builds, the others wait for it.
    worker = "PYTEST_XDIST_WORKER" in os.environ
    folder = (tmp_path_factory.getbasetemp().parent if worker else tmp_path_factory.getbasetemp()) / "client"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "libcuda.so.1").exists():
            build_library(folder)
    return Client(tmp_path_factory.mktemp("programs"), folder)


def build_library(folder: Path, *options: str) -> None:
    """cuda.h and libcuda.so.1, compiled with `options` besides."""
    generate(folder)
    part, entry = folder / "part.so", folder / "entry.o"
    common = ["-fPIC", "-fvisibility=hidden", f"-I{SOURCES}", f"-I{folder}", *options]
    # Half of all there is to compile, and the same thing over and over: without optimisation, beside the rest.
    compiling = subprocess.Popen(
        ["gcc", "-std=c11", "-O0", "-g1", *WARNINGS, *common, "-c", folder / "zl_entry.c", "-o", entry]
    )
    objects = [folder / f"{source.stem}.o" for source in SOURCES.glob("*.c")]
    for source in SOURCES.glob("*.c"):
        compile_c([*common, "-c", source, "-o", folder / f"{source.stem}.o"])
    assert compiling.wait() == 0
    links = ["-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-z,defs", "-Wl,-z,nodelete", "-lpthread", "-ldl"]
    compile_c([*objects, entry, *options, *links, "-o", part])
    path = f"export PYTHONPATH={':'.join(map(str, PATHS))}"
    # The library runs `$ZLUDA_PYTHON -P -m zluda.server --fd 3`, and clears PYTHONPATH.
    _script(folder / "fake_python", [path, f'exec "{sys.executable}" "{HERE / "fake_driver.py"}" --fd "$5"'])
    _script(folder / "real_python", [path, f'exec "{sys.executable}" "$@"'])
    part.rename(folder / "libcuda.so.1")


@pytest.fixture
def client(built: Client) -> Iterator[Client]:
    """The library and programs on it; those still running are ended."""
    yield built
    built.stop()
