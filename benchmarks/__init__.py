"""Side-by-side measurements: the road against C, pyopencl, memcpy and hand-written OpenCL on one device, in one run."""
