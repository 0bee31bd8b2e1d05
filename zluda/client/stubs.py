"""zl_entry.c: every exported symbol, with the checks that all share, and the bodies of `call` and `post` functions."""

from __future__ import annotations

from zluda.client.header import prototype
from zluda.client.traced import exported, identity_bytes
from zluda.spec.driver_api import Function, Parameter, driver_api


def _body_prototype(function: Function) -> str:
    """The hand-written part: the current context first, where required; the default stream last, where implied."""
    declarations = ["zl_context *zl_here"] if function.context == "current" else []
    declarations += [p.declaration for p in function.parameters]
    if function.implicit_stream:
        declarations.append("CUstream default_stream")
    return f"CUresult zl_{function.symbol}({', '.join(declarations) or 'void'})"


def bodies_header() -> str:
    """Prototypes of the hand-written bodies."""
    lines = [
        "/* Bodies of the entry points. Generated from spec/; do not edit. */",
        "#ifndef ZL_BODIES_H",
        "#define ZL_BODIES_H",
    ]
    lines += [_body_prototype(f) + ";" for f in driver_api().function if f.answer == "local" and f.support != "none"]
    return "\n".join([*lines, "#endif", ""])


def _has_stream(function: Function) -> bool:
    return any(p.type == "CUstream" for p in function.parameters)


def _entering(function: Function) -> list[str]:
    """Initialised, and with a current context where one is needed."""
    lines = []
    if function.context == "current":
        lines += ["    zl_context *zl_here;", "    CUresult zl_result = zl_enter_context(&zl_here);"]
        lines += ["    if (zl_result != CUDA_SUCCESS)", "        return zl_result;"]
    elif function.context == "init":
        lines += [
            "    CUresult zl_result = zl_enter();",
            "    if (zl_result != CUDA_SUCCESS)",
            "        return zl_result;",
        ]
    return lines


def _captured(function: Function) -> list[str]:
    """What is forbidden while streams are captured."""
    if not function.capture:
        return []
    return ["    if (zl_capturing() && (zl_result = zl_capture_unsafe()) != CUDA_SUCCESS)", "        return zl_result;"]


def _checks(function: Function) -> list[str]:
    lines = _entering(function) + _captured(function)
    required = [p.name for p in function.outputs if not p.optional]
    if required:
        test = " || ".join(f"!{name}" for name in required)
        lines += [f"    if ({test})", "        return CUDA_ERROR_INVALID_VALUE;"]
    for p in function.parameters:
        if p.values:
            test = " && ".join(f"{p.name} != {value}" for value in p.values)
            lines += [f"    if ({test})", "        return CUDA_ERROR_INVALID_VALUE;"]
    return lines


def _argument(parameter: Parameter, per_thread: bool) -> str:
    if per_thread and parameter.type == "CUstream":
        return f"{parameter.name} ? {parameter.name} : CU_STREAM_PER_THREAD"
    return parameter.name


def _local(function: Function, per_thread: bool) -> list[str]:
    arguments = ["zl_here"] if function.context == "current" else []
    arguments += [_argument(p, per_thread) for p in function.parameters]
    if function.implicit_stream:
        arguments.append("CU_STREAM_PER_THREAD" if per_thread else "CU_STREAM_LEGACY")
    return [f"    return zl_{function.symbol}({', '.join(arguments)});"]


def _remote(function: Function, per_thread: bool) -> list[str]:
    """Resolve handles, fill in the command, post it, and for a call take the answer."""
    symbol = function.symbol
    lines: list[str] = []
    values: dict[str, str] = {p.name: p.name for p in function.inputs}
    start = "zl_here" if function.context == "current" else "NULL"
    lines.append(f"    zl_context *where = {start};")
    for p in function.inputs:
        if p.type in ("CUstream", "CUevent"):
            kind = "stream" if p.type == "CUstream" else "event"
            lines += [
                f"    uint64_t {p.name}_wire;",
                f"    zl_result = zl_use_{kind}({_argument(p, per_thread)}, &where, &{p.name}_wire);",
                "    if (zl_result != CUDA_SUCCESS)",
                "        return zl_result;",
            ]
            values[p.name] = f"{p.name}_wire"
    call = str(function.answer == "call").lower()
    lines += [
        f"    struct zl_cmd_{symbol} *command = zl_begin(ZL_OP_{symbol}, where, sizeof *command, {call});",
        "    if (!command)",
        "        return zl_gone();",
    ]
    lines += [f"    command->{name} = {value};" for name, value in values.items()]
    if function.answer == "post":
        lines += [
            f"    zl_post(&command->header, {'where' if _has_stream(function) else 'NULL'});",
            "    return CUDA_SUCCESS;",
        ]
        return lines
    if function.outputs:
        lines += [
            f"    struct zl_{symbol}_reply reply;",
            "    zl_result = zl_call(&command->header, &reply, sizeof reply, NULL);",
            "    if (zl_result != CUDA_SUCCESS)",
            "        return zl_result;",
        ]
        lines += [f"    *{p.name} = reply.{p.name};" for p in function.outputs]
        lines.append("    return CUDA_SUCCESS;")
    else:
        lines.append("    return zl_call(&command->header, NULL, 0, NULL);")
    return lines


def _entry(function: Function, per_thread: bool) -> str:
    name = f"{function.symbol}_{function.per_thread}" if per_thread else function.symbol
    lines = [f"static {prototype(function, f'plain_{name}')}", "{"]
    if function.support == "none":
        lines += _entering(function)
        if function.context == "current":
            lines.append("    (void)zl_here;")
        lines += [f"    (void){p.name};" for p in function.parameters]
        lines.append(f'    return zl_not_supported("{function.symbol}", "{function.note}");')
    else:
        lines += _checks(function)
        lines += _local(function, per_thread) if function.answer == "local" else _remote(function, per_thread)
    return "\n".join([*lines, "}", "", exported(function, name)])


def entry_points() -> str:
    """The whole file."""
    parts = [
        "/* Every exported symbol. Generated from spec/; do not edit. */",
        '#include "client.h"',
        '#include "trace.h"',
        "",
    ]
    for function in driver_api().function:
        parts.append(_entry(function, False))
        if function.per_thread:
            parts.append(_entry(function, True))
    parts.append(identity_bytes())
    return "\n".join(parts)


def symbol_table() -> str:
    """Rows of cuGetProcAddress's table, sorted by name, then newest first."""
    rows = []
    for f in sorted(driver_api().function, key=lambda f: (f.name, -f.since)):
        per_thread = f"(void *)({f.symbol}_{f.per_thread})" if f.per_thread else "NULL"
        rows.append(f'    {{"{f.name}", "{f.symbol}", {f.since}, (void *)({f.symbol}), {per_thread}}},\n')
    return "".join(rows)
