"""saxpy with cuda-python: compile CUDA C++ with NVRTC, run it over 2^20 elements, check every one.

A plain CUDA program: it needs `cuda-bindings`, `nvidia-cuda-nvrtc` and numpy, and a CUDA driver to run on.
"""

import ctypes
import sys
import time

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = rb"""
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}
"""


def check(result):
    """Unpack what a cuda-python call returns; stop with the error's name and text if it failed."""
    error, *values = result
    if isinstance(error, driver.CUresult) and error != driver.CUresult.CUDA_SUCCESS:
        text = driver.cuGetErrorString(error)[1]
        sys.exit(f"{error.name}: {text.decode() if text else 'no further information'}")
    if isinstance(error, nvrtc.nvrtcResult) and error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        sys.exit(f"{error.name}: {nvrtc.nvrtcGetErrorString(error)[1].decode()}")
    return values[0] if len(values) == 1 else values


def compile_to_ptx(source, capability):
    """CUDA C++ to PTX for a compute capability (major, minor)."""
    program = check(nvrtc.nvrtcCreateProgram(source, b"saxpy.cu", 0, [], []))
    options = [f"--gpu-architecture=compute_{capability[0]}{capability[1]}".encode(), b"--fmad=false"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program)))
        check(nvrtc.nvrtcGetProgramLog(program, log))
        sys.exit(log.decode())
    ptx = bytearray(check(nvrtc.nvrtcGetPTXSize(program)))
    check(nvrtc.nvrtcGetPTX(program, ptx))
    check(nvrtc.nvrtcDestroyProgram(program))
    return bytes(ptx)


def main():
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    name = check(driver.cuDeviceGetName(128, device)).split(b"\0")[0].decode()
    attribute = driver.CUdevice_attribute
    capability = tuple(
        check(driver.cuDeviceGetAttribute(which, device))
        for which in (
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))

    module = check(driver.cuModuleLoadData(compile_to_ptx(SOURCE, capability)))
    kernel = check(driver.cuModuleGetFunction(module, b"saxpy"))

    n = 1 << 20
    rng = np.random.default_rng(7)
    a = np.float32(2.5)
    x = rng.standard_normal(n, dtype=np.float32)
    y = rng.standard_normal(n, dtype=np.float32)
    out = np.full(n, np.nan, dtype=np.float32)

    d_x, d_y, d_out = (check(driver.cuMemAlloc(array.nbytes)) for array in (x, y, out))
    check(driver.cuMemcpyHtoD(d_x, x.ctypes.data, x.nbytes))
    check(driver.cuMemcpyHtoD(d_y, y.ctypes.data, y.nbytes))

    block = 256
    grid = (n + block - 1) // block
    arguments = (a, d_x, d_y, d_out, n), (ctypes.c_float, None, None, None, ctypes.c_size_t)
    check(driver.cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, 0, arguments, 0))  # the first launch warms up
    check(driver.cuCtxSynchronize())
    start = time.perf_counter()
    check(driver.cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, 0, arguments, 0))
    check(driver.cuCtxSynchronize())
    milliseconds = (time.perf_counter() - start) * 1e3

    check(driver.cuMemcpyDtoH(out.ctypes.data, d_out, out.nbytes))
    for pointer in (d_x, d_y, d_out):
        check(driver.cuMemFree(pointer))
    check(driver.cuModuleUnload(module))
    check(driver.cuDevicePrimaryCtxRelease(device))

    wrong = np.flatnonzero(out != a * x + y)
    if wrong.size:
        i = wrong[0]
        sys.exit(f"wrong: {wrong.size} of {n} elements, the first at {i}: {out[i]} instead of {a * x[i] + y[i]}")
    print(f"saxpy over {n} elements: all right, {milliseconds:.3f} ms on {name}")


if __name__ == "__main__":
    main()
