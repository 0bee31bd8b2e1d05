"""Images to PTX that has been looked through: what modules, libraries and links have in common."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from zluda.core.errors import CudaError
from zluda.images import ImageError, choose, read_images
from zluda.ptx.errors import PtxError

if TYPE_CHECKING:
    from zluda.ptx.index import ModuleIndex

NEWEST_PTX = (9, 0)
"""The ISA version the parser was written for. Newer minor ones are tried: what they add is refused where it stands."""

_logger = logging.getLogger("zluda.core")

Capability = tuple[int, int]


def refused(result: str, message: str) -> CudaError:
    """The error for an image that cannot be used; its reason is logged, and is the log of the call."""
    _logger.error("%s", message)
    return CudaError(result, message, log=message)


def ptx_of(image: bytes | str, name: str, capability: Capability) -> str:
    """The PTX of an image that fits a device best; fat binaries of relocatable device code are linked.

    CUDA_ERROR_INVALID_IMAGE; CUDA_ERROR_NO_BINARY_FOR_GPU for an image without PTX.
    """
    try:
        images = read_images(image, name)
    except ImageError as error:
        raise refused("CUDA_ERROR_INVALID_IMAGE", f"{name}: {error}") from error
    texts = []
    for contents in images:
        if not contents.ptx:
            raise refused("CUDA_ERROR_NO_BINARY_FOR_GPU", f"{name}: {contents.explain()}")
        texts.append(choose(contents.ptx, capability).text)
    if len(texts) == 1:
        return texts[0]
    from zluda.ptx.link import LinkError, link

    try:
        return link([(f"{name}[{place}]", text) for place, text in enumerate(texts)])
    except PtxError as error:
        raise refused("CUDA_ERROR_INVALID_PTX", str(error)) from error
    except LinkError as error:
        raise refused("CUDA_ERROR_INVALID_IMAGE", "\n".join(f"error: {reason}" for reason in error.reasons)) from error


def index_of(ptx: str, name: str, *, whole: bool) -> ModuleIndex:
    """Index PTX, parsing its functions if `whole`.

    CUDA_ERROR_INVALID_PTX with the place; CUDA_ERROR_UNSUPPORTED_PTX_VERSION for another major version.
    """
    from zluda.ptx.index import index_module
    from zluda.ptx.parser import parse_module

    try:
        index = index_module(ptx, name)
        if index.version[0] > NEWEST_PTX[0]:
            message = f"{name}: PTX ISA {index.version[0]}.{index.version[1]} is newer than {NEWEST_PTX[0]}.x"
            raise refused("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", message)
        if whole:
            parse_module(ptx, name)
    except PtxError as error:
        raise refused("CUDA_ERROR_INVALID_PTX", str(error)) from error
    return index


def kernels_of(image: bytes, name: str, capability: Capability) -> tuple[str, ...]:
    """The kernels of an image, in order. As `ptx_of` and `index_of`."""
    return index_of(ptx_of(image, name, capability), name, whole=True).entries
