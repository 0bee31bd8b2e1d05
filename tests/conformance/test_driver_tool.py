"""tools/conformance/run_on_driver.py on a driver made of C for the test: standard library only, crashes survived."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "conformance" / "run_on_driver.py"

FAKE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* A driver whose memory is the host's and whose only kernel is the one that adds two u32 arrays. */
static const char *kernel_name;
int cuInit(unsigned f) { (void)f; return 0; }
int cuDeviceGet(int *d, int o) { *d = o; return o ? 101 : 0; }
int cuDeviceGetName(char *n, int l, int d) { (void)d; strncpy(n, "fake", l); return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { (void)d; *c = &kernel_name; return 0; }
int cuDevicePrimaryCtxRelease_v2(int d) { (void)d; return 0; }
int cuCtxSetCurrent(void *c) { (void)c; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadDataEx(void **m, const void *p, unsigned n, int *o, void **v)
{
    (void)n; (void)o;
    if (strstr(p, "sub_u32")) { strcpy(v[0], "line 7: no sub here"); return 218; }
    *m = (void *)p; return 0;
}
int cuModuleUnload(void *m) { (void)m; return 0; }
int cuModuleGetFunction(void **f, void *m, const char *n) { (void)m; *f = strdup(n); return 0; }
int cuFuncSetAttribute(void *f, int a, int v) { (void)f; (void)a; (void)v; return 0; }
int cuMemAlloc_v2(uint64_t *p, size_t n) { *p = (uint64_t)aligned_alloc(256, (n + 255) & ~(size_t)255); return 0; }
int cuMemFree_v2(uint64_t p) { free((void *)p); return 0; }
int cuMemcpyHtoD_v2(uint64_t d, const void *s, size_t n) { memcpy((void *)d, s, n); return 0; }
int cuMemcpyDtoH_v2(void *d, uint64_t s, size_t n) { memcpy(d, (void *)s, n); return 0; }
int cuGetErrorName(int e, const char **s) { *s = e == 218 ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_OTHER"; return 0; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **p, void **extra)
{
    (void)gx; (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)shared; (void)stream; (void)extra;
    if (!strcmp(f, "add_s32")) abort();
    if (!strcmp(f, "add_u16")) return 700;
    if (!strcmp(f, "add_s16")) for (;;) ;
    uint32_t *a = *(void **)p[0], *b = *(void **)p[1], *c = *(void **)p[2], n = *(uint32_t *)p[3];
    for (uint32_t i = 0; i < n; i++) c[i] = a[i] + b[i];
    return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fake")
    (folder / "fake.c").write_text(FAKE)
    made = folder / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", made, folder / "fake.c"], check=True)
    return made


def run(tmp_path: Path, *options: str | Path) -> tuple[int, dict[str, Any]]:
    out = tmp_path / "verdicts.json"
    # -I -S: neither site-packages nor the environment.
    command = [sys.executable, "-I", "-S", str(TOOL), "--json", str(out), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(out.read_text())


def test_verdicts_of_a_driver(library: Path, tmp_path: Path) -> None:
    status, report = run(tmp_path, "--lib", library, "--match", "integer.add_u32", "--match", "integer.sub_u32")
    assert (report["device"], report["driver"]) == ("fake", 13000)
    verdicts = {v["case"]: v for v in report["verdicts"]}
    assert verdicts["integer.add_u32"]["status"] == "right"
    assert verdicts["integer.sub_u32"]["status"] == "unsupported"
    assert "line 7: no sub here" in verdicts["integer.sub_u32"]["details"]
    assert status == 0


def test_a_driver_that_dies_hangs_or_is_spent_costs_one_case(library: Path, tmp_path: Path) -> None:
    status, report = run(tmp_path, "--lib", library, "--match", "integer.add_u", "--match", "integer.add_s",
                         "--group", "integer", "--timeout", "3")  # fmt: skip
    verdicts = {v["case"]: v for v in report["verdicts"]}
    assert verdicts["integer.add_u32"]["status"] == "right"
    assert "(700)" in verdicts["integer.add_u16"]["details"]
    assert "no answer within 3 s" in verdicts["integer.add_s16"]["details"]
    assert "ended with status -6" in verdicts["integer.add_s32"]["details"]
    assert verdicts["integer.add_u64"]["status"] == "wrong"  # 64-bit sums by 32-bit additions
    assert len(report["verdicts"]) == len(verdicts)
    assert status == 1


def test_no_driver(tmp_path: Path) -> None:
    status, report = run(tmp_path, "--lib", "/nowhere/libcuda.so.1", "--group", "bits")
    assert status == 1
    assert "cannot open shared object file" in report["error"]
