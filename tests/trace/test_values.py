"""Types, parameters and lines, on calls made by hand."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

from zluda.spec.c_types import Scalar, Structure, c_type
from zluda.spec.trace import entries
from zluda.trace.calls import Call, Kernel, Process, Thread
from zluda.trace.chrome import ChromeWriter
from zluda.trace.text import TextWriter
from zluda.trace.values import parameters

BY_SYMBOL = {entry.symbol: entry for entry in entries()}
PROCESS = Process(10, 0, ("./program", "argument"), {0x5000: Kernel("scale", ((0, 8), (8, 4), (16, 16)))})
MAIN, OTHER = Thread(PROCESS, 10, "program"), Thread(PROCESS, 11, "worker")


def call(symbol: str, *words: int, start: int = 0, end: int | None = 1000, thread: Thread = MAIN, **more: Any) -> Call:
    made = Call(thread, BY_SYMBOL[symbol], start, words, **more)
    made.end, made.result = end, more.get("result", 0 if end is not None else None)
    return made


def launch(symbol: str = "cuLaunchKernel", stream: int = 0, **more: Any) -> Call:
    made = call(symbol, 0x5000, 1, 2, 3, 4, 5, 6, 7, stream, 0x7000, 0, **more)
    made.launched, made.arguments = 0x5000, struct.pack("<QIxxxx16s", 0x600000, 9, b"\xab" * 16)
    return made


def test_layouts_are_those_of_c() -> None:
    """Sizes and offsets by the System V ABI, of CUlaunchConfig and CUDA_MEMCPY2D as cuda.h has them."""
    config, copy = c_type("CUlaunchConfig"), c_type("CUDA_MEMCPY2D")
    assert isinstance(config, Structure) and isinstance(copy, Structure)
    assert config.size == 56 and {m.name: m.offset for m in config.members}["hStream"] == 32
    assert copy.size == 128 and {m.name: m.offset for m in copy.members}["dstXInBytes"] == 56
    assert c_type("void") is None and c_type("CUmemLocation") is None  # it holds a union


def test_types_of_numbers() -> None:
    assert c_type("CUdevice") == Scalar("signed", 4)
    assert c_type("CUdeviceptr") == Scalar("address", 8) == c_type("CUstream") == c_type("const char *")
    assert c_type("size_t") == Scalar("unsigned", 8) and c_type("CUhostFn") == Scalar("address", 8)


def test_numbers_by_their_type() -> None:
    assert parameters(call("cuDeviceGet", 0x7FFF0000, 0xFFFFFFFF, values={0: struct.pack("<i", -2)})) == {
        "device": "0x7fff0000 → -2",
        "ordinal": "-1",
    }
    assert parameters(call("cuEventElapsedTime_v2", 0x10, 2, 3, values={0: struct.pack("<f", 1.5)}))[
        "pMilliseconds"
    ] == ("0x10 → 1.5")
    assert parameters(call("cuDeviceGetAttribute", 0, 1, 0)) == {
        "pi": "NULL",
        "attrib": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
        "dev": "0",
    }
    assert parameters(call("cuDeviceGetAttribute", 0, 12345, 0))["attrib"] == "12345"


def test_streams_by_name() -> None:
    assert [parameters(call("cuStreamQuery", n))["hStream"] for n in (0, 1, 2, 0x20)] == [
        "0",
        "CU_STREAM_LEGACY",
        "CU_STREAM_PER_THREAD",
        "0x20",
    ]


def test_text_is_quoted_and_a_cut_shows() -> None:
    asked = call("cuModuleGetFunction", 1, 2, 3, values={2: b'a "name"\n'})
    assert parameters(asked)["name"] == '"a \\"name\\"\\n"'
    asked.values[2] = b"x" * 200
    assert parameters(asked)["name"] == f'"{"x" * 200}"…'


def test_a_launch_shows_what_the_kernel_gets() -> None:
    shown = parameters(launch(stream=0x20))
    assert shown["f"] == "0x5000 scale" and shown["blockDimY"] == "5" and shown["hStream"] == "0x20"
    assert shown["kernelParams"] == f"0x7000 → (0x600000, 9, 16 bytes {'ab' * 16})" and shown["extra"] == "NULL"


def test_lines() -> None:
    file = io.StringIO()
    writer = TextWriter(file, 1_000_000_000)
    writer.process(PROCESS)
    writer.call(call("cuInit", 0, start=1_500_000_000, end=1_500_012_345))
    writer.call(call("cuMemFree_v2", 0x10, start=2_000_000_000, end=2_000_000_100, thread=OTHER, result=1))
    writer.call(call("cuCtxSynchronize", start=3_000_000_000, end=None))
    writer.finish(3)
    assert file.getvalue().splitlines() == [
        "# process 10: ./program argument",
        "   0.500000 [10] cuInit(Flags=0) = CUDA_SUCCESS 12.3 µs",
        "   1.000000 [11] cuMemFree_v2(dptr=0x10) = CUDA_ERROR_INVALID_VALUE 0.1 µs",
        "   2.000000 [10] cuCtxSynchronize() did not return",
        "# 3 records are missing: there was no room for them on the disk",
    ]


def events(*calls: Call, lost: int = 0) -> dict[str, Any]:
    file = io.StringIO()
    writer = ChromeWriter(file, 0)
    writer.process(PROCESS)
    for each in calls:
        writer.call(each)
    writer.finish(lost)
    return json.loads(file.getvalue())  # type: ignore[no-any-return]


def test_a_timeline_has_threads_and_streams_as_tracks() -> None:
    made = events(
        launch(stream=0x20, start=2000, end=5000),
        launch(stream=0x20, start=3000, end=6000, thread=OTHER),
        launch("cuLaunchKernel_ptsz", start=7000, end=8000, thread=OTHER),
        call("cuMemcpyHtoD_v2", 1, 2, 3, start=9000, end=9500),
        call("cuMemcpyHtoD_v2", 1, 2, 3, start=9600, end=9700, result=1),
        call("cuStreamSynchronize", 0x20, start=9800, end=None),
        lost=2,
    )
    tracks = {e["tid"]: e["args"]["name"] for e in made["traceEvents"] if e["name"] == "thread_name"}
    slices = [e for e in made["traceEvents"] if e["ph"] == "X"]
    shown = [(tracks[e["tid"]], e["name"], e["ts"], e["dur"]) for e in slices]
    stream, own, legacy = (
        f"{name} (order of enqueueing)"
        for name in ("stream 0x20", "default stream of thread 11", "legacy default stream")
    )
    assert shown == [
        ("program", "cuLaunchKernel", 2.0, 3.0),
        (stream, "scale", 2.0, 3.0),
        ("worker", "cuLaunchKernel", 3.0, 3.0),
        (stream, "scale", 5.0, 1.0),  # never two at a time on one track
        ("worker", "cuLaunchKernel_ptsz", 7.0, 1.0),
        (own, "scale", 7.0, 1.0),
        ("program", "cuMemcpyHtoD_v2", 9.0, 0.5),
        (legacy, "cuMemcpyHtoD_v2", 9.0, 0.5),
        ("program", "cuMemcpyHtoD_v2", 9.6, 0.1),  # failed: nothing was put into a stream
        ("program", "cuStreamSynchronize", 9.8, 0.0),
    ]
    assert slices[1]["args"]["times"] == "of the call that enqueued it, not the device's"
    assert slices[1]["args"]["arguments"].startswith("0x600000, 9, ")
    assert slices[8]["args"]["result"] == "CUDA_ERROR_INVALID_VALUE"
    assert slices[9]["args"]["result"] == "did not return"
    assert made["otherData"] == {"lost_records": 2}


def test_a_stream_within_a_configuration() -> None:
    config = struct.pack("<7I4xQQI4x", 1, 1, 1, 1, 1, 1, 0, 0x30, 0, 0)
    made = call("cuLaunchKernelEx", 0x100, 0x5000, 0x7000, 0, values={0: config})
    made.launched = 0x5000
    names = {e["args"]["name"] for e in events(made)["traceEvents"] if e["name"] == "thread_name"}
    assert "stream 0x30 (order of enqueueing)" in names
