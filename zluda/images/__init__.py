"""CUDA image containers (PTX text, fatbin, cubin) to PTX text."""
