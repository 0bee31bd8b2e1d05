"""What the compiler hands back for a kernel: what the core needs for attributes and launches."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from zluda.backend.info import Image, KernelSignature, TargetInfo


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Parameter(_Model):
    """A CUDA kernel parameter: its place, in bytes, in the packed parameter block of cuLaunchKernel's `extra`."""

    offset: int
    size: int
    align: int


class KernelInfo(_Model):
    """A compiled kernel.

    The packed argument bytes of a launch are: the CUDA parameter block (`parameter_bytes`), padding to 8, then the
    hidden arguments in the order of `hidden`, each 8 bytes: `module` is the address of the module's data block
    (globals and const banks), `block` is three u32 ntid.x/y/z and four bytes of padding (16 bytes in all).
    """

    name: str
    parameters: tuple[Parameter, ...]
    parameter_bytes: int
    hidden: tuple[str, ...]
    signature: KernelSignature
    static_shared_bytes: int
    flat: bool
    """Launch as a one-dimensional block of ntid.x*ntid.y*ntid.z threads; `%tid` is computed from the linear id."""
    local_bytes: int = 0
    const_bytes: int = 0
    max_threads: int | None = None
    """From .maxntid or .reqntid (product)."""
    required_block: tuple[int, int, int] | None = None
    ptx_version: tuple[int, int] = (0, 0)
    """Of the module; cuFuncGetAttribute wants 10*major+minor."""
    sm: int = 0
    """Number of the module's `.target sm_NN`."""
    uses: tuple[str, ...] = ()
    """Capability ids that the kernel needs: `barrier`, `warp`, `fp64`, `atomics.int64`, …"""


class CompileRequest(_Model):
    """One unit of compilation: some kernels of a module, with everything they reach, into one image."""

    ptx: str
    name: str
    """For messages: a file name or `<module 3>`."""
    entries: tuple[str, ...]
    target: TargetInfo
    backend: str = ""
    """Backend and device whose `finalize` makes the native binary; empty: stop at the portable image."""
    device_index: int = 0
    build_identity: str = ""
    options: tuple[str, ...] = ()


class CompiledImage(_Model):
    """An image with its kernels, as it comes from a worker or the cache."""

    image: Image
    kernels: tuple[KernelInfo, ...]
    log: str = ""
    """Warnings worth showing."""
