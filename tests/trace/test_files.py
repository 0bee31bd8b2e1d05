"""Reading files while they grow, and files that are none."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest

from zluda.spec.protocol import protocol
from zluda.spec.trace import entries, identity
from zluda.trace.files import Trace, UnreadableTrace
from zluda.trace.follow import Follower
from zluda.trace.text import TextWriter

CONSTANTS = protocol().constants
FILE = protocol().structures["trace_file"].compiled()
RECORD = protocol().structures["trace_record"].compiled()
NUMBER = {entry.symbol: number for number, entry in enumerate(entries())}


def record(kind: str, index: int, value: int, content: bytes = b"") -> bytes:
    content += b"\0" * (-len(content) % 8)
    return RECORD.pack(CONSTANTS[f"TRACE_{kind}"], index, RECORD.size + len(content), value) + content


def write(path: Path, thread: int, content: bytes, sequence: int = 0, closed: int = 0, lost: int = 0) -> None:
    head = FILE.pack(
        CONSTANTS["TRACE_MAGIC"], identity(), 5, 77, thread, sequence, closed, lost, b"a thread", len(content)
    )
    path.write_bytes(head + content + b"\0" * 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "77-5.process", 0, b"./program\0-x\0", lost=4)
    return tmp_path


def synchronize(start: int, end: int | None = None) -> bytes:
    begun = record("CALL", NUMBER["cuCtxSynchronize"], start)
    return begun if end is None else begun + record("RETURN", 0, end)


def test_what_is_added_is_read_once(folder: Path) -> None:
    trace, path = Trace(folder, consume=True), folder / "77-5-1-0.calls"
    assert trace.read() == []
    write(path, 78, synchronize(10))
    assert trace.read() == [] and len(trace.unfinished()) == 1
    write(path, 78, synchronize(10, 20) + synchronize(30))
    (first,) = trace.read()
    assert (first.start, first.end, first.thread.number, first.thread.name) == (10, 20, 78, "a thread")
    assert first.thread.process.command == ("./program", "-x")
    write(path, 78, synchronize(10, 20) + synchronize(30), closed=1)
    write(folder / "77-5-1-1.calls", 78, record("RETURN", 0, 40), sequence=1)
    (second,) = trace.read()
    assert (second.start, second.end) == (30, 40)
    assert not path.exists() and (folder / "77-5-1-1.calls").exists()
    assert trace.read() == [] and trace.count_lost() == 4


def test_a_call_within_a_call(folder: Path) -> None:
    inner = record("CALL", NUMBER["cuMemFree_v2"], 11, struct.pack("<Q", 8)) + record("RETURN", 1, 12)
    write(
        folder / "77-5-1-0.calls", 78, record("CALL", NUMBER["cuCtxSynchronize"], 10) + inner + record("RETURN", 0, 13)
    )
    assert [(c.entry.symbol, c.start, c.end, c.result) for c in Trace(folder).read()] == [
        ("cuMemFree_v2", 11, 12, 1),
        ("cuCtxSynchronize", 10, 13, 0),
    ]


def test_a_return_whose_call_was_lost_is_no_call(folder: Path) -> None:
    write(folder / "77-5-1-0.calls", 78, record("VALUE", 0, 4, b"1234") + record("RETURN", 0, 9) + synchronize(10, 20))
    assert [c.start for c in Trace(folder).read()] == [10]


def test_a_file_that_is_not_filled_in_yet_waits(folder: Path) -> None:
    (folder / "77-5-1-0.calls").write_bytes(b"\0" * 400)
    (folder / "77-5-2-0.calls").write_bytes(b"")
    (folder / "78-6.process").write_bytes(b"")
    trace = Trace(folder)
    assert trace.read() == [] and len(trace.processes) == 1
    write(folder / "77-5-1-0.calls", 78, synchronize(1, 2))
    assert len(trace.read()) == 1


def test_another_builds_trace_is_refused(folder: Path) -> None:
    data = bytearray((folder / "77-5.process").read_bytes())
    data[8] ^= 1
    (folder / "77-5.process").write_bytes(data)
    with pytest.raises(UnreadableTrace, match="another build of Zluda"):
        Trace(folder).read()


def test_threads_are_told_in_the_order_of_returns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "77-5-1-0.calls", 78, synchronize(10, 40) + synchronize(50, 60) + synchronize(70))
    write(folder / "77-5-2-0.calls", 79, synchronize(20, 30) + synchronize(45, 55))
    import sys

    Follower(Trace(folder), TextWriter(sys.stdout, 0)).finish()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# process 77: ./program -x" and lines[-1].startswith("# 4 records are missing")
    assert [line.split()[1] for line in lines[1:-1]] == ["[79]", "[78]", "[79]", "[78]", "[78]"]
    assert lines[-2].endswith("did not return")


def test_a_reader_that_is_behind_keeps_the_order(folder: Path) -> None:
    """One file a thread at a time: what others returned later waits."""
    write(folder / "77-5-1-0.calls", 78, synchronize(5, 10) + synchronize(15, 20), closed=1)
    write(folder / "77-5-1-1.calls", 78, synchronize(26, 30), sequence=1, closed=1)
    write(folder / "77-5-1-2.calls", 78, synchronize(36, 40), sequence=2)
    write(folder / "77-5-2-0.calls", 79, synchronize(21, 25) + synchronize(31, 35) + synchronize(41, 45))
    file = io.StringIO()
    follower = Follower(Trace(folder), TextWriter(file, 0))
    follower.step()
    assert [line.split()[1] for line in file.getvalue().splitlines()[1:]] == ["[78]", "[78]"]
    follower.finish()
    threads = [line.split()[1] for line in file.getvalue().splitlines()[1:-1]]
    assert threads == ["[78]", "[78]", "[79]", "[78]", "[79]", "[78]", "[79]"]


@pytest.mark.parametrize("size", [0, 8, 1 << 20])
def test_a_damaged_file_is_told(folder: Path, size: int) -> None:
    write(folder / "77-5-1-0.calls", 78, RECORD.pack(CONSTANTS["TRACE_CALL"], 0, size, 1))
    with pytest.raises(UnreadableTrace, match="damaged"):
        Trace(folder).read()
