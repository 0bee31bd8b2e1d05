"""Side-by-side measurements: the project's road against C, pyopencl, memcpy and hand-written OpenCL on the same device, in one run."""
