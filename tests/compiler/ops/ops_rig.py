"""Runs single PTX instructions on the OpenCL device: a kernel per form, all forms of a test in one module.

A form's text names its inputs `%a`, `%b`, … and its outputs `%x`, `%y`, …. Values are bits in Python integers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from cpu import device, queue

from zluda.backend.seam import Dim3
from zluda.compiler.kernel import CompiledImage, CompileRequest, KernelInfo
from zluda.compiler.portable import compile_portable

Oracle = Callable[..., "int | tuple[int, ...] | Any"]

OUTPUTS = "xyzwstuv"
"""Names of outputs."""

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


@dataclass
class Form:
    """An instruction (or a few) with the types of its inputs and outputs.

    `expect` takes the inputs' bits and returns the outputs' bits: one integer or a tuple; a callable among them is
    asked whether the bits are acceptable; None takes anything.
    """

    text: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    expect: Oracle
    values: Sequence[tuple[int, ...]] = field(default_factory=list)
    registers: str = ""


def compile_ptx(ptx: str) -> CompiledImage:
    return compile_portable(CompileRequest(ptx=ptx, name="<test>", entries=(), target=device().info.target, options=()))


def pack(info: KernelInfo, arguments: Sequence[int], block: tuple[int, int, int], module: int = 0) -> bytes:
    """The packed arguments of a launch: 8-byte parameters, then the hidden ones."""
    assert all(parameter.size == 8 for parameter in info.parameters)
    data = struct.pack(f"<{len(arguments)}Q", *arguments)
    assert len(data) == info.parameter_bytes
    for hidden in info.hidden:
        if hidden == "module":
            data += struct.pack("<Q", module)
        elif hidden == "block":
            data += struct.pack("<4I", *block, 0)
        else:
            raise AssertionError(f"unknown hidden argument {hidden}")
    return data


class Module:
    """A compiled and loaded module."""

    def __init__(self, ptx: str) -> None:
        self.compiled = compile_ptx(ptx)
        self.loaded = device().load(self.compiled.image)
        self.infos = {info.name: info for info in self.compiled.kernels}

    def launch(
        self,
        name: str,
        arguments: Sequence[int | np.ndarray[Any, Any]],
        block: tuple[int, int, int],
        grid: tuple[int, int, int] = (1, 1, 1),
        shared: int = 0,
    ) -> None:
        """Runs a kernel to its end; arrays are passed by address (the CPU device reaches all memory)."""
        info = self.infos[name]
        numbers = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
        threads = (block[0] * block[1] * block[2], 1, 1) if info.flat else block
        queue().launch(
            self.loaded.kernel(name),
            Dim3(*grid),
            Dim3(*threads),
            pack(info, numbers, block),
            info.static_shared_bytes + shared,
        )
        queue().synchronize()


def bits_of(type: str) -> int:
    return 32 if type == "pred" or type.endswith("x2") else int(type.lstrip("usbf"))


def _memory_type(type: str) -> str:
    """What a value is loaded and stored as."""
    return f"b{bits_of(type)}" if bits_of(type) > 8 else "u8"


def _register_type(type: str) -> str:
    if type == "pred":
        return "pred"
    if type in ("f32", "f64", "f16", "f16x2"):
        return type
    return f"b{max(16, bits_of(type))}"


def _kernel(name: str, form: Form) -> str:
    lines = [f".visible .entry {name}(.param .u64 pin, .param .u64 pout)\n{{", "    .reg .b64 %in, %out, %step;"]
    lines += ["    .reg .b32 %cta, %dim, %word;", f"    {form.registers}"]
    inputs = [(f"%{'abcdefgh'[i]}", type) for i, type in enumerate(form.inputs)]
    outputs = [(f"%{OUTPUTS[i]}", type) for i, type in enumerate(form.outputs)]
    lines += [f"    .reg .{_register_type(type)} {register};" for register, type in inputs + outputs]
    lines += [
        "    mov.u32 %word, %tid.x;",
        "    mov.u32 %cta, %ctaid.x;",
        "    mov.u32 %dim, %ntid.x;",
        "    mad.lo.u32 %word, %cta, %dim, %word;",
        "    ld.param.u64 %in, [pin];",
        "    ld.param.u64 %out, [pout];",
        f"    mul.wide.u32 %step, %word, {8 * len(inputs)};",
        "    add.u64 %in, %in, %step;",
        f"    mul.wide.u32 %step, %word, {8 * len(outputs)};",
        "    add.u64 %out, %out, %step;",
    ]
    for i, (register, type) in enumerate(inputs):
        if type == "pred":
            lines += [f"    ld.global.u32 %word, [%in+{8 * i}];", f"    setp.ne.u32 {register}, %word, 0;"]
        else:
            lines.append(f"    ld.global.{_memory_type(type)} {register}, [%in+{8 * i}];")
    lines += [f"    {line}" for line in form.text.splitlines()]
    for i, (register, type) in enumerate(outputs):
        if type == "pred":
            lines += [f"    selp.u32 %word, 1, 0, {register};", f"    st.global.u32 [%out+{8 * i}], %word;"]
        else:
            lines.append(f"    st.global.{_memory_type(type)} [%out+{8 * i}], {register};")
    return "\n".join([*lines, "    ret;", "}"])


_BLOCK = 64
_POISON = 0xA5A5A5A5A5A5A5A5


def run(forms: Iterable[Form]) -> list[str]:
    """Runs every form over its values; what went wrong, a line each."""
    forms = list(forms)
    module = Module(HEADER + "\n".join(_kernel(f"k{i}", form) for i, form in enumerate(forms)))
    wrong: list[str] = []
    for i, form in enumerate(forms):
        rows = list(form.values)
        blocks = -(-len(rows) // _BLOCK)
        data = np.zeros((blocks * _BLOCK, max(1, len(form.inputs))), np.uint64)
        data[: len(rows), : len(form.inputs)] = np.array(rows, np.uint64).reshape(len(rows), len(form.inputs))
        result = np.full((blocks * _BLOCK, len(form.outputs)), _POISON, np.uint64)
        module.launch(f"k{i}", [data, result], (_BLOCK, 1, 1), (blocks, 1, 1))
        masks = [(1 << bits_of(type)) - 1 for type in form.outputs]
        failures = 0
        for row, found in zip(rows, result.tolist(), strict=False):
            expected = form.expect(*row)
            expected = expected if isinstance(expected, tuple) else (expected,)
            for want, got, mask in zip(expected, found, masks, strict=True):
                got &= mask
                good = want is None or (want(got) if callable(want) else want & mask == got)
                if not good:
                    failures += 1
                    if failures <= 3:
                        shown = "no acceptable value" if callable(want) else f"wanted {want & mask:#x}"
                        wrong.append(f"{form.text!r} of {[hex(v) for v in row]}: {shown}, got {got:#x}")
        if failures > 3:
            wrong.append(f"{form.text!r}: {failures} failures of {len(rows)}")
    return wrong


def check(forms: Iterable[Form]) -> None:
    wrong = run(forms)
    assert not wrong, "\n" + "\n".join(wrong)


def together(forms: Iterable[Form]) -> list[Form]:
    """Forms of one output each with the same inputs and values, joined eight to a kernel: builds cost the most."""
    groups: dict[tuple[object, ...], list[Form]] = {}
    for form in forms:
        assert len(form.outputs) == 1 and not form.registers
        groups.setdefault((tuple(form.inputs), tuple(form.values)), []).append(form)
    joined = []
    for group in groups.values():
        for start in range(0, len(group), len(OUTPUTS)):
            part = group[start : start + len(OUTPUTS)]
            joined.append(
                Form(
                    "\n".join(form.text.replace("%x", f"%{OUTPUTS[i]}") for i, form in enumerate(part)),
                    part[0].inputs,
                    [form.outputs[0] for form in part],
                    lambda *row, part=part: tuple(form.expect(*row) for form in part),
                    part[0].values,
                )
            )
    return joined


# --- values -----------------------------------------------------------------------------------------


def integers(bits: int) -> list[int]:
    """Edge values of an integer type, by bits."""
    top = 1 << bits - 1
    values = [0, 1, 2, 3, 7, 10, top - 2, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1, 0x5A5A5A5A5A5A5A5A, 0x33]
    return sorted({value & (2 * top - 1) for value in values})


def pairs(*columns: Sequence[int]) -> list[tuple[int, ...]]:
    return list(product(*columns))


def signed(value: int, bits: int) -> int:
    """The number a two's complement pattern stands for."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def number(value: int, type: str) -> int:
    """The number that bits stand for in an integer type."""
    bits = bits_of(type)
    return signed(value, bits) if type[0] == "s" else value & (1 << bits) - 1
