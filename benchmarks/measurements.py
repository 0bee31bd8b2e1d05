"""The measurements of `make bench`: each function gives rows, smallest parts first."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.harness import HERE, Bench, Row

Measurement = Callable[[Bench], Iterator[Row]]


def posted(bench: Bench) -> Iterator[Row]:
    """What cuLaunchKernel costs its caller over 10^6 launches; the ring is smaller, so callers wait for room too."""
    (result,) = bench.driver("posted", bench.ptx, 1_000_000)
    yield Row(
        "posted launch, median of 10^6",
        f"{result['median_us']:.2f} µs",
        target="≤ 5 µs",
        met=result["median_us"] <= 5,
    )
    yield Row("posted launch, mean without waits for room", f"{result['mean_without_waits_us']:.2f} µs")
    yield Row(
        "posted launch, mean with waits for room",
        f"{result['mean_us']:.2f} µs",
        f"{result['waits']} waits, {result['waiting_s']:.1f} s",
    )


def drained(bench: Bench) -> Iterator[Row]:
    """Launches per second until the device is idle, in turn with a C loop and a pyopencl loop of the same kernel."""
    n = 50_000
    ours, c, python = [], [], []
    for _ in range(3):
        ours.append(bench.driver("drain", bench.ptx, n)[0]["per_second"])
        c.append(bench.opencl_c("drain", bench.opencl_source, n)[0]["per_second"])
        python.append(bench.python("pyopencl_loop.py", bench.opencl_source, n)[0]["per_second"])
    for name, reference in (("C loop", c), ("pyopencl loop", python)):
        yield Row(
            f"drained launches per second, against a {name}",
            f"{median(ours):,.0f}",
            f"{median(reference):,.0f}",
            median(ours) / median(reference),
        )


def round_trip(bench: Bench) -> Iterator[Row]:
    """A call that the driver process answers, seen from the caller."""
    (result,) = bench.driver("roundtrip", 20_000)
    yield Row(
        "synchronous round trip, median (99th percentile)",
        f"{result['median_us']:.1f} µs ({result['p99_us']:.1f})",
        target="≤ 40 µs",
        met=result["median_us"] <= 40,
    )


def tracing(bench: Bench) -> Iterator[Row]:
    """What a call costs its caller with tracing off and on, the best of three runs each, in turn."""
    off, on, launch_off, launch_on = [], [], [], []
    for i in range(3):
        folder = bench.folder / f"trace{i}"
        off.append(bench.driver("calls", 100_000)[0]["best_ns"])
        on.append(bench.driver("calls", 10_000, trace=folder)[0]["best_ns"])
        launch_off.append(bench.driver("posted", bench.ptx, 20_000)[0]["median_us"])
        launch_on.append(bench.driver("posted", bench.ptx, 20_000, trace=folder)[0]["median_us"])
    yield Row("a call that the client answers, not traced", f"{min(off):.0f} ns")
    added = min(on) - min(off)
    yield Row("what tracing adds to it", f"{added:.0f} ns", target="≤ 2 µs", met=added <= 2000)
    added = min(launch_on) - min(launch_off)
    yield Row("what tracing adds to a posted launch", f"{added:.2f} µs", target="≤ 2 µs", met=added <= 2)


def copies(bench: Bench) -> Iterator[Row]:
    """Copies of several sizes as a fraction of memcpy between two malloc'ed buffers, alternating with it."""
    kinds = {
        "htod_ordinary": "ordinary memory to device",
        "dtoh_ordinary": "device to ordinary memory",
        "htod_pinned": "pinned memory to device, inside the window",
        "dtod": "device to device, inside the window",
    }
    for result in bench.driver("copies"):
        size = result["bytes"] >> 20
        for key, name in kinds.items():
            large = size >= 16
            yield Row(
                f"copy {size} MiB, {name}",
                f"{result[key] * result['memcpy_gb_s']:.1f} GB/s",
                f"memcpy {result['memcpy_gb_s']:.1f} GB/s",
                result[key],
                "≥ 0.8" if large else "",
                result[key] >= 0.8 if large else None,
            )


def compiling(_: Bench) -> Iterator[Row]:
    """PTX lines parsed, and lowered to LLVM IR, per second in one process."""
    from zluda.backend.info import TargetInfo
    from zluda.compiler.lower import lower
    from zluda.compiler.target import target_for
    from zluda.ptx.index import index_module
    from zluda.ptx.parser import parse_module

    text = big_ptx(20_000)
    lines = text.count("\n")

    def best(work: Callable[[], object]) -> float:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    parse = best(lambda: parse_module(text))
    yield Row("PTX lines parsed per second", f"{lines / parse:,.0f}", target="≥ 50,000", met=lines / parse >= 50_000)
    target = target_for(TargetInfo(name="spirv64", features=("fp64", "int64-atomics", "subgroups", "subgroup-size-32")))
    lowering = best(lambda: lower(index_module(text), ["big"], target))
    yield Row("PTX lines parsed and lowered per second", f"{lines / lowering:,.0f}")
    function = text[text.index(".visible") :]
    module = text + "".join(function.replace("big", f"big{i}") for i in range(20))
    index = best(lambda: index_module(module))
    rate = len(module) / index / 1e6
    yield Row("PTX indexed per second", f"{rate:,.0f} MB/s", target="≥ 20 MB/s", met=rate >= 20)


def loading(bench: Bench) -> Iterator[Row]:
    """cuModuleLoadData and cuModuleGetFunction of one kernel: nothing cached, then everything."""
    cold, warm = [], []
    for i in range(3):
        cache = bench.folder / f"cache{i}"
        cold.append(bench.driver("load", bench.ptx, "matmul", cache=cache)[0]["load_ms"])
        warm.append(bench.driver("load", bench.ptx, "matmul", cache=cache)[0]["load_ms"])
    yield Row("PTX to loaded kernel, cold", f"{median(cold):.0f} ms")
    yield Row("PTX to loaded kernel, warm", f"{median(warm):.1f} ms")


def kernels(bench: Bench) -> Iterator[Row]:
    """Whole kernels against the same ones in OpenCL C, five pairs in turn; the best time of each run, their median."""
    for name, size, repeats in (("vector_add", 1 << 24, 15), ("matmul", 768, 7)):
        ours, reference = [], []
        for _ in range(5):
            mine = bench.driver("kernel", bench.ptx, name, name, size, repeats)[0]
            other = bench.opencl_c("kernel", bench.opencl_source, name, name, size, repeats)[0]
            if abs(mine["checksum"] - other["checksum"]) > 1e-5 * abs(other["checksum"]):
                raise SystemExit(f"benchmarks: {name} gives {mine['checksum']}, OpenCL C {other['checksum']}")
            ours.append(mine["best_ms"])
            reference.append(other["best_ms"])
        ratio = median(a / b for a, b in zip(ours, reference, strict=True))
        yield Row(
            f"{name} of {size}, against OpenCL C",
            f"{median(ours):.2f} ms",
            f"{median(reference):.2f} ms",
            ratio,
            "≤ 1.25",
            ratio <= 1.25,
        )


def example(bench: Bench) -> Iterator[Row]:
    """The README's example, warm, as a whole process against the same program in pyopencl."""
    example = HERE.parent / "examples" / "saxpy.py"
    zluda = [sys.executable, "-m", "zluda", "run", "--", sys.executable, str(example)]
    pyopencl = [sys.executable, str(HERE / "pyopencl_saxpy.py")]

    def seconds(command: list[str], environment: dict[str, str]) -> float:
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"benchmarks: {' '.join(command)}:\n{done.stderr}")
        return time.perf_counter() - start

    environment = {**bench.environment, "XDG_CACHE_HOME": str(bench.folder / "home")}
    reference = {**bench.pyopencl, "XDG_CACHE_HOME": str(bench.folder / "home")}
    seconds(zluda, environment)
    seconds(pyopencl, reference)
    pairs = [(seconds(zluda, environment), seconds(pyopencl, reference)) for _ in range(7)]
    ratio = median(a / b for a, b in pairs)
    yield Row(
        "the example from start to end, warm, against pyopencl",
        f"{median(a for a, _ in pairs):.2f} s",
        f"{median(b for _, b in pairs):.2f} s",
        ratio,
        "≤ 2",
        ratio <= 2,
    )


def big_ptx(lines: int) -> str:
    """A kernel of about `lines` instructions as compilers write them: arithmetic on fresh registers, loads, stores."""
    body = []
    for i in range(lines // 10):
        a, b = 8 * i + 8, 4 * i + 4
        body.append(
            f"\tld.global.u32 %r{a}, [%rd{b - 1}];\n"
            f"\tadd.s32 %r{a + 1}, %r{a}, %r{a - 1};\n"
            f"\tmul.lo.s32 %r{a + 2}, %r{a + 1}, {i + 3};\n"
            f"\tsetp.lt.s32 %p{i + 1}, %r{a + 2}, 0;\n"
            f"\tselp.b32 %r{a + 3}, %r{a + 1}, %r{a + 2}, %p{i + 1};\n"
            f"\txor.b32 %r{a + 4}, %r{a + 3}, %r{a};\n"
            f"\tmad.lo.s32 %r{a + 5}, %r{a + 4}, %r{a + 1}, %r{a};\n"
            f"\tshl.b32 %r{a + 7}, %r{a + 5}, 1;\n"
            f"\tadd.s64 %rd{b + 3}, %rd{b - 1}, 4;\n"
            f"\tst.global.u32 [%rd{b - 1}], %r{a + 7};\n"
        )
    count = lines // 10
    return (
        ".version 8.0\n.target sm_80\n.address_size 64\n\n"
        ".visible .entry big(\n\t.param .u64 big_param_0\n)\n{\n"
        f"\t.reg .pred %p<{count + 2}>;\n\t.reg .b32 %r<{8 * count + 16}>;\n\t.reg .b64 %rd<{4 * count + 8}>;\n"
        "\tld.param.u64 %rd1, [big_param_0];\n\tcvta.to.global.u64 %rd3, %rd1;\n\tmov.u32 %r7, %tid.x;\n"
        + "".join(body)
        + "\tret;\n}\n"
    )


ALL: dict[str, Measurement] = {
    "posted": posted,
    "drained": drained,
    "round-trip": round_trip,
    "tracing": tracing,
    "copies": copies,
    "compiling": compiling,
    "loading": loading,
    "kernels": kernels,
    "example": example,
}
