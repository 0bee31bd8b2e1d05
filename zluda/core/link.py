"""Linking: the inputs of a CUlinkState, and the one PTX module that is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zluda.core.errors import invalid_handle, invalid_value
from zluda.core.image import Capability, index_of, refused
from zluda.images import Code, ImageError, choose, read_image
from zluda.images.objects import fatbins_in_object, members_of_archive
from zluda.images.reader import ELF_MAGIC
from zluda.ptx.index import ModuleIndex, index_module
from zluda.ptx.link import LinkError, link
from zluda.ptx.tree import Linkage
from zluda.spec.types import enum

if TYPE_CHECKING:
    from collections.abc import Iterable

_TYPES = {number: name for name, number in enum("CUjitInputType").items() if name != "CU_JIT_NUM_INPUT_TYPES"}

NVVM = "NVVM IR (link-time optimisation) is not translated: compile to PTX, without -dlto."

_Part = tuple[str, str]
"""A module's name and its PTX."""


class Linker:
    """A CUlinkState: cuLinkAddData, cuLinkComplete (driver API, "Module Management").

    `capability` is that of the device that fat binaries are opened for.
    """

    def __init__(self, capability: Capability) -> None:
        self._capability = capability
        self._parts: list[_Part] = []
        self._libraries: list[_Part] = []
        """Members of archives, which are linked where something needs them."""
        self._image: bytes | None = None

    def add(self, kind: int, data: bytes, name: str = "") -> None:
        """Add an input of a CUjitInputType.

        CUDA_ERROR_INVALID_VALUE for an unknown type and no data, CUDA_ERROR_INVALID_HANDLE once it is completed,
        CUDA_ERROR_INVALID_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION and CUDA_ERROR_INVALID_IMAGE for what cannot be
        read, CUDA_ERROR_NO_BINARY_FOR_GPU for device code without PTX; the reason is in `CudaError.log`.
        """
        what = _TYPES.get(kind)
        name = name or f"<input {len(self._parts) + 1}>"
        if what is None:
            raise invalid_value(f"no CUjitInputType {kind}")
        if not data:
            raise invalid_value(f"{name} is empty")
        if self._image is not None:
            raise invalid_handle("nothing can be added once the link is complete")
        try:
            parts = self._read(what, data, name)
        except ImageError as error:
            result = "CUDA_ERROR_INVALID_PTX" if what == "CU_JIT_INPUT_PTX" else "CUDA_ERROR_INVALID_IMAGE"
            raise refused(result, f"{name}: {error}") from error
        for part in parts:
            index_of(part[1], part[0], whole=True)
        (self._libraries if what == "CU_JIT_INPUT_LIBRARY" else self._parts).extend(parts)

    def complete(self) -> bytes:
        """The linked image, PTX text that ends in NUL; the same at each call.

        CUDA_ERROR_UNKNOWN, as CUDA gives it, for modules that cannot be linked; `CudaError.log` has the reasons.
        CUDA_ERROR_INVALID_VALUE without inputs.
        """
        if self._image is None:
            if not self._parts:
                raise refused("CUDA_ERROR_INVALID_VALUE", "there is nothing to link")
            try:
                text = link([*self._parts, *_needed(self._parts, self._libraries)])
            except LinkError as error:
                message = "\n".join(f"error: {reason}" for reason in error.reasons)
                raise refused("CUDA_ERROR_UNKNOWN", message) from error
            self._image = text.rstrip("\0").encode() + b"\0"
        return self._image

    def _read(self, what: str, data: bytes, name: str) -> list[_Part]:
        """The PTX modules of an input."""
        match what:
            case "CU_JIT_INPUT_NVVM":
                raise refused("CUDA_ERROR_NO_BINARY_FOR_GPU", f"{name}: {NVVM}")
            case "CU_JIT_INPUT_PTX":
                text = data.split(b"\0", 1)[0]
                try:
                    return [(name, text.decode())]
                except UnicodeDecodeError:
                    raise ImageError(f"no PTX text: it starts with {data[:16]!r}") from None
            case "CU_JIT_INPUT_OBJECT" if not _is_cubin(data):
                parts, unusable = self._objects([(name, data)])
            case "CU_JIT_INPUT_LIBRARY":
                parts, unusable = self._objects(
                    (f"{name}({member})", content)
                    for member, content in members_of_archive(data)
                    if content.startswith(ELF_MAGIC)
                )
            case _:
                parts, unusable = self._image_of(data, name)
        if not parts and unusable:
            raise refused("CUDA_ERROR_NO_BINARY_FOR_GPU", f"{name}: {unusable[0]}")
        if not parts:
            raise ImageError("there is no device code in it")
        return parts

    def _objects(self, objects: Iterable[tuple[str, bytes]]) -> tuple[list[_Part], list[str]]:
        parts: list[_Part] = []
        unusable: list[str] = []
        for name, content in objects:
            for fatbin in fatbins_in_object(content):
                more, reasons = self._image_of(fatbin, name)
                parts += more
                unusable += reasons
        return parts, unusable

    def _image_of(self, data: bytes, name: str) -> tuple[list[_Part], list[str]]:
        contents = read_image(data, name)
        if contents.ptx:
            return [(name, choose(contents.ptx, self._capability).text)], []
        return [], [contents.explain()]


def _is_cubin(data: bytes) -> bool:
    try:
        return data.startswith(ELF_MAGIC) and any(isinstance(code, Code) for code in read_image(data).unusable)
    except ImageError:
        return False


def _needed(parts: list[_Part], members: list[_Part]) -> list[_Part]:
    """The members of archives that define what the others lack, and so on."""
    waiting = [(member, index_module(member[1], member[0])) for member in members]
    indices = [index_module(text, name) for name, text in parts]
    taken: list[_Part] = []
    progress = bool(waiting)
    while progress:
        defined = {name for index in indices for name in _defined(index)}
        wanted = {name for index in indices for name in _declared(index)} - defined
        progress = False
        for candidate in waiting:
            member, index = candidate
            if wanted & _defined(index):
                taken.append(member)
                indices.append(index)
                waiting.remove(candidate)
                progress = True
                break
    return taken


def _defined(index: ModuleIndex) -> set[str]:
    functions = {name for name, span in index.functions.items() if span.defined and span.linkage is not Linkage.NONE}
    return functions | {n for n, v in index.variables.items() if v.linkage not in (Linkage.NONE, Linkage.EXTERN)}


def _declared(index: ModuleIndex) -> set[str]:
    functions = {name for name, span in index.functions.items() if not span.defined and name not in index.aliases}
    return functions | {n for n, v in index.variables.items() if v.linkage is Linkage.EXTERN}
