"""CUDA semantics, vendor-neutral: devices, contexts, streams, events, memory, modules, launches."""

from zluda.core.context import Context
from zluda.core.copies import Copy3D
from zluda.core.device import CudaDevice
from zluda.core.driver import DRIVER_VERSION, Driver
from zluda.core.errors import CudaError
from zluda.core.event import Event
from zluda.core.function import Function
from zluda.core.memory import Allocation, MemoryKind
from zluda.core.module import Module
from zluda.core.options import JitOptions
from zluda.core.pool import MemoryPool
from zluda.core.stream import Stream, StreamKind
from zluda.core.wait import Wait

__all__ = [
    "DRIVER_VERSION",
    "Allocation",
    "Context",
    "Copy3D",
    "CudaDevice",
    "CudaError",
    "Driver",
    "Event",
    "Function",
    "JitOptions",
    "MemoryKind",
    "MemoryPool",
    "Module",
    "Stream",
    "StreamKind",
    "Wait",
]
