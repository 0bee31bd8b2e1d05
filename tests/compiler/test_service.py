"""Compile workers: results, errors, deaths, time limits, parallel compiles, and when they start and end."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from zluda.compiler import service as service_module
from zluda.compiler import supervisor
from zluda.compiler.cache import Cache, request_key
from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompiledImage, CompileRequest
from zluda.compiler.service import CompileService
from zluda.ptx.errors import PtxSyntaxError, PtxUnsupported

Make = Callable[..., CompileRequest]
MakeService = Callable[..., CompileService]


def pid_of(image: CompiledImage) -> int:
    """The stand-in compiler puts its process id behind 1024 bytes."""
    return int(image.image.data[1024:])


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether a process ends within a time; a zombie has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def failure(service: CompileService, request: CompileRequest) -> CompileError:
    with pytest.raises(CompileError) as raised:
        service.compile(request)
    return raised.value


def test_a_result_comes_back_whole_and_the_worker_stays_warm(service: CompileService, request_for: Make) -> None:
    first = service.compile(request_for("pid", ("a", "b")))
    assert first.image.format == "spirv" and first.image.data[:1024] == bytes(range(256)) * 4
    assert [kernel.name for kernel in first.kernels] == ["a", "b"]
    assert first.image.kernels == tuple(kernel.signature for kernel in first.kernels)
    assert pid_of(first) != os.getpid()
    assert pid_of(service.compile(request_for("pid", ("c",)))) == pid_of(first)


@pytest.mark.parametrize(
    ("command", "how"),
    [("abort", "SIGABRT"), ("segv", "SIGSEGV"), ("kill", "SIGKILL"), ("exit=1", "status 1"), ("exit=0", "status 0")],
)
def test_a_death_is_one_compile_s_error(service: CompileService, request_for: Make, command: str, how: str) -> None:
    before = service.compile(request_for("pid"))
    error = failure(service, request_for(command, ("victim",)))
    assert error.kind == "died" and how in str(error) and "victim" in str(error) and "<test>" in str(error)
    after = service.compile(request_for("pid pid"))
    assert pid_of(after) != pid_of(before)


def test_the_error_shows_what_a_dead_worker_said(service: CompileService, request_for: Make) -> None:
    error = failure(service, request_for("abort"))
    assert "LLVM ERROR: cannot select: a flux capacitor" in str(error)
    assert "compile_portable" in error.log  # the fault handler's stack


def test_a_worker_that_was_killed_while_idle_is_replaced(service: CompileService, request_for: Make) -> None:
    pid = pid_of(service.compile(request_for("pid")))
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    assert pid_of(service.compile(request_for("pid pid"))) != pid


@pytest.mark.parametrize("command", ["sleep=600", "spin"])
def test_the_time_limit_ends_a_compile(
    make_service: MakeService, request_for: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    monkeypatch.setenv("ZLUDA_COMPILE_TIMEOUT", "1.5")
    service = make_service()
    mark = tmp_path / "mark"
    started = time.monotonic()
    error = failure(service, request_for(f"mark={mark} {command}"))
    assert error.kind == "timeout" and "1.5 s" in str(error) and time.monotonic() - started < 10
    assert gone(int(mark.read_text()))
    assert service.compile(request_for("pid"))


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan"])
def test_a_time_limit_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("ZLUDA_COMPILE_TIMEOUT", text)
    with pytest.raises(ValueError, match="ZLUDA_COMPILE_TIMEOUT"):
        CompileService(None)


def test_ptx_errors_keep_their_place(service: CompileService, request_for: Make) -> None:
    error = failure(service, request_for("pid\npid  syntax pid"))
    assert error.kind == "ptx"
    assert (error.line, error.column, error.offset) == (2, 6, 9)
    assert (error.reason, error.function, error.hint) == ("expected a comma", "f", "add one")
    assert "<test>:2:6 in f: expected a comma" in str(error) and "    pid  syntax pid\n         ^" in str(error)
    cause = error.__cause__
    assert isinstance(cause, PtxSyntaxError) and str(cause) == str(error) and (cause.line, cause.column) == (2, 6)

    error = failure(service, request_for("unsupported"))
    assert error.kind == "unsupported" and isinstance(error.__cause__, PtxUnsupported) and error.function == "g"
    assert pid_of(service.compile(request_for("pid")))


def test_other_failures_come_back_with_their_log(service: CompileService, request_for: Make) -> None:
    error = failure(service, request_for("internal"))
    assert (error.kind, error.message, error.log) == ("internal", "the lint found something", "all of it")
    error = failure(service, request_for("raise"))
    assert error.kind == "internal" and "ZeroDivisionError: something unforeseen" in str(error)
    assert "report it" in str(error) and "Traceback" in error.log


def test_what_a_worker_logs_is_logged_here(
    service: CompileService, request_for: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "zluda"):
        service.compile(request_for("print log=mind"))
    assert "miss: k of <test>" in caplog.messages
    assert ("zluda.compiler.lower", logging.WARNING, "a word of warning: mind") in caplog.record_tuples
    assert any(message.startswith("compiled: k of <test> in ") for message in caplog.messages)


def test_the_vendor_s_binary_comes_back(service: CompileService, request_for: Make) -> None:
    image = service.compile(request_for("pid", backend="fake", options=("-a", "-b")))
    assert image.image.format == "native:fake" and image.image.data == b"native -a -b"
    assert [kernel.name for kernel in image.kernels] == ["k"]


def test_a_vendor_without_binaries_leaves_the_portable_image(service: CompileService, request_for: Make) -> None:
    assert service.compile(request_for("pid", backend="fake", options=("none",))).image.format == "spirv"


def test_the_vendor_s_refusal_and_an_unknown_backend(service: CompileService, request_for: Make) -> None:
    error = failure(service, request_for("pid", backend="fake", options=("refuse",)))
    assert error.kind == "vendor" and error.log == "line 1: no" and "error 42" in str(error)
    error = failure(service, request_for("pid", backend="nowhere"))
    assert error.kind == "vendor" and "'nowhere' is not installed" in str(error) and "fake" in str(error)


@pytest.mark.parametrize("command", ["die", "hang"])
def test_a_second_try_at_low_effort(
    make_service: MakeService,
    request_for: Make,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("ZLUDA_COMPILE_TIMEOUT", "10")
    monkeypatch.setattr(service_module, "_FULL_EFFORT_PART", 0.1)
    mark = tmp_path / "mark"
    image = make_service().compile(request_for(f"mark={mark}", backend="fake", options=(command,)))
    assert image.image.data == f"native {command} -cl-opt-disable".encode()
    assert "-cl-opt-disable" in image.log and any("-cl-opt-disable" in message for message in caplog.messages)
    assert len(mark.read_text().split()) == 1  # the portable half was not done again


@pytest.mark.parametrize(("ptx", "command"), [("warp", "die"), ("pid", "die-always")])
def test_no_second_try_with_subgroups_and_no_third(
    service: CompileService, request_for: Make, ptx: str, command: str
) -> None:
    error = failure(service, request_for(ptx, backend="fake", options=(command,)))
    assert error.kind == "died" and "SIGABRT" in str(error)


def test_a_hanging_vendor_with_subgroups_runs_into_the_limit(
    make_service: MakeService, request_for: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZLUDA_COMPILE_TIMEOUT", "2")
    monkeypatch.setattr(service_module, "_FULL_EFFORT_PART", 0.1)
    error = failure(make_service(), request_for("warp", backend="fake", options=("hang",)))
    assert error.kind == "timeout" and "2 s" in str(error)


def test_compiles_run_side_by_side(make_service: MakeService, request_for: Make, tmp_path: Path) -> None:
    service = make_service(workers=2)
    one, two = tmp_path / "one", tmp_path / "two"
    # Each waits for a file that the other writes first.
    a = service.submit(request_for(f"mark={one} wait={two}"))
    b = service.submit(request_for(f"mark={two} wait={one}"))
    assert pid_of(a.result(30)) != pid_of(b.result(30))


def test_no_more_workers_than_asked_for(make_service: MakeService, request_for: Make) -> None:
    service = make_service(workers=1)
    futures = [service.submit(request_for("pid " * (i + 1))) for i in range(5)]
    assert len({pid_of(future.result(30)) for future in futures}) == 1


def test_a_request_under_way_is_joined(make_service: MakeService, request_for: Make, tmp_path: Path) -> None:
    service = make_service(workers=2)
    mark, start = tmp_path / "mark", tmp_path / "start"
    futures = [service.submit(request_for(f"mark={mark} wait={start}")) for _ in range(3)]
    assert not futures[0].cancel()
    start.touch()
    assert len({pid_of(future.result(30)) for future in futures}) == 1
    assert len(mark.read_text().split()) == 1


def test_close_ends_workers_and_fails_what_is_under_way(make_service: MakeService, request_for: Make) -> None:
    service = make_service(workers=1)
    pid = pid_of(service.compile(request_for("pid")))
    running, queued = service.submit(request_for("sleep=600")), service.submit(request_for("sleep=601"))
    time.sleep(0.2)
    started = time.monotonic()
    service.close()
    assert time.monotonic() - started < 5 and gone(pid)
    for future in (running, queued):
        with pytest.raises(CompileError):
            future.result(1)
    service.close()
    assert failure(service, request_for("pid")).message == "the compile service is closed"


def test_a_hit_starts_no_worker(
    make_service: MakeService, request_for: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    request = request_for("pid", backend="fake", build_identity="fake 1")
    cache = Cache(tmp_path / "cache")
    first = make_service(cache).compile(request)
    assert first.image.format == "native:fake"
    again = make_service(Cache(tmp_path / "cache"))
    with caplog.at_level(logging.INFO, "zluda.compiler"):
        assert again.compile(request) == first
    assert not again._workers and not again._threads
    assert any(message.startswith("hit: k of <test>") for message in caplog.messages)
    again.forget(request)
    assert again.compile(request) == first and again._workers


def test_failures_and_binaries_of_unknown_origin_are_not_cached(
    make_service: MakeService, request_for: Make, tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache")
    service = make_service(cache)
    failure(service, request_for("internal"))
    unnamed = request_for("pid", backend="fake")
    assert service.compile(unnamed).image.format == "native:fake"
    assert cache.load(request_key(unnamed)) is None
    portable = request_for("pid", backend="fake", options=("none",))
    service.compile(portable)
    assert cache.load(request_key(portable)) is not None


HOST = """
    import json, os, sys, threading, time
    sys.path[:] = json.loads(sys.argv[1])
    from zluda.compiler import supervisor
    supervisor._SETUP = sys.argv[2]
    from zluda.backend.info import TargetInfo
    from zluda.compiler.kernel import CompileRequest
    from zluda.compiler.service import CompileService
    service = CompileService(None, 2)
    def request(ptx):
        return CompileRequest(ptx=ptx, name="h", entries=("k",), target=TargetInfo(name="spirv64"))
    print(service.compile(request("pid")).image.data[1024:].decode(), flush=True)
"""


@contextmanager
def host(program: str) -> Iterator[subprocess.Popen[str]]:
    """A process with a service of its own on the stand-in compiler; ended, with what it forked, when the block ends."""
    text = textwrap.dedent(HOST) + textwrap.dedent(program)
    arguments = [sys.executable, "-c", text, json.dumps(sys.path), supervisor._SETUP]
    process = subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
    )
    with process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def line(process: subprocess.Popen[str]) -> int:
    """The next number that a host prints."""
    assert process.stdout is not None
    text = b""
    while not text.endswith(b"\n"):
        assert select.select([process.stdout], [], [], 60)[0], "the host says nothing"
        read = os.read(process.stdout.fileno(), 1)
        assert read, "the host has ended"
        text += read
    return int(text)


def test_workers_end_with_a_parent_that_ends(fake_compiler: None) -> None:
    with host("service.submit(request('sleep=600')); time.sleep(0.1)") as process:
        pid = line(process)
        assert process.wait(20) == 0
    assert gone(pid)


def test_busy_workers_end_with_a_parent_that_is_killed(fake_compiler: None, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with host(f"service.compile(request('mark={mark} spin'))") as process:
        pid = line(process)
        while not mark.exists():
            time.sleep(0.01)
        process.kill()
    assert gone(pid)


def test_interrupts_do_not_reach_workers(fake_compiler: None) -> None:
    program = """
        import signal
        signal.signal(signal.SIGINT, lambda *_: None)
        future = service.submit(request("sleep=1 pid"))
        print(os.getpid(), flush=True)
        print(future.result().image.data[1024:].decode(), flush=True)
    """
    with host(program) as process:
        pid = line(process)
        assert line(process) == process.pid  # from here on the host lives through an interrupt
        os.killpg(process.pid, signal.SIGINT)
        os.kill(pid, signal.SIGINT)
        time.sleep(0.1)
        assert line(process) == pid


def test_a_forked_child_has_workers_of_its_own(fake_compiler: None) -> None:
    program = """
        child = os.fork()
        if child == 0:
            print(service.compile(request("pid")).image.data[1024:].decode(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(service.compile(request("pid pid")).image.data[1024:].decode(), flush=True)
    """
    with host(program) as process:
        parents, childs, again = line(process), line(process), line(process)
        assert parents == again != childs
        assert gone(childs)


def test_importing_the_service_loads_no_compiler() -> None:
    program = """
        import sys
        import zluda.compiler.service
        heavy = [name for name in sys.modules if name.split(".")[0] in ("llvmlite", "numpy", "pyopencl")
                 or name.startswith(("zluda.compiler.lower", "zluda.compiler.target", "zluda.ptx", "multiprocessing"))]
        print(heavy)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
