"""Modules and functions."""

# ruff: noqa: ARG001 - every handler takes the state and the context first
from __future__ import annotations

from zluda.core import CudaError, Function, JitOptions, Wait
from zluda.core.image import kernels_of
from zluda.server.dispatch import Reply, handles
from zluda.server.segment import CONSTANTS
from zluda.server.state import State
from zluda.spec.attributes import function_attributes
from zluda.spec.protocol import protocol

_INFO_LOG, _ERROR_LOG = 1, 2
_record = protocol().structures["function"].compiled()


def describe(handle: int, function: Function) -> bytes:
    """A `function` structure and the parameters behind it."""
    info = function.info
    attributes = [0] * CONSTANTS["FUNCTION_ATTRIBUTES"]
    for number in function_attributes():
        attributes[number] = function.attribute(number)
    declared = info.max_threads or 0
    block = info.required_block or (0, 0, 0)
    head = _record.pack(handle, len(info.parameters), info.parameter_bytes, *block, declared, *attributes)
    return head + b"".join(p.offset.to_bytes(4, "little") + p.size.to_bytes(4, "little") for p in info.parameters)


@handles("module_load", slow=True)
def module_load(
    state: State, handle: int, module: int, address: int, size: int, optimisation: int, logs: int, data: bytes
) -> Reply:
    image = bytes(state.window.view(address, size)) if address else data[:size]
    record = state.context(handle)
    options = JitOptions(bool(logs & _ERROR_LOG), bool(logs & _INFO_LOG), optimisation)
    try:
        loaded = record.context.load_module(image, options)
    except CudaError as error:
        return Reply(tail=(error.log or error.message).encode(), result=error.code)
    state.modules[module] = loaded
    return Reply(tail=loaded.info_log.encode() if logs & _INFO_LOG else b"")


@handles("module_unload", slow=True)
def module_unload(state: State, handle: int, module: int) -> Wait:
    found = state.module(module)
    del state.modules[module]
    for number, function in list(state.functions.items()):
        if function.module is found:
            del state.functions[number]
    return found.unload_wait()


@handles("module_function", slow=True)
def module_function(state: State, handle: int, module: int, function: int, size: int, _: int, name: bytes) -> Reply:
    """Compiles the kernel if it is not yet."""
    found = state.module(module).function(name[:size].decode(errors="replace"))
    state.functions[function] = found
    return Reply(tail=describe(function, found))


@handles("module_functions")
def module_functions(state: State, handle: int, module: int) -> Reply:
    names = state.module(module).function_names
    return Reply((len(names),), b"".join(name.encode() + b"\0" for name in names))


@handles("module_global")
def module_global(state: State, handle: int, module: int, size: int, name: memoryview) -> tuple[int, int]:
    return state.module(module).global_variable(bytes(name[:size]).decode(errors="replace"))


@handles("module_special")
def module_special(state: State, handle: int, module: int, kind: int, size: int, name: memoryview) -> tuple[int, int]:
    found, text = state.module(module), bytes(name[:size]).decode(errors="replace")
    if kind == CONSTANTS["SPECIAL_MANAGED"]:
        return found.managed_variable(text)
    found.reference(text, "texref" if kind == CONSTANTS["SPECIAL_TEXTURE"] else "surfref")


@handles("image_kernels", slow=True)
def image_kernels(state: State, handle: int, address: int, size: int, data: bytes) -> Reply:
    image = bytes(state.window.view(address, size)) if address else data[:size]
    try:
        names = kernels_of(image, "<library>", state.driver.device(0).compute_capability)
    except CudaError as error:
        return Reply((0,), (error.log or error.message).encode(), error.code)
    return Reply((len(names),), b"".join(name.encode() + b"\0" for name in names))


@handles("function_set_attribute")
def function_set_attribute(state: State, handle: int, function: int, attribute: int, value: int) -> Reply:
    found = state.function(function)
    found.set_attribute(attribute, value)
    return Reply(tail=describe(function, found))
