"""Compiling SPIR-V for a device, through pyopencl: in compile workers, and where a device is given SPIR-V itself."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import pyopencl as cl

from zluda.backend.info import Image
from zluda.backend.seam import BuildError
from zluda_opencl import api
from zluda_opencl.errors import build_error, error
from zluda_opencl.query import Ask, Device

_SPIRV_MAGIC = b"\x03\x02\x23\x07"
_CORRECTLY_ROUNDED = 1 << 7


def build_options(device: Device) -> list[str]:
    """Options that every build on the device gets."""
    if device.number(Ask.SINGLE_FP_CONFIG) & _CORRECTLY_ROUNDED:
        return ["-cl-fp32-correctly-rounded-divide-sqrt"]
    return []


def compile_spirv(context: int, device: Device, image: Image, options: Sequence[str] = ()) -> cl.Program:
    """A built program. Raises BuildError with the vendor's log."""
    if image.data[:4] != _SPIRV_MAGIC:
        raise BuildError(f"the image of {names(image)} is no SPIR-V: it starts with {image.data[:4].hex(' ')}")
    try:
        program = cl.Program(cl.Context.from_int_ptr(context), image.data)
    except cl.Error as failure:
        raise build_error(str(failure.routine), failure.code, names(image)) from failure
    # Built by a direct call: it gives up Python's lock, and pyopencl's adds include paths and prints the log.
    text = " ".join([*build_options(device), *options])
    handle = ctypes.c_void_p(device.handle)
    if code := api.build_program(program.int_ptr, 1, ctypes.byref(handle), text.encode(), None, None):
        log = api.build_log(program.int_ptr, device.handle)
        raise build_error("clBuildProgram", code, names(image), log)
    return program


def native_binary(program: cl.Program) -> bytes:
    """The native binary of a program that was built for one device; empty where the driver has none."""
    try:
        binaries = program.get_info(cl.program_info.BINARIES)
    except cl.Error as failure:
        raise error(str(failure.routine), failure.code) from failure
    return bytes(binaries[0]) if binaries else b""


def names(image: Image) -> str:
    """The image's kernels, for messages."""
    found = [kernel.name for kernel in image.kernels]
    shown = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return f"kernels {shown}" if found else "an image without kernels"
