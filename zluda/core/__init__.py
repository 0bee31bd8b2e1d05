"""CUDA semantics, vendor-neutral: devices, contexts, streams, events, memory, modules, launches."""
