"""From PTX text to a portable image, in this process: index, lower, lint, emit, validate.

LLVM can take the process along: the driver goes through `zluda.compiler.service`, which runs this in a worker.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zluda.backend.info import Image
from zluda.compiler import emit, lint, validate
from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompiledImage, CompileRequest
from zluda.compiler.legalise import legalise
from zluda.compiler.lower import lower
from zluda.compiler.target import UnknownTarget, target_for
from zluda.ptx.errors import PtxError
from zluda.ptx.index import index_module

if TYPE_CHECKING:
    from zluda.compiler.lower import Lowered
    from zluda.ptx.index import ModuleIndex

SPIRV = "spirv64"

_KEPT_MODULES = 2
_indexes: OrderedDict[tuple[bytes, str], ModuleIndex] = OrderedDict()


def _index(text: str, name: str) -> ModuleIndex:
    """The index of a module, kept for the next kernel of the same module: indexing 30 MB takes longer than a kernel."""
    key = (hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest(), name)
    if (known := _indexes.get(key)) is not None:
        _indexes.move_to_end(key)
        return known
    index = _indexes[key] = index_module(text, name)
    if len(_indexes) > _KEPT_MODULES:
        _indexes.popitem(last=False)
    return index


def lower_request(request: CompileRequest) -> Lowered:
    """LLVM IR text and kernels of a request, not yet linted. No entries: every entry of the module.

    Raises CompileError of the kinds `ptx`, `unsupported` and `internal`.
    """
    try:
        target = target_for(request.target)
    except UnknownTarget as error:
        raise CompileError(str(error), kind="unsupported") from error
    try:
        index = _index(request.ptx, request.name)
        lowered = lower(index, _entries(index, request.entries), target)
    except PtxError as error:
        raise CompileError.from_ptx(error) from error
    return replace(lowered, ir=legalise(lowered.ir)) if request.target.name == SPIRV else lowered


def _entries(index: ModuleIndex, entries: Sequence[str]) -> Sequence[str]:
    for name in entries:
        if name not in index.entries:
            known = ", ".join(index.entries[:5]) or "none"
            more = ", …" if len(index.entries) > 5 else ""
            raise CompileError(f"{index.source.name} has no kernel {name!r}; it has {known}{more}", kind="ptx")
    return entries or index.entries


def compile_portable(request: CompileRequest) -> CompiledImage:
    """Compiles a request to a portable image: a validated SPIR-V module. `request.backend` is not looked at.

    Raises CompileError. What LLVM cannot select ends the process.
    """
    lowered = lower_request(request)
    if request.target.name != SPIRV:
        raise CompileError(f"No image is made for the target {request.target.name!r} yet", kind="unsupported")
    lint.check(lowered.ir)
    data = emit.spirv(lowered.ir)
    validate.validate(data)
    signatures = tuple(kernel.signature for kernel in lowered.kernels)
    return CompiledImage(image=Image(format="spirv", data=data, kernels=signatures), kernels=lowered.kernels)
