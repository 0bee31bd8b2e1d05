"""Arrays, copies of all shapes, peers, and what other processes and graphics APIs would have to give."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.client.conftest import BINDINGS_START

if TYPE_CHECKING:
    from tests.client.conftest import Client

PROGRAM = (
    BINDINGS_START
    + r"""
ptx = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 p)
{
  .reg .b32 %r<5>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;
}
'''
count = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(ptx)), b"count"))
WIDTH, HEIGHT, DEPTH = 33, 10, 4
memory = check(driver.cuMemAlloc(4 * 64 * 32))
stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
shape = driver.CUDA_ARRAY3D_DESCRIPTOR()
shape.Width, shape.Height, shape.Depth = WIDTH, HEIGHT, DEPTH
shape.Format, shape.NumChannels = driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32, 1
array = check(driver.cuArray3DCreate(shape))
check(driver.cuLaunchKernel(count, 32, 1, 1, 64, 1, 1, 0, stream, ((memory,), (None,)), 0))
there = driver.CUDA_MEMCPY3D()
there.srcMemoryType, there.srcDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, memory
there.srcPitch, there.srcHeight = 4 * 40, 11
there.dstMemoryType, there.dstArray = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY, array
there.WidthInBytes, there.Height, there.Depth = 4 * WIDTH, HEIGHT, DEPTH
check(driver.cuMemcpy3DAsync(there, stream))
check(driver.cuMemsetD32Async(memory, 7, 64 * 32, stream))
back = driver.CUDA_MEMCPY3D()
back.srcMemoryType, back.srcArray = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY, array
back.srcXInBytes, back.srcY, back.srcZ = 4 * 3, 2, 1
back.dstMemoryType, back.dstDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, memory
back.dstPitch, back.dstHeight = 4 * 16, 8
back.WidthInBytes, back.Height, back.Depth = 4 * 16, 8, 3
check(driver.cuMemcpy3DAsync(back, stream))
out = (ctypes.c_uint * (16 * 8 * 3 + 1))()
check(driver.cuMemcpyDtoHAsync(ctypes.addressof(out), memory, 4 * len(out), stream))
check(driver.cuStreamSynchronize(stream))
expected = [((z + 1) * 11 + y + 2) * 40 + x + 3 for z in range(3) for y in range(8) for x in range(16)]
assert list(out) == [*expected, 7], list(out)[:40]
check(driver.cuArrayDestroy(array))
print("all right")
"""
)


@pytest.mark.parametrize("name", ["arrays", "boxes", "batch", "peer", "foreign"])
def test_program(client: Client, name: str) -> None:
    client.check(f"{name}.c")


def test_a_kernels_results_through_an_array(client: Client) -> None:
    """On the OpenCL CPU device, in the order of a stream."""
    done = client.run([sys.executable, "-c", PROGRAM], client.environment(real=True))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all right\n"
