"""Finding OpenCL drivers (ICDs): the system's, the user's, and those that pip or conda installed."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path

from zluda.backend.info import Unusable

SYSTEM_VENDORS = "/etc/OpenCL/vendors"
INTEL_CPU = "libintelocl.so"
INTEL_CPU_DISTRIBUTION = "intel-opencl-rt"
FEW_CORES = 4
INSTALL = "install your device's OpenCL driver; for an x86-64 CPU: pip install 'zluda-opencl[cpu]'"


@dataclass(frozen=True)
class Driver:
    """A driver library as an .icd file names it (a path, or a name for the dynamic linker), and who said so."""

    library: str
    source: str


def find_drivers(environment: Mapping[str, str]) -> list[Driver]:
    """All drivers, each library once.

    In order: what `OCL_ICD_VENDORS` names (as ocl-icd reads it: a directory of .icd files, one .icd file, or a
    library), else `OPENCL_VENDOR_PATH`, else /etc/OpenCL/vendors; the libraries of `OCL_ICD_FILENAMES`; the .icd files
    of the Python environment; Intel's CPU runtime from PyPI, whose own .icd file names a path of its build machine.
    """
    found = list(_user_or_system(environment))
    for name in filter(None, environment.get("OCL_ICD_FILENAMES", "").split(":")):
        found.append(Driver(name, "OCL_ICD_FILENAMES"))
    for directory in _environment_directories():
        # A library beside its .icd file is named without a path; one that is missing is a packaging error (Intel's
        # wheel names a path of its build machine) that the user can do nothing about.
        for driver in _directory(directory):
            path = directory / driver.library
            if path.is_file():
                found.append(Driver(str(path), driver.source))
    if (intel := _intel_cpu_runtime()) is not None:
        found.append(Driver(str(intel), INTEL_CPU_DISTRIBUTION))

    # Links are followed: Intel's runtime looks for its parts beside the path that it was loaded by.
    unique: dict[str, Driver] = {}
    for driver in found:
        library = os.path.realpath(driver.library) if "/" in driver.library else driver.library
        unique.setdefault(library, Driver(library, driver.source))
    return list(unique.values())


def loadable(drivers: list[Driver]) -> tuple[list[Driver], list[Unusable]]:
    """Load each driver library: those that load, and the reasons of those that do not (the ICD loader gives none)."""
    good, bad = [], []
    for driver in drivers:
        try:
            _load(driver.library)
        except OSError as error:
            bad.append(
                Unusable(
                    what=f"OpenCL driver {driver.library} (from {driver.source})",
                    why=f"the library does not load: {error}",
                    remedy=_load_remedy(driver, str(error)),
                )
            )
        else:
            good.append(driver)
    return good, bad


def _load(library: str) -> None:
    # Called through ctypes, dlopen runs without Python's lock: a library that hangs while it loads must not stop the
    # other probes. ctypes.CDLL keeps the lock, and tells the reason of a failure.
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    if not dlopen(os.fsencode(library), os.RTLD_NOW):
        ctypes.CDLL(library)


@contextmanager
def offered(drivers: list[Driver]) -> Iterator[None]:
    """While this lasts, an ICD loader that starts (ocl-icd or Khronos) finds exactly these drivers.

    Both loaders read a vendors directory from OCL_ICD_VENDORS at their first call, and only then; the variables are
    put back afterwards, so that child processes see what the user set.
    """
    with tempfile.TemporaryDirectory(prefix="zluda-icd-") as directory:
        for number, driver in enumerate(drivers):
            Path(directory, f"{number:02d}.icd").write_text(driver.library + "\n")
        # pyopencl sets PYOPENCL_HOME when it is imported; its build of the loader crashes without.
        home = os.environ.get("PYOPENCL_HOME", directory)
        variables = {"OCL_ICD_VENDORS": directory, "OCL_ICD_FILENAMES": None, "PYOPENCL_HOME": home}
        with _variables(variables | intel_settings(os.environ)):
            yield


@contextmanager
def _variables(values: Mapping[str, str | None] | Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    try:
        _set_variables(values)
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def intel_set() -> AbstractContextManager[None]:
    """While this lasts, what `intel_settings` says is set; Intel's compiler reads it for the first context."""
    return _variables(intel_settings(os.environ))


def intel_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of Intel's CPU runtime, which it reads when it and its compiler start; the user's own stay in force.

    Copies: by default it copies and fills on all cores. On two cores that took twice as long as one core does up to
    1 MiB (35 µs against 18 µs for 4 KiB), was no faster above, and suffered from any other load.

    LLVM options: the threads of a block that do not fill a vector run as scalar code, in which the runtime (2026.22)
    vectorises loops again, and wrongly: `for (i = 0; i <= bound; i++) sum += i` with a bound of the thread's own gives
    wrong sums in blocks of 18 or 33x3, from OpenCL C as well. The option switches that off (conformance cases
    control.triangle_*); the vectors across threads stay.
    """
    settings = {}
    if "CL_CONFIG_ENABLE_PARALLEL_COPY" not in environment and len(os.sched_getaffinity(0)) <= FEW_CORES:
        settings["CL_CONFIG_ENABLE_PARALLEL_COPY"] = "False"
    options = environment.get("CL_CONFIG_LLVM_OPTIONS", "")
    if "disable-auto-vec-dir-insert" not in options:
        settings["CL_CONFIG_LLVM_OPTIONS"] = f"{options} -disable-auto-vec-dir-insert=true".lstrip()
    return settings


def _user_or_system(environment: Mapping[str, str]) -> Iterator[Driver]:
    system = environment.get("OPENCL_VENDOR_PATH") or SYSTEM_VENDORS
    vendors = environment.get("OCL_ICD_VENDORS", "")
    if not vendors:
        yield from _directory(Path(system))
    elif Path(vendors).is_dir():
        yield from _directory(Path(vendors))
    elif vendors.endswith(".icd"):
        file = Path(system, vendors) if "/" not in vendors else Path(vendors)
        yield from _file(file if file.is_file() else Path(vendors))
    else:
        yield Driver(vendors, "OCL_ICD_VENDORS")


def _directory(directory: Path) -> Iterator[Driver]:
    if directory.is_dir():
        for file in sorted(directory.glob("*.icd")):
            yield from _file(file)


def _file(file: Path) -> Iterator[Driver]:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        # The loader could not read it either; loading it as a library tells the user about the missing file.
        yield Driver(str(file), str(file))
        return
    if lines and lines[0].strip():
        yield Driver(lines[0].strip(), str(file))


def _environment_directories() -> Iterator[Path]:
    """Where conda packages and pip wheels made for pyopencl (PoCL's) put their .icd files."""
    yield Path(sys.prefix) / "etc/OpenCL/vendors"
    spec = find_spec("pyopencl")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / ".libs"


def _intel_cpu_runtime() -> Path | None:
    here = Path(sys.prefix) / "lib" / INTEL_CPU
    if here.is_file():
        return here
    # Elsewhere for `pip install --user` and `--target`; looked up last because it costs tens of milliseconds.
    try:
        installed = files(INTEL_CPU_DISTRIBUTION) or []
    except PackageNotFoundError:
        return None
    for entry in installed:
        if entry.name == INTEL_CPU:
            path = Path(str(entry.locate())).resolve()
            return path if path.is_file() else None
    return None


def _load_remedy(driver: Driver, error: str) -> str:
    if INTEL_CPU in driver.library and driver.library not in error:
        return "pip install intel-cmplr-lib-rt tbb (the libraries that Intel's CPU runtime needs)"
    return f"reinstall the driver, or correct {driver.source}"
