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
"""


def prototype(function: Function, name: str = "", extra: tuple[str, ...] = ()) -> str:
    """A C prototype without the semicolon; `extra` declarations are appended to the parameters."""
    declarations = [p.declaration for p in function.parameters] + list(extra)
    return f"CUresult CUDAAPI {name or function.symbol}({', '.join(declarations) or 'void'})"


def newest(functions: tuple[Function, ...]) -> dict[str, Function]:
    """The function that a plain name stands for: its newest form that has a suffix of its own, as in NVIDIA's header.

    cuCtxGetDevice and cuCtxSynchronize keep their first form there; the _v2 forms are named in full.
    """
    found: dict[str, Function] = {}
    for function in functions:
        if any(f.symbol == function.name for f in functions) and function.name in (
            "cuCtxGetDevice",
            "cuCtxSynchronize",
        ):
            continue
        if function.name not in found or found[function.name].since < function.since:
            found[function.name] = function
    return {name: f for name, f in found.items() if f.symbol != name}


def _enum(name: str, values: list[tuple[str, int]]) -> str:
    body = ",\n".join(f"    {key} = {value}" for key, value in values)
    return f"typedef enum {name}_enum {{\n{body}\n}} {name};\n"


def cuda_header() -> str:
    """The whole header."""
    api = driver_api()
    parts = [_HEAD.format(version=api.version)]
    parts += [f"typedef struct {h.tag} *{h.name};" for h in api.handle]
    parts.append("")
    parts.append(_enum("CUresult", [("CUDA_SUCCESS", 0)] + [(e.name, e.code) for e in errors().values() if e.code]))
    for name, table in (("CUdevice_attribute", device_attributes()), ("CUfunction_attribute", function_attributes())):
        rows = [(n, a.number) for a in table.values() for n in (a.name, *a.aliases)]
        parts.append(_enum(name, rows))
    parts += [_enum(e.name, list(e.values)) for e in api.enum]
    parts += [f"typedef {t.declaration};" for t in api.typedef]
    parts.append("")
    for s in api.struct:
        body = "".join(f"    {field};\n" for field in s.fields)
        parts.append(f"typedef struct {s.name}_st {{\n{body}}} {s.name};\n")
    parts += [f"#define {c.name} {c.value}" for c in api.constant]
    parts.append("")
    parts += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for f in api.function:
        declarations = ", ".join(p.declaration for p in f.parameters) or "void"
        parts.append(f"CUresult CUDAAPI {f.symbol}({declarations});")
        if f.per_thread:
            parts.append(f"CUresult CUDAAPI {f.symbol}_{f.per_thread}({declarations});")
    parts += ["#ifdef __cplusplus", "}", "#endif", ""]
    renamed = newest(api.function)
    parts += ["/* The plain names stand for the newest forms. */", "#ifndef __CUDA_API_VERSION_INTERNAL"]
    parts.append("#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM")
    parts += [
        f"#define {f.name if renamed.get(f.name) is f else f.symbol} {f.symbol}_{f.per_thread}"
        for f in api.function
        if f.per_thread
    ]
    parts.append("#endif")
    for name, f in renamed.items():
        if f.per_thread:
            parts += ["#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM", f"#define {name} {f.symbol}", "#endif"]
        else:
            parts.append(f"#define {name} {f.symbol}")
    parts += ["#endif", "", "#endif", ""]
    return "\n".join(parts)
