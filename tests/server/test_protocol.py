"""The protocol's layouts, and that spec, handlers and C agree."""

from __future__ import annotations

import struct

import pytest

from zluda.core import CudaError
from zluda.spec.driver_api import Function, driver_api
from zluda.spec.protocol import lay_out, protocol, wire_type


def test_layout_is_cs_natural_alignment() -> None:
    layout = lay_out("t", [("u8", "a"), ("u64", "b"), ("u16", "c"), ("u32[3]", "d"), ("char[5]", "e")])
    assert [(f.name, f.offset) for f in layout.fields] == [("a", 0), ("b", 8), ("c", 16), ("d", 20), ("e", 32)]
    assert layout.size == 40
    # Python's native layout of the same structure, but for padding at the end.
    assert struct.calcsize("@BQH3I5s0Q") == layout.size
    packed = layout.compiled().pack(1, 2, 3, 4, 5, 6, b"hello")
    assert packed == struct.pack("@BQH3I5s0Q", 1, 2, 3, 4, 5, 6, b"hello")


def test_an_asked_alignment_is_kept() -> None:
    layout = lay_out("t", [("u32", "a"), ("u32", "b", 64)])
    assert layout.offset("b") == 64 and layout.size == 128


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="no wire type u128"):
        lay_out("t", [("u128", "a")])
    with pytest.raises(ValueError, match="cannot travel"):
        wire_type("void *")


def test_areas_of_the_shared_segment_do_not_overlap() -> None:
    spec = protocol()
    c = spec.constants
    assert spec.structures["control"].size <= c["DEVICES_OFFSET"]
    assert c["DEVICES_OFFSET"] + c["MAX_DEVICES"] * spec.structures["device"].size <= c["SLOTS_OFFSET"]
    assert c["SLOTS_OFFSET"] + c["MAX_SLOTS"] * c["SLOT_BYTES"] <= c["RING_OFFSET"]
    assert c["RING_OFFSET"] + c["RING_BYTES"] == c["SHARED_BYTES"]
    assert c["RING_BYTES"] % c["UNIT"] == 0 and c["MAX_SLOTS"] <= c["POSTED"]
    assert spec.structures["header"].size % 8 == 0 and spec.structures["slot"].size % 8 == 0
    longest = max(command.fields.size for command in spec.commands)
    assert spec.structures["header"].size + longest + c["INLINE_BYTES"] < c["RING_BYTES"] // 2


def test_opcodes_are_dense_and_names_unique() -> None:
    commands = protocol().commands
    assert [c.opcode for c in commands] == list(range(1, len(commands) + 1))
    assert len({c.name for c in commands}) == len(commands)
    assert not any(c.reply.fields for c in commands if c.answer == "post")


def test_every_command_has_a_handler() -> None:
    import zluda.server.handlers  # noqa: F401
    from zluda.server import dispatch

    assert set(dispatch._handlers) == {c.name for c in protocol().commands}


def test_entry_points_agree_with_the_protocol() -> None:
    remote = {f.symbol for f in driver_api().function if f.answer != "local"}
    assert remote <= {c.name for c in protocol().commands}
    for f in driver_api().function:
        assert f.symbol == f.name or f.symbol.startswith(f.name + "_v"), f.symbol


def test_a_function_that_is_not_whole_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="note"):
        Function.model_validate({"name": "cuX", "since": 1, "answer": "local", "support": "partial", "parameters": []})
    with pytest.raises(ValueError, match="gives nothing back"):
        out = {"name": "a", "type": "int *", "direction": "out"}
        Function.model_validate({"name": "cuX", "since": 1, "answer": "post", "parameters": [out]})


def test_core_and_client_name_the_same_limits_and_version() -> None:
    from zluda.core import DRIVER_VERSION

    assert driver_api().version == DRIVER_VERSION
    assert CudaError("CUDA_ERROR_UNKNOWN").code == 999
