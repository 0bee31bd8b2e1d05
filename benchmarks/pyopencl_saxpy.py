"""examples/saxpy.py written for pyopencl: what the example's start-up is compared with."""

import sys
import time

import numpy as np
import pyopencl as cl

SOURCE = """
#pragma OPENCL FP_CONTRACT OFF
kernel void saxpy(float a, global const float *x, global const float *y, global float *out, ulong n)
{
    size_t i = get_global_id(0);
    if (i < n)
        out[i] = a * x[i] + y[i];
}
"""


def main() -> None:
    device = next(d for p in cl.get_platforms() for d in p.get_devices(cl.device_type.CPU))
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    kernel = cl.Program(context, SOURCE).build("-cl-fp32-correctly-rounded-divide-sqrt").saxpy
    n = 1 << 20
    rng = np.random.default_rng(7)
    a = np.float32(2.5)
    x = rng.standard_normal(n, dtype=np.float32)
    y = rng.standard_normal(n, dtype=np.float32)
    out = np.full(n, np.nan, dtype=np.float32)
    d_x, d_y, d_out = (cl.Buffer(context, cl.mem_flags.READ_WRITE, array.nbytes) for array in (x, y, out))
    cl.enqueue_copy(queue, d_x, x)
    cl.enqueue_copy(queue, d_y, y)
    kernel(queue, (n,), (256,), a, d_x, d_y, d_out, np.uint64(n))
    queue.finish()
    start = time.perf_counter()
    kernel(queue, (n,), (256,), a, d_x, d_y, d_out, np.uint64(n))
    queue.finish()
    milliseconds = (time.perf_counter() - start) * 1e3
    cl.enqueue_copy(queue, out, d_out)
    if not np.array_equal(out, a * x + y):
        sys.exit("wrong")
    print(f"saxpy over {n} elements: all right, {milliseconds:.3f} ms on {device.name}")


main()
