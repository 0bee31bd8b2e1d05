"""3D copies between linear memory: rows, slices, what is packed, and bad shapes."""

import numpy as np
import pytest

from zluda.core import Copy3D, CudaError


def test_a_box_out_of_a_box_into_a_box(any_bench):
    context = any_bench.context
    source = np.arange(5 * 7 * 20, dtype=np.uint32).astype(np.uint8).reshape(5, 7, 20)
    a, b = context.allocate(source.size), context.allocate(4 * 9 * 32)
    context.write(a, source.tobytes())
    context.write(b, bytes(4 * 9 * 32))
    context.legacy.copy_3d(
        Copy3D(
            width=6, height=3, depth=2,
            source=a, source_pitch=20, source_height=7, source_x=3, source_y=2, source_z=1,
            destination=b, destination_pitch=32, destination_height=9,
            destination_x=5, destination_y=4, destination_z=2,
        )
    )  # fmt: skip
    expected = np.zeros((4, 9, 32), np.uint8)
    expected[2:4, 4:7, 5:11] = source[1:3, 2:5, 3:9]
    assert context.read(b, expected.size) == expected.tobytes()


@pytest.mark.parametrize(
    ("shape", "copies"),
    [
        ({"source_pitch": 10, "source_height": 4}, 1),
        ({"source_pitch": 10, "source_height": 5}, 3),
        ({"source_pitch": 11, "source_height": 4}, 12),
        ({"destination_pitch": 16}, 12),
    ],
)
def test_what_is_packed_goes_at_once(bench, shape, copies):
    context = bench.context
    a, b = context.allocate(1000), context.allocate(1000)
    context.write(a, bytes(i % 251 for i in range(1000)))
    context.legacy.fill(b, 0, 1, 1000)
    before = context.legacy._queue.calls.count("copy")
    context.legacy.copy_3d(Copy3D(width=10, height=4, depth=3, source=a, destination=b, **shape))
    assert context.legacy._queue.calls.count("copy") == before + copies
    data, pitch, rows = context.read(b, 1000), shape.get("source_pitch", 10), shape.get("source_height", 4)
    to = shape.get("destination_pitch", 10)
    for z in range(3):
        for y in range(4):
            at = (z * rows + y) * pitch
            assert data[(z * 4 + y) * to :][:10] == bytes(i % 251 for i in range(at, at + 10))


@pytest.mark.parametrize(
    "wrong",
    [
        {"source_pitch": 9},
        {"destination_pitch": 2**31},
        {"source_height": 3},
        {"destination_height": 4, "destination_y": 1},
        {"depth": 26},
        {"source_z": 23},
        {"depth": -1},
        {"height": -1},
    ],
)
def test_errors(bench, wrong):
    a, b = bench.context.allocate(1000), bench.context.allocate(1000)
    request = {"width": 10, "height": 4, "depth": 3, "source": a, "destination": b, **wrong}
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        bench.context.legacy.copy_3d(Copy3D(**request))


@pytest.mark.parametrize("empty", ["width", "height", "depth"])
def test_nothing_to_copy(bench, empty):
    a = bench.context.allocate(16)
    request = {"width": 1, "height": 1, "depth": 1, "source": a, "destination": a, empty: 0}
    bench.context.legacy.copy_3d(Copy3D(**request))
