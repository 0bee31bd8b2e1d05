"""C programs about memory: pools, managed and registered memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.client.conftest import BINDINGS_START

if TYPE_CHECKING:
    from tests.client.conftest import Client

PROGRAMS = ["pool", "managed", "register", "virtual", "reborn"]

ON_THE_DEVICE = (
    BINDINGS_START
    + r"""
ptx = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n)
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
  ld.global.u32 %r4, [%rd3];
  add.u32 %r4, %r4, %r5;
  st.global.u32 [%rd3], %r4;
DONE: ret;
}
'''
function = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(ptx)), b"add"))
stream = check(driver.cuStreamCreate(1))
n = 5000
def add(memory):
    values = (memory, ctypes.c_uint(n))
    check(driver.cuLaunchKernel(function, 40, 1, 1, 128, 1, 1, 0, stream, (values, (None, ctypes.c_uint)), 0))
def from_pool(kind, where):
    props = driver.CUmemPoolProps()
    props.allocType, props.location.type = kind, where
    pool = check(driver.cuMemPoolCreate(props))
    return pool, check(driver.cuMemAllocFromPoolAsync(4 * n, pool, stream))
pinned = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
managed = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_MANAGED
places = driver.CUmemLocationType

# Round after round from the device's pool, the same memory again: fills and kernels keep their order.
out = (ctypes.c_uint * n)()
for turn in range(20):
    memory = check(driver.cuMemAllocAsync(4 * n, stream))
    check(driver.cuMemsetD32Async(memory, turn, n, stream))
    add(memory)
    check(driver.cuMemcpyDtoHAsync(ctypes.addressof(out), memory, 4 * n, stream))
    check(driver.cuMemFreeAsync(memory, stream))
    check(driver.cuStreamSynchronize(stream))
    assert list(out) == [i + turn for i in range(n)], (turn, list(out)[:10])

# Memory that the host reads and writes where it is.
memories = [check(driver.cuMemAllocManaged(4 * n, 1))]
pools = [from_pool(managed, places.CU_MEM_LOCATION_TYPE_NONE), from_pool(pinned, places.CU_MEM_LOCATION_TYPE_HOST)]
check(driver.cuStreamSynchronize(stream))
for memory in memories + [memory for _, memory in pools]:
    seen = (ctypes.c_uint * n).from_address(int(memory))
    for i in range(n):
        seen[i] = 7
    add(memory)
    check(driver.cuStreamSynchronize(stream))
    assert list(seen) == [i + 7 for i in range(n)], list(seen)[:10]
    check(driver.cuMemFree(memory))
for pool, _ in pools:
    check(driver.cuMemPoolDestroy(pool))

# A vector over two pieces of memory that are mapped one behind the other.
prop = driver.CUmemAllocationProp()
prop.type, prop.location.type = pinned, places.CU_MEM_LOCATION_TYPE_DEVICE
access = driver.CUmemAccessDesc()
access.location.type, access.flags = places.CU_MEM_LOCATION_TYPE_DEVICE, driver.CUmemAccess_flags(3)
piece = check(driver.cuMemGetAllocationGranularity(prop, driver.CUmemAllocationGranularity_flags(0)))
base = check(driver.cuMemAddressReserve(2 * piece, 0, 0, 0))
handles = [check(driver.cuMemCreate(piece, prop, 0)) for _ in range(2)]
for i in (0, 1):
    check(driver.cuMemMap(int(base) + i * piece, piece, 0, handles[i], 0))
check(driver.cuMemSetAccess(base, 2 * piece, [access], 1))
memory = driver.CUdeviceptr(int(base) + piece - 2 * n)
check(driver.cuMemsetD32Async(memory, 3, n, stream))
add(memory)
check(driver.cuMemcpyDtoHAsync(ctypes.addressof(out), memory, 4 * n, stream))
check(driver.cuStreamSynchronize(stream))
assert list(out) == [i + 3 for i in range(n)], list(out)[:10]
check(driver.cuMemUnmap(base, 2 * piece))
check(driver.cuMemAddressFree(base, 2 * piece))
for handle in handles:
    check(driver.cuMemRelease(handle))
print("all right")
"""
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(client: Client, name: str) -> None:
    client.check(f"{name}.c")


def test_kernels_in_all_kinds_of_memory(client: Client) -> None:
    done = client.run([sys.executable, "-c", ON_THE_DEVICE], client.environment(real=True))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all right\n"
