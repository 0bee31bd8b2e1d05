"""The driver API through NVIDIA's Python bindings, on the test device; run as a program."""

import ctypes

from cuda.bindings import driver as d


def ok(result):
    assert result[0] == d.CUresult.CUDA_SUCCESS, result
    return result[1:] if len(result) > 2 else result[1] if len(result) > 1 else None


PTX = b""".version 7.8
.target sm_75
.address_size 64
.visible .entry add_one(.param .u64 a, .param .u32 n) { ret; }
"""

ok(d.cuInit(0))
assert ok(d.cuDriverGetVersion()) == 13050
device = ok(d.cuDeviceGet(0))
context = ok(d.cuDevicePrimaryCtxRetain(device))
ok(d.cuCtxSetCurrent(context))
assert ok(d.cuDeviceGetName(100, device)).startswith(b"Test device 0")
free, total = ok(d.cuMemGetInfo())
assert 0 < free <= total

memory = ok(d.cuMemAlloc(4096))
ok(d.cuMemsetD32(memory, 5, 1024))
data = bytearray(4096)
ok(d.cuMemcpyDtoH(data, memory, 4096))
assert data == b"\5\0\0\0" * 1024
attributes = [d.CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT, d.CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE]
owner, size = ok(d.cuPointerGetAttributes(2, attributes, memory))
assert int(owner) == int(context) and size == 4096

stream = ok(d.cuStreamCreate(0))
first, second = ok(d.cuEventCreate(0)), ok(d.cuEventCreate(0))
ok(d.cuEventRecord(first, stream))
library = ok(d.cuLibraryLoadData(PTX, [], [], 0, [], [], 0))
kernel = ok(d.cuLibraryGetKernel(library, b"add_one"))
function = ok(d.cuKernelGetFunction(kernel))
assert ok(d.cuKernelGetName(kernel)) == b"add_one"
assert ok(d.cuFuncGetParamInfo(function, 1)) == (8, 4)
config = d.CUlaunchConfig()
config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1
config.hStream = stream
ok(d.cuLaunchKernelEx(config, function, ((memory, ctypes.c_uint(4)), (None, ctypes.c_uint)), 0))
ok(d.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, ((memory, ctypes.c_uint(2)), (None, ctypes.c_uint)), 0))
ok(d.cuEventRecord(second, stream))
ok(d.cuEventSynchronize(second))
assert ok(d.cuEventElapsedTime(first, second)) >= 0
ok(d.cuMemcpyDtoH(data, memory, 24))
assert list(memoryview(data).cast("I"))[:6] == [7, 7, 6, 6, 5, 5]
block_grid = ok(d.cuOccupancyMaxPotentialBlockSize(function, None, 0, 0))
assert block_grid[1] > 0

log = b" " * 300
options = [d.CUjit_option.CU_JIT_ERROR_LOG_BUFFER, d.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
result = d.cuModuleLoadDataEx(PTX.replace(b"{ ret; }", b"{ ret }"), 2, options, [log, 300])
assert result[0] == d.CUresult.CUDA_ERROR_INVALID_PTX and b":4:" in log, (result, log)
assert d.cuMemAlloc(1 << 50)[0] == d.CUresult.CUDA_ERROR_OUT_OF_MEMORY
print("all right")
