"""Whole programs on the OpenCL CPU device: C and Python, alone and side by side."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.client.conftest import BINDINGS_START

if TYPE_CHECKING:
    from tests.client.conftest import Client

EXAMPLES = Path(__file__).parents[2] / "examples"

BINDINGS = (
    BINDINGS_START
    + r"""
ptx = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry square(.param .u64 p, .param .u32 n)
{
  .reg .pred %p1; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  mul.lo.u32 %r4, %r5, %r5;
  st.global.u32 [%rd3], %r4;
DONE: ret;
}
'''
module = check(driver.cuModuleLoadData(ptx))
function = check(driver.cuModuleGetFunction(module, b"square"))
n = 1000
memory = check(driver.cuMemAlloc(4 * n))
stream = check(driver.cuStreamCreate(0))
values = (memory, ctypes.c_uint(n))
check(driver.cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, (values, (None, ctypes.c_uint)), 0))
out = (ctypes.c_uint * n)()
check(driver.cuMemcpyDtoHAsync(ctypes.addressof(out), memory, 4 * n, stream))
check(driver.cuStreamSynchronize(stream))
assert list(out) == [i * i for i in range(n)], list(out)[:10]
check(driver.cuMemFree(memory))
print("squares")
"""
)


def vector_add(client: Client) -> Path:
    """The example, built as its head says."""
    import subprocess

    program = client.folder / "vector_add"
    command = ["cc", EXAMPLES / "vector_add.c", f"-I{client.library}", f"-L{client.library}", "-l:libcuda.so.1"]
    subprocess.run([*command, "-o", program], check=True)
    return program


def test_the_c_example(client: Client) -> None:
    done = client.run([vector_add(client)], client.environment(real=True))
    assert done.returncode == 0, done.stderr
    assert "all right" in done.stdout


def test_cuda_bindings_without_address_randomisation(client: Client) -> None:
    done = client.run(["setarch", "-R", sys.executable, "-c", BINDINGS], client.environment(real=True))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "squares\n"


def test_three_programs_at_once(client: Client) -> None:
    """Each has a driver process of its own, and none is left."""
    program = vector_add(client)
    environment = client.environment(real=True)
    commands: list[list[str | Path]] = [[program], [program], [sys.executable, "-c", BINDINGS]]
    running = [client.start(command, environment) for command in commands]
    outputs = [(r.process.communicate(timeout=120), r.process.returncode) for r in running]
    assert [code for _, code in outputs] == [0, 0, 0], outputs
    assert all(r.gone_within(1.0) for r in running)


def test_what_the_log_says(client: Client, tmp_path: Path) -> None:
    program = vector_add(client)
    environment = client.environment(real=True, ZLUDA_CACHE_DIR=str(tmp_path))
    done = client.run([program], environment | {"ZLUDA_LOG": "bogus"})
    assert done.returncode == 0, done.stderr
    assert done.stderr == "zluda: ZLUDA_LOG=bogus is no level, taken as warning: use debug, info, warning or error\n"
    done = client.run([program], environment | {"ZLUDA_LOG": "info", "ZLUDA_CACHE_DIR": str(tmp_path / "new")})
    assert done.returncode == 0, done.stderr
    for line in (
        r"device 0: .+, by backend opencl",
        rf"compile cache: {tmp_path}/new.*",
        r"ready after [1-9]\d* ms",
        r"loaded <module 1>: kernel \w+",
        r"compiled: \w+ of <module 1> in [\d.]+ s",
    ):
        assert re.search(rf"^zluda: {line}$", done.stderr, re.MULTILINE), done.stderr


def test_no_visible_device(client: Client) -> None:
    done = client.run([client.build("tryinit.c")], client.environment(real=True, CUDA_VISIBLE_DEVICES="nonsense"))
    first = "zluda: no usable device: CUDA_VISIBLE_DEVICES=nonsense names no device; unset it or use 0"
    assert done.stderr.startswith(first)


def test_a_backend_that_cannot_be_used(client: Client) -> None:
    done = client.run([client.build("tryinit.c")], client.environment(real=True, ZLUDA_BACKEND="rocm"))
    assert done.stdout == "100 100\n"
    assert "rocm" in done.stderr.lower()
