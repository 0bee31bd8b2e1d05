"""The exported symbols around their bodies: straight into them, or through the trace (src/trace.c) if one is made."""

from __future__ import annotations

from functools import cache

from zluda.client.header import prototype
from zluda.spec.driver_api import Function
from zluda.spec.trace import entries, identity, pointee


@cache
def _numbers() -> dict[str, int]:
    return {entry.symbol: number for number, entry in enumerate(entries())}


def exported(function: Function, name: str) -> str:
    """The symbol `name` on plain_<name>. Not tracing costs one load and one branch."""
    names = [p.name for p in function.parameters]
    call = f"plain_{name}({', '.join(names)})"
    lines = [f"static ZL_COLD {prototype(function, f'traced_{name}')}", "{"]
    lines += [f"    uint64_t zl_words[{max(len(names), 1)}] = {{0}};", "    CUresult zl_traced;"]
    lines += [f"    ZL_TRACE_WORD(zl_words[{i}], {parameter});" for i, parameter in enumerate(names)]
    lines += [f"    zl_trace_call({_numbers()[name]}, zl_words, {len(names)});", f"    zl_traced = {call};"]
    lines += _values(function)
    lines += ["    zl_trace_return(zl_traced);", "    return zl_traced;", "}", ""]
    lines += [f"ZL_EXPORT {prototype(function, name)}", "{"]
    lines += [f"    return zl_tracing() ? traced_{call.removeprefix('plain_')} : {call};", "}", ""]
    return "\n".join(lines)


def _values(function: Function) -> list[str]:
    lines = []
    for number, parameter in enumerate(function.parameters):
        match pointee(function, parameter), parameter.direction:
            case "text", "in":  # what was not found has been read all the same
                when = "zl_traced == CUDA_SUCCESS || zl_traced == CUDA_ERROR_NOT_FOUND"
                what = f"zl_trace_text({number}, {parameter.name})"
            case "text", _:
                when, what = "zl_traced == CUDA_SUCCESS", f"zl_trace_text({number}, {parameter.name})"
            case "texts", _:
                when = f"zl_traced == CUDA_SUCCESS && {parameter.name}"
                what = f"zl_trace_text({number}, *{parameter.name})"
            case "value", _:
                when = "zl_traced == CUDA_SUCCESS"
                what = f"zl_trace_value({number}, {parameter.name}, sizeof *{parameter.name})"
            case _:
                continue
        lines += [f"    if ({when})", f"        {what};"]
    return lines


def identity_bytes() -> str:
    """What tells traces of this build from those of another."""
    return f"const uint8_t zl_trace_identity[16] = {{{', '.join(f'{byte:#04x}' for byte in identity())}}};\n"
