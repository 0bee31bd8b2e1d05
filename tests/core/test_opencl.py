"""The core on a real device: OpenCL, where the machine has one that takes SPIR-V."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import zluda
from zluda.core import Copy3D, CudaError, JitOptions

KERNELS = """
.version 7.8
.target sm_75
.address_size 64

.visible .global .align 4 .u32 calls = 5;
.visible .const .align 4 .f32 factor = 0f40000000;

.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f4;
    atom.global.add.u32 %r6, [calls], 1;
DONE:
    ret;
}

.extern .shared .align 4 .b8 pool[];

.visible .entry reverse(.param .u64 data)
{
    .reg .b32 %r<10>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    shl.b32 %r3, %r1, 2;
    mov.u32 %r4, pool;
    add.s32 %r5, %r4, %r3;
    st.shared.u32 [%r5], %r2;
    bar.sync 0;
    mov.u32 %r6, %ntid.x;
    sub.s32 %r7, %r6, %r1;
    shl.b32 %r7, %r7, 2;
    add.s32 %r8, %r4, %r7;
    ld.shared.u32 %r9, [%r8+-4];
    st.global.u32 [%rd3], %r9;
    ret;
}

.visible .entry twice(.param .u64 data)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.f32 %f1, [%rd3];
    ld.const.f32 %f2, [factor];
    mul.rn.f32 %f3, %f1, %f2;
    st.f32 [%rd3], %f3;
    ret;
}
"""


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZLUDA_CACHE_DIR", str(folder))
        try:
            opened = zluda.open(backend="opencl")
        except zluda.SelectionError as error:
            pytest.skip(str(error))
        with opened:
            yield opened


@pytest.fixture(scope="module")
def program(gpu):
    return gpu.load(KERNELS)


def test_saxpy(gpu, program):
    n = 10_000
    x, y = gpu.array(np.arange(n, dtype=np.float32)), gpu.array(np.ones(n, np.float32))
    address, size = program.variable("calls")
    before = struct.unpack("<I", gpu.context.read(address, size))[0]
    program.function("saxpy").launch(40, 256, x, y, np.float32(2), n)
    assert (y.numpy() == 2 * np.arange(n, dtype=np.float32) + 1).all()
    assert struct.unpack("<I", gpu.context.read(address, size))[0] == before + n


def test_variables_hold_their_initial_values(gpu):
    fresh = gpu.load(KERNELS)
    assert gpu.context.read(*fresh.variable("calls")) == struct.pack("<I", 5)
    assert gpu.context.read(*fresh.variable("factor")) == struct.pack("<f", 2.0)


def test_a_constant_is_changed_by_a_copy(gpu):
    fresh = gpu.load(KERNELS)
    address, _ = fresh.variable("factor")
    x = gpu.array(np.arange(8, dtype=np.float32))
    kernel = fresh.function("twice")
    kernel.launch(1, 8, x)
    gpu.context.legacy.write(address, struct.pack("<f", -3.0))
    kernel.launch(1, 8, x)
    assert (x.numpy() == np.arange(8) * -6.0).all()


def test_dynamic_shared_memory(gpu, program):
    x = gpu.array(np.arange(128, dtype=np.uint32))
    program.function("reverse").launch(1, 128, x, shared=512)
    assert (x.numpy() == np.arange(128)[::-1]).all()


def test_streams_and_events(gpu, program):
    kernel = program.function("twice")
    a, b = gpu.stream(), gpu.stream(non_blocking=True)
    x = gpu.array(np.ones(32, np.float32))
    event, start, end = gpu.context.create_event(flags=2), gpu.context.create_event(), gpu.context.create_event()
    start.record(a)
    for _ in range(5):
        kernel.launch(1, 32, x, stream=a)
        event.record(a)
        b.wait_event(event)
        kernel.launch(1, 32, x, stream=b)
        event.record(b)
        a.wait_event(event)
    kernel.launch(1, 32, x)  # the default stream waits for a
    end.record()
    end.synchronize()
    assert (x.numpy() == 2.0**11).all()
    assert 0 < start.elapsed(end) < 10_000
    a.destroy()
    b.destroy()


def test_copies_and_fills(gpu):
    context = gpu.context
    a, pitch = context.allocate_pitch(100, 20, 4)
    b = context.allocate(100 * 20)
    stream = gpu.stream()
    stream.fill_2d(a, pitch, 0x01020304, 4, 25, 20)
    stream.copy_3d(Copy3D(width=100, height=20, source=a, source_pitch=pitch, destination=b, destination_pitch=100))
    stream.fill(b, 0xEE, 1, 3)
    assert context.read(b, 2000, stream) == b"\xee" * 3 + b"\x01" + struct.pack("<I", 0x01020304) * 499
    context.free(a)
    context.free(b)


def test_launch_limits_of_the_device(gpu, program):
    kernel = program.function("twice")
    x = gpu.array(np.ones(1, np.float32))
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        kernel.launch(1, 1025, x)
    assert kernel.core_function.attribute("CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK") >= 1024


def test_error_log(gpu):
    wrong = KERNELS.replace("mul.rn.f32 %f3, %f1, %f2;", "wgmma.fence.sync.aligned;")
    with pytest.raises(CudaError, match="INVALID_PTX") as caught:
        gpu.context.load_module(wrong, JitOptions(error_log=True), name="wrong.ptx")
    assert "wrong.ptx:" in caught.value.log and "wgmma.fence" in caught.value.log


def test_many_launches_from_many_streams(gpu, program):
    kernel = program.function("twice").core_function
    streams = [gpu.stream() for _ in range(4)] + [None]
    x = gpu.array(np.zeros(32, np.float32))
    packed = kernel.pack([x])
    for index in range(300):
        kernel.launch((1, 1, 1), (32, 1, 1), packed, 0, streams[index % 5])
    gpu.synchronize()
    for stream in streams[:4]:
        assert stream.query()
        stream.destroy()


def test_clocks_advance(gpu) -> None:
    """%clock64 and %clock around a loop (PTX ISA, Special Registers): the time between grows with the work."""
    text = """.version 7.0
.target sm_70
.address_size 64
.visible .entry timed(.param .u64 out, .param .u32 turns)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [out];
    ld.param.u32 %r0, [turns];
    mov.u32 %r1, 0;
    mov.u64 %rd1, %clock64;
    mov.u32 %r3, %clock;
LOOP:
    ld.volatile.global.u32 %r2, [%rd0];
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, %r0;
    @%p bra LOOP;
    mov.u32 %r4, %clock;
    mov.u64 %rd2, %clock64;
    sub.u64 %rd3, %rd2, %rd1;
    sub.u32 %r4, %r4, %r3;
    st.global.u64 [%rd0], %rd3;
    st.global.u32 [%rd0+8], %r4;
    ret;
}
"""
    kernel = gpu.load(text).function("timed")
    out = gpu.array(np.zeros(2, dtype=np.uint64))

    def span(turns: int) -> int:
        kernel.launch(1, 1, out, turns)
        long, short = (int(x) for x in out.numpy())
        assert short <= long < 2**32
        return long

    # The least of several, as other work on the machine may come between.
    assert span(1_000_000) > 10 * min(span(1) for _ in range(8))
