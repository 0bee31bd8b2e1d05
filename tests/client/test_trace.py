"""What the client library writes under ZLUDA_TRACE, over the driver process with the test device."""

from __future__ import annotations

import itertools
import resource
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from zluda.spec.errors import errors
from zluda.trace.calls import Call
from zluda.trace.files import Trace
from zluda.trace.values import parameters

if TYPE_CHECKING:
    from tests.client.conftest import Client

NOT_FOUND, INVALID, UNINITIALIZED = (
    errors()[f"CUDA_ERROR_{name}"].code for name in ("NOT_FOUND", "INVALID_VALUE", "NOT_INITIALIZED")
)


def traced(client: Client, folder: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = client.run([client.build("trace.c"), *arguments], client.environment(ZLUDA_TRACE=str(folder)))
    assert done.returncode == status, done.stderr
    return done


def everything(trace: Trace) -> list[Call]:
    """All that is there: one file of each thread at a time."""
    calls = trace.read()
    while trace.reached is not None:
        assert calls and max(c.end or 0 for c in calls) >= trace.reached
        calls += trace.read()
    return calls


def named(calls: list[Call], symbol: str) -> list[Call]:
    return [call for call in calls if call.entry.symbol == symbol]


def test_every_call_with_its_parameters_and_result(client: Client, tmp_path: Path) -> None:
    done = traced(client, tmp_path)
    context, stream, data, function = done.stdout.split()
    trace = Trace(tmp_path)
    calls = trace.read()
    assert [c.entry.symbol for c in calls] == [
        "cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadData", "cuModuleGetFunction",
        "cuModuleLoadData", "cuModuleGetFunction", "cuMemAlloc_v2", "cuStreamCreate", "cuMemcpyHtoD_v2",
        "cuLaunchKernel", "cuLaunchKernelEx", "cuMemsetD32Async", "cuStreamSynchronize", "cuMemFree_v2",
        "cuMemAlloc_v2", "cuModuleGetFunction", "cuMemFree_v2",
    ]  # fmt: skip
    assert [c.result for c in calls] == [0] * 6 + [NOT_FOUND] + [0] * 7 + [INVALID] * 3 + [0]
    assert all(c.end is not None and c.end >= c.start for c in calls)
    assert all(a.end <= b.start for a, b in itertools.pairwise(calls) if a.end is not None)
    shown = [parameters(c) for c in calls]
    assert shown[0] == {"Flags": "0"}
    assert shown[1]["pctx"].endswith(f" → {context}") and shown[1]["dev"] == "0"
    assert shown[4]["name"] == '"add_one"' and shown[4]["hfunc"].endswith(f" → {function}")
    assert shown[6]["name"] == '"nothing"' and "→" not in shown[6]["hfunc"]
    assert shown[7]["dptr"].endswith(f" → 0x{data}") and shown[7]["bytesize"] == "16"
    assert shown[8]["phStream"].endswith(f" → {stream}") and shown[8]["Flags"] == "1"
    assert shown[9]["dstDevice"] == f"0x{data}" and shown[9]["ByteCount"] == "16"
    launch, extended = shown[10:12]
    assert launch["f"] == f"{function} add_one" and launch["blockDimX"] == "4" and launch["hStream"] == stream
    assert launch["kernelParams"].endswith(f" → (0x{data}, 4)") and launch["extra"] == "NULL"
    assert (
        f"gridDimX=2, gridDimY=1, gridDimZ=1, blockDimX=8, blockDimY=1, blockDimZ=1, sharedMemBytes=0, hStream={stream}"
        in extended["config"]
    )
    assert extended["kernelParams"].endswith(f" → (0x{data}, 4)")
    assert shown[15]["dptr"] == "NULL" and shown[16]["name"] == "NULL"
    assert not trace.unfinished() and not trace.count_lost()
    (process,) = trace.processes
    assert process.command[1:] == () and process.command[0].endswith("/trace")


@pytest.mark.parametrize(("threads", "count"), [(1, 50_000), (16, 5_000), (64, 10)])
def test_nothing_is_lost(client: Client, tmp_path: Path, threads: int, count: int) -> None:
    """Over several files a thread: 50,000 calls take about 80 bytes each."""
    traced(client, tmp_path, "threads", str(threads), str(count))
    trace = Trace(tmp_path)
    calls = named(everything(trace), "cuDeviceGetCount")
    assert set(Counter(c.thread.number for c in calls).values()) == {count}
    assert len(calls) == threads * count and all(c.values[0] == b"\2\0\0\0" for c in calls)
    assert not trace.count_lost() and not trace.unfinished()


def test_files_go_once_they_are_read(client: Client, tmp_path: Path) -> None:
    traced(client, tmp_path, "threads", "2", "20000")
    first = Trace(tmp_path, consume=True)
    assert len(named(everything(first), "cuDeviceGetCount")) == 40_000
    # The main thread's is not closed, as it did not end by itself.
    assert len(list(tmp_path.glob("*.calls"))) == 1


def test_a_child_has_files_of_its_own(client: Client, tmp_path: Path) -> None:
    child = int(traced(client, tmp_path, "fork").stdout)
    calls = Trace(tmp_path).read()
    theirs = [c for c in calls if c.thread.process.number == child]
    assert [(c.entry.symbol, c.result) for c in theirs] == [
        ("cuCtxSynchronize", UNINITIALIZED),
        ("cuDriverGetVersion", 0),
    ]
    assert [c.entry.symbol for c in calls if c not in theirs] == ["cuInit", "cuDriverGetVersion"]


def test_a_killed_program_leaves_all_up_to_the_call_it_was_in(client: Client, tmp_path: Path) -> None:
    traced(client, tmp_path, "killed", status=-9)
    trace = Trace(tmp_path)
    assert [c.entry.symbol for c in trace.read()][-2:] == ["cuModuleGetFunction", "cuLaunchKernel"]
    (last,) = trace.unfinished()
    assert last.entry.symbol == "cuCtxSynchronize" and last.result is None


def test_what_finds_no_room_is_counted(client: Client, tmp_path: Path) -> None:
    """A limit on the size of files that leaves room for the file of the process, and for no other."""
    limit = 100_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    subprocess.run(
        [client.build("trace.c"), "version", "5000"],
        env=client.environment(ZLUDA_TRACE=str(tmp_path)),
        preexec_fn=limited,
        check=True,
    )
    trace = Trace(tmp_path)
    assert not trace.read() and trace.count_lost() == 3 * 5000  # a call, what it wrote, its return


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_folder_that_cannot_be_written_is_said_once(client: Client, tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    done = client.run([client.build("trace.c")], client.environment(ZLUDA_TRACE=str(tmp_path / folder)))
    assert done.returncode == 0
    assert done.stderr.count("cannot write a trace to ZLUDA_TRACE=") == 1 and done.stderr.count("\n") == 1


def test_a_traced_call_costs_less_than_two_microseconds(client: Client, tmp_path: Path) -> None:
    program = client.build("trace.c", "-O2")
    seconds = float(client.run([program, "cost", "1000"], client.environment(ZLUDA_TRACE=str(tmp_path))).stdout)
    assert seconds < 2e-6
