"""Zluda: unmodified CUDA programs on GPUs that are not NVIDIA's."""
