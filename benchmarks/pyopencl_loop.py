"""Launches per second of a pyopencl loop: pyopencl_loop.py KERNELS.cl N."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyopencl as cl


def main() -> None:
    n = int(sys.argv[2])
    device = next(d for p in cl.get_platforms() for d in p.get_devices(cl.device_type.CPU))
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    kernel = cl.Program(context, Path(sys.argv[1]).read_text()).build().tiny
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)
    kernel.set_scalar_arg_dtypes([None, np.int32, np.int32])
    for i in range(-100, n):
        if i == 0:
            queue.finish()
            start = time.perf_counter()
        kernel.set_args(buffer, 1, 1)
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
    queue.finish()
    print(json.dumps({"launches": n, "per_second": n / (time.perf_counter() - start)}))


main()
