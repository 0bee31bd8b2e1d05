"""Stream memory operations, in batches."""

from __future__ import annotations

from zluda.core import memory_operation
from zluda.server.dispatch import handles
from zluda.server.state import State
from zluda.spec.protocol import protocol
from zluda.spec.types import enum

_KIND = enum("CUstreamBatchMemOpType")
_WAITS = {_KIND["CU_STREAM_MEM_OP_WAIT_VALUE_32"]: 4, _KIND["CU_STREAM_MEM_OP_WAIT_VALUE_64"]: 8}
_WRITES = {_KIND["CU_STREAM_MEM_OP_WRITE_VALUE_32"]: 4, _KIND["CU_STREAM_MEM_OP_WRITE_VALUE_64"]: 8}
_operation = protocol().structures["memory_operation"].compiled()


@handles("memory_operations")
def memory_operations(state: State, handle: int, stream: int, count: int, _: int, tail: memoryview) -> None:
    """The client has checked kinds and conditions."""
    found = state.stream(state.context(handle), stream)
    for address, value, kind, flags in _operation.iter_unpack(tail[: count * _operation.size]):
        if kind in _WAITS:
            memory_operation.wait_value(found, address, value, _WAITS[kind], flags)
        else:
            memory_operation.write_value(found, address, value, _WRITES[kind])
