"""Parameters in words: enumerations as names, addresses in hexadecimal, what they point to where it is known."""

from __future__ import annotations

import json
import struct

from zluda.spec.c_types import Scalar, Structure, c_type
from zluda.spec.driver_api import Parameter
from zluda.spec.trace import pointee
from zluda.trace.calls import Call

_STREAMS = {1: "CU_STREAM_LEGACY", 2: "CU_STREAM_PER_THREAD"}
_LARGE = 1 << 24
_LAUNCHED = ("CUfunction", "CUkernel")


def result_name(code: int) -> str:
    """A CUresult."""
    kind = c_type("CUresult")
    return kind.names.get(code, str(code)) if isinstance(kind, Scalar) else str(code)


def parameters(call: Call) -> dict[str, str]:
    """The parameters of a call by name, as the program gave them and, where it shows, as they came back."""
    function = call.entry.function
    return {
        p.name: _parameter(call, p, word, call.values.get(number))
        for number, (p, word) in enumerate(zip(function.parameters, call.words, strict=True))
    }


def _parameter(call: Call, parameter: Parameter, word: int, value: bytes | None) -> str:
    kind = c_type(parameter.type)
    if parameter.type == "CUstream" and word in _STREAMS:
        return _STREAMS[word]
    if parameter.type.endswith("*") and not word:
        return "NULL"
    text = scalar(kind, word.to_bytes(8, "little")) if isinstance(kind, Scalar) else f"{{{word:#x}…}}"
    kernel = call.kernel
    if kernel and parameter.type in _LAUNCHED:
        return f"{text} {kernel.name}"
    if kernel and parameter.name == "kernelParams" and word:
        return f"{text} → ({', '.join(arguments(call))})"
    if value is None:
        return text
    what = pointee(call.entry.function, parameter)
    if what == "text" and parameter.direction == "in":
        return quoted(value)
    if what in ("text", "texts"):
        return f"{text} → {quoted(value)}"
    pointed = c_type(parameter.type.removeprefix("const ").removesuffix("*"))
    return f"{text} → {_value(pointed, value)}"


def quoted(text: bytes) -> str:
    """A string as C writes it, with … if it may have been cut."""
    from zluda.spec.protocol import protocol

    cut = "…" if len(text) >= protocol().constants["TRACE_TEXT_BYTES"] else ""
    return json.dumps(text.decode(errors="replace"), ensure_ascii=False) + cut


def scalar(kind: Scalar, data: bytes) -> str:
    """A number of the type `kind` from its bytes."""
    raw = data[: kind.size]
    number = int.from_bytes(raw, "little", signed=kind.kind in ("signed", "enum"))
    match kind.kind:
        case "address":
            return f"{number:#x}" if number else "0"
        case "enum":
            return kind.names.get(number, str(number))
        case "float":
            return f"{struct.unpack('<f', raw)[0]:g}"
        case _:
            return str(number)


def _value(kind: Scalar | Structure | None, data: bytes) -> str:
    if isinstance(kind, Scalar):
        return scalar(kind, data)
    if kind is None:
        return data.hex()
    parts = []
    for member in kind.members:
        own = data[member.offset : member.offset + member.size]
        if isinstance(member.type, Scalar) and member.type.kind == "text":
            shown = own.hex()
        elif member.count:
            size = member.type.size
            shown = f"[{', '.join(_value(member.type, own[i : i + size]) for i in range(0, len(own), size))}]"
        else:
            shown = _value(member.type, own)
        parts.append(f"{member.name}={shown}")
    return f"{{{', '.join(parts)}}}"


def member(call: Call, type_name: str, name: str) -> int | None:
    """The number `name` in a structure of type `type_name` that a parameter of the call points to."""
    for number, parameter in enumerate(call.entry.function.parameters):
        kind = c_type(type_name) if type_name in parameter.type else None
        if isinstance(kind, Structure) and number in call.values:
            found = next(m for m in kind.members if m.name == name)
            return int.from_bytes(call.values[number][found.offset : found.offset + found.size], "little")
    return None


def arguments(call: Call) -> list[str]:
    """What a launch gave to its kernel. PTX says how wide a parameter is, not of which type: 8 bytes are shown as an
    address, fewer as a whole number, unless they look like a float."""
    shown = []
    for offset, size in call.kernel.parameters if call.kernel else ():
        data = call.arguments[offset : offset + size]
        if size in (1, 2, 4, 8):
            number = int.from_bytes(data, "little")
            shown.append(f"{number:#x}" if size == 8 or number >= _LARGE else str(number))
        else:
            shown.append(f"{size} bytes {data[:16].hex()}{'…' if size > 16 else ''}")
    return shown
