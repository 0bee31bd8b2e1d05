"""Graphs and stream capture on the OpenCL CPU device: kernels, copies and fills, replayed by NVIDIA's bindings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.client.conftest import BINDINGS_START

if TYPE_CHECKING:
    from tests.client.conftest import Client

PROGRAM = (
    BINDINGS_START
    + r"""
ptx = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry axpb(.param .u64 p, .param .u32 n, .param .u32 a, .param .u32 b)
{
  .reg .pred %p1; .reg .b32 %r<9>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  ld.param.u32 %r6, [a];
  ld.param.u32 %r7, [b];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r4, [%rd3];
  mad.lo.u32 %r4, %r4, %r6, %r7;
  st.global.u32 [%rd3], %r4;
DONE: ret;
}
'''
function = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(ptx)), b"axpb"))
n = 5000
x, y = check(driver.cuMemAlloc(4 * n)), check(driver.cuMemAlloc(4 * n))
stream, side = check(driver.cuStreamCreate(1)), check(driver.cuStreamCreate(1))
fork, join = check(driver.cuEventCreate(2)), check(driver.cuEventCreate(2))
def launch(where, pointer, a, b):
    values = ((pointer, ctypes.c_uint(n), ctypes.c_uint(a), ctypes.c_uint(b)), (None, *[ctypes.c_uint] * 3))
    check(driver.cuLaunchKernel(function, (n + 127) // 128, 1, 1, 128, 1, 1, 0, where, values, 0))
host = (ctypes.c_uint * n)(*range(n))
out = (ctypes.c_uint * n)()

# x = 3 x + 1 here, y = 5 there, then y += nothing but the copy of x: captured in two streams.
check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
check(driver.cuMemcpyHtoDAsync(x, ctypes.addressof(host), 4 * n, stream))
check(driver.cuEventRecord(fork, stream))
check(driver.cuStreamWaitEvent(side, fork, 0))
launch(stream, x, 3, 1)
check(driver.cuMemsetD32Async(y, 5, n, side))
launch(side, y, 2, 0)
check(driver.cuEventRecord(join, side))
check(driver.cuStreamWaitEvent(stream, join, 0))
check(driver.cuMemcpyDtoDAsync(y, x, 4 * (n // 2), stream))
launch(stream, y, 1, 7)
check(driver.cuMemcpyDtoHAsync(ctypes.addressof(out), y, 4 * n, stream))
graph = check(driver.cuStreamEndCapture(stream))
nodes, number = check(driver.cuGraphGetNodes(graph, 20))
assert number == 7, number
executable = check(driver.cuGraphInstantiate(graph, 0))
for turn in range(3):
    for i in range(n):
        host[i] = i + turn
    check(driver.cuGraphLaunch(executable, stream))
    check(driver.cuStreamSynchronize(stream))
    expected = [3 * (i + turn) + 1 + 7 if i < n // 2 else 10 + 7 for i in range(n)]
    assert list(out) == expected, (turn, [p for p in zip(out, expected) if p[0] != p[1]][:5])

# The same by hand, and 200 launches without waiting: z = z + 1 each.
built = check(driver.cuGraphCreate(0))
parameters = driver.CUDA_KERNEL_NODE_PARAMS()
parameters.func = function
parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = 40, 1, 1
parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = 128, 1, 1
parameters.kernelParams = (
    (x, ctypes.c_uint(n), ctypes.c_uint(1), ctypes.c_uint(1)), (None, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint)
)
first = check(driver.cuGraphAddKernelNode(built, None, 0, parameters))
second = check(driver.cuGraphAddKernelNode(built, [first], 1, parameters))
again = check(driver.cuGraphInstantiate(built, 0))
check(driver.cuMemsetD32(x, 0, n))
for _ in range(100):
    check(driver.cuGraphLaunch(again, stream))
check(driver.cuStreamSynchronize(stream))
check(driver.cuMemcpyDtoH(ctypes.addressof(out), x, 4 * n))
assert set(out) == {200}, set(out)
check(driver.cuGraphExecDestroy(again))
check(driver.cuGraphDestroy(built))
check(driver.cuGraphExecDestroy(executable))
check(driver.cuGraphDestroy(graph))
print("graphs")
"""
)


def test_captured_and_built_graphs(client: Client) -> None:
    done = client.run([sys.executable, "-c", PROGRAM], client.environment(real=True))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "graphs\n"
