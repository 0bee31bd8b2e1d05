"""cuda.h, as far as the specification goes: what programs on the driver API compile against without a CUDA toolkit."""

from __future__ import annotations

from zluda.spec.attributes import device_attributes, function_attributes
from zluda.spec.driver_api import Function, driver_api
from zluda.spec.errors import errors

_HEAD = """\
/* The CUDA driver API as Zluda implements it. Generated from spec/; do not edit. SPDX-License-Identifier: Apache-2.0 */
#ifndef __cuda_cuda_h__
#define __cuda_cuda_h__

#include <stddef.h>
#include <stdint.h>

#define CUDA_VERSION {version}
#define CUDA_CB
#ifndef CUDAAPI
#define CUDAAPI
#endif
#ifdef __cplusplus
#define CUDA_ALIGNAS alignas
#else
#define CUDA_ALIGNAS _Alignas
#endif
"""

_PER_THREAD_LOOKUP = """\
/* A program built for per-thread default streams looks up such forms, unless it says which it wants. */
static inline CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                                CUdriverProcAddressQueryResult *symbolStatus)
{
    if (!(flags & (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)))
        flags |= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, symbolStatus);
}
#define cuGetProcAddress_v2 cuGetProcAddress_v2_ptsz"""


def prototype(function: Function, name: str = "", extra: tuple[str, ...] = ()) -> str:
    """A C prototype without the semicolon; `extra` declarations are appended to the parameters."""
    declarations = [p.declaration for p in function.parameters] + list(extra)
    return f"CUresult CUDAAPI {name or function.symbol}({', '.join(declarations) or 'void'})"


def _enum(name: str, values: list[tuple[str, int]]) -> str:
    body = ",\n".join(f"    {key} = {value}" for key, value in values)
    return f"typedef enum {name}_enum {{\n{body}\n}} {name};\n"


def cuda_header() -> str:
    """The whole header."""
    api = driver_api()
    parts = [_HEAD.format(version=api.version)]
    parts.append(_enum("CUresult", [("CUDA_SUCCESS", 0)] + [(e.name, e.code) for e in errors().values() if e.code]))
    for name, table in (("CUdevice_attribute", device_attributes()), ("CUfunction_attribute", function_attributes())):
        rows = [(n, a.number) for a in table.values() for n in (a.name, *a.aliases)]
        parts.append(_enum(name, rows))
    parts += [_enum(e.name, list(e.values)) for e in api.enum if not e.header]
    parts += [f"{'typedef ' if t.name else ''}{t.declaration.replace('_Alignas', 'CUDA_ALIGNAS')};" for t in api.type]
    parts.append("")
    parts += [f"#define {c.name} {c.value}" for c in api.constant]
    parts.append("")
    parts += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for f in api.function:
        if f.header:
            continue
        declarations = ", ".join(p.declaration for p in f.parameters) or "void"
        parts.append(f"CUresult CUDAAPI {f.symbol}({declarations});")
        if f.per_thread:
            parts.append(f"CUresult CUDAAPI {f.symbol}_{f.per_thread}({declarations});")
    parts += ["#ifdef __cplusplus", "}", "#endif", ""]
    parts += ["#ifndef __CUDA_API_VERSION_INTERNAL", "#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM"]
    plain = {symbol: name for name, symbol in api.plain.items()}
    for f in api.function:
        if f.per_thread and f.symbol not in api.plain:  # a name stands for one form only
            parts.append(f"#define {plain.get(f.symbol, f.symbol)} {f.symbol}_{f.per_thread}")
    parts += [_PER_THREAD_LOOKUP, "#endif"]
    per_thread = {f.symbol for f in api.function if f.per_thread}
    for name, symbol in api.plain.items():
        line = f"#define {name} {symbol}"
        parts += ["#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM", line, "#endif"] if symbol in per_thread else [line]
    parts += ["#endif", "", "#endif", ""]
    return "\n".join(parts)


def profiler_header() -> str:
    """cudaProfiler.h."""
    name = "cudaProfiler.h"
    api = driver_api()
    parts = [
        "/* Profiler control, generated from spec/; do not edit. SPDX-License-Identifier: Apache-2.0 */",
        "#ifndef __cuda_profiler_h__",
        "#define __cuda_profiler_h__",
        "",
        "#include <cuda.h>",
        "",
    ]
    parts += [_enum(e.name, list(e.values)) for e in api.enum if e.header == name]
    parts += ["#ifdef __cplusplus", 'extern "C" {', "#endif"]
    parts += [f"{prototype(f)};" for f in api.function if f.header == name]
    return "\n".join([*parts, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])
