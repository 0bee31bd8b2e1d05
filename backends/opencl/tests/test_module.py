"""Images, kernels, arguments and launches."""

from __future__ import annotations

import struct

import pytest
from zluda_opencl import api

from zluda.backend.info import Argument, ArgumentKind, Image, KernelSignature
from zluda.backend.seam import BackendError, BuildError, Dim3, LaunchError

KERNELS = """
define spir_kernel void @values(ptr addrspace(1) %p, i8 %a, i16 %b, i32 %c, i64 %d, float %e, double %f) {
  store i8 %a, ptr addrspace(1) %p
  %p1 = getelementptr i8, ptr addrspace(1) %p, i64 8
  store i16 %b, ptr addrspace(1) %p1
  %p2 = getelementptr i8, ptr addrspace(1) %p, i64 16
  store i32 %c, ptr addrspace(1) %p2
  %p3 = getelementptr i8, ptr addrspace(1) %p, i64 24
  store i64 %d, ptr addrspace(1) %p3
  %p4 = getelementptr i8, ptr addrspace(1) %p, i64 32
  store float %e, ptr addrspace(1) %p4
  %p5 = getelementptr i8, ptr addrspace(1) %p, i64 40
  store double %f, ptr addrspace(1) %p5
  ret void
}
define spir_kernel void @address(ptr addrspace(1) %out, ptr addrspace(1) %a) {
  %n = ptrtoint ptr addrspace(1) %a to i64
  store i64 %n, ptr addrspace(1) %out
  ret void
}
define spir_kernel void @chase(ptr addrspace(1) %box) {
  %n = load i64, ptr addrspace(1) %box
  %p = inttoptr i64 %n to ptr addrspace(1)
  store i32 42, ptr addrspace(1) %p
  ret void
}
define spir_kernel void @place(ptr addrspace(1) %out) {
  %gx = call spir_func i64 @_Z12get_group_idj(i32 0)
  %gy = call spir_func i64 @_Z12get_group_idj(i32 1)
  %gz = call spir_func i64 @_Z12get_group_idj(i32 2)
  %lx = call spir_func i64 @_Z12get_local_idj(i32 0)
  %ly = call spir_func i64 @_Z12get_local_idj(i32 1)
  %lz = call spir_func i64 @_Z12get_local_idj(i32 2)
  %a = mul i64 %gx, 10
  %a1 = add i64 %a, %gy
  %b = mul i64 %a1, 10
  %b1 = add i64 %b, %gz
  %c = mul i64 %b1, 10
  %c1 = add i64 %c, %lx
  %d = mul i64 %c1, 10
  %d1 = add i64 %d, %ly
  %e = mul i64 %d1, 10
  %e1 = add i64 %e, %lz
  %nx = call spir_func i64 @_Z14get_local_sizej(i32 0)
  %ny = call spir_func i64 @_Z14get_local_sizej(i32 1)
  %x = call spir_func i64 @_Z13get_global_idj(i32 0)
  %y = call spir_func i64 @_Z13get_global_idj(i32 1)
  %z = call spir_func i64 @_Z13get_global_idj(i32 2)
  %s = mul i64 %z, 6
  %t = add i64 %s, %y
  %u = mul i64 %t, 4
  %v = add i64 %u, %x
  %p = getelementptr i64, ptr addrspace(1) %out, i64 %v
  store i64 %e1, ptr addrspace(1) %p
  ret void
}
declare spir_func void @_Z7barrierj(i32) convergent
define spir_kernel void @turn(ptr addrspace(3) %shared, ptr addrspace(1) %out) {
  %i = call spir_func i64 @_Z12get_local_idj(i32 0)
  %n = call spir_func i64 @_Z14get_local_sizej(i32 0)
  %p = getelementptr i64, ptr addrspace(3) %shared, i64 %i
  store i64 %i, ptr addrspace(3) %p
  call spir_func void @_Z7barrierj(i32 1) convergent
  %last = sub i64 %n, 1
  %j = sub i64 %last, %i
  %q = getelementptr i64, ptr addrspace(3) %shared, i64 %j
  %v = load i64, ptr addrspace(3) %q
  %o = getelementptr i64, ptr addrspace(1) %out, i64 %i
  store i64 %v, ptr addrspace(1) %o
  ret void
}
"""

ONE = Dim3(1)


@pytest.fixture(scope="module")
def kernels(image, sign) -> Image:
    return image(
        KERNELS,
        sign(
            "values", ("pointer", 8), ("value", 1), ("value", 2), ("value", 4), ("value", 8), ("value", 4), ("value", 8)
        ),
        sign("address", ("pointer", 8), ("pointer", 8)),
        sign("chase", ("pointer", 8)),
        sign("place", ("pointer", 8)),
        sign("turn", ("shared", 0), ("pointer", 8)),
    )


@pytest.fixture(scope="module", params=["spirv", "native"])
def module(request: pytest.FixtureRequest, device, backend, kernels: Image):
    chosen = kernels
    if request.param == "native":
        chosen = backend.finalize(device.info.index, kernels)
        assert chosen is not None and chosen.format == "native:opencl"
    loaded = device.load(chosen)
    yield loaded
    loaded.close()


@pytest.fixture
def queue(device):
    queue = device.create_queue()
    yield queue
    queue.close()


def run(device, queue, host, kernel, size: int, pack, grid=ONE, block=ONE, shared: int = 0) -> bytes:
    """Launch with the address of `size` poisoned bytes; return them."""
    memory = device.allocate(size)
    queue.fill(memory, b"\xdd", size)
    queue.launch(kernel, grid, block, pack(memory), shared)
    back = host(bytes(size))
    queue.copy(back.address, memory, size)
    queue.synchronize()
    device.free(memory)
    return back.bytes


@pytest.mark.parametrize("round", [0, 1, 2])
def test_values_of_every_size(device, queue, host, module, round: int) -> None:
    values = [(1, 2, 3, 4, 0.5, 0.25), (255, 65535, 2**32 - 1, 2**64 - 1, -2.0, 1e300), (1, 2, 3, 5, 0.5, 0.25)][round]
    out = run(device, queue, host, module.kernel("values"), 48, lambda p: struct.pack("<QBxHIQfxxxxd", p, *values))
    assert struct.unpack("<B7xH6xI4xQf4xd", out) == values


@pytest.mark.parametrize("value", [0, 1, 0xDEADBEEF, 0x7FFF_FFFF_FFFF, 0x6000_0000_0123, 2**64 - 1])
def test_any_address_can_be_passed(device, queue, host, module, value: int) -> None:
    out = run(device, queue, host, module.kernel("address"), 8, lambda p: struct.pack("<QQ", p, value))
    assert struct.unpack("<Q", out) == (value,)


def test_a_kernel_follows_a_pointer_that_only_memory_holds(device, queue, host, module) -> None:
    target = device.allocate(4)
    box = device.allocate(8)
    source = host(struct.pack("<Q", target))
    queue.copy(box, source.address, 8)
    queue.launch(module.kernel("chase"), ONE, ONE, struct.pack("<Q", box), 0)
    back = host(bytes(4))
    queue.copy(back.address, target, 4)
    queue.synchronize()
    assert struct.unpack("<I", back.bytes) == (42,)
    device.free(target)
    device.free(box)


def test_a_kernel_reaches_memory_that_the_host_mapped(device, queue, host, module) -> None:
    assert "memory.system" in device.info.capabilities
    target = host(bytes(4))
    box = host(struct.pack("<Q", target.address))
    queue.launch(module.kernel("chase"), ONE, ONE, struct.pack("<Q", box.address), 0)
    queue.synchronize()
    assert struct.unpack("<I", target.bytes) == (42,)


def test_blocks_and_threads_in_three_dimensions(device, queue, host, module) -> None:
    grid, block = Dim3(2, 3, 2), Dim3(2, 2, 2)
    count = 4 * 6 * 4
    out = run(device, queue, host, module.kernel("place"), 8 * count, lambda p: struct.pack("<Q", p), grid, block)
    expected = [
        int(f"{x // 2}{y // 2}{z // 2}{x % 2}{y % 2}{z % 2}") for z in range(4) for y in range(6) for x in range(4)
    ]
    assert list(struct.unpack(f"<{count}Q", out)) == expected


@pytest.mark.parametrize("threads", [1, 2, 100, 1024, 7])
def test_shared_memory_of_the_size_given_at_launch(device, queue, host, module, threads: int) -> None:
    out = run(
        device,
        queue,
        host,
        module.kernel("turn"),
        8 * threads,
        lambda p: struct.pack("<Q", p),
        ONE,
        Dim3(threads),
        8 * threads,
    )
    assert list(struct.unpack(f"<{threads}Q", out)) == list(reversed(range(threads)))


def test_arguments_are_taken_at_launch(device, queue, host, module) -> None:
    """Launches in flight keep their own arguments when later ones are set on the same kernel."""
    kernel = module.kernel("address")
    memory = device.allocate(8 * 50)
    for number in range(50):
        queue.launch(kernel, ONE, ONE, struct.pack("<QQ", memory + 8 * number, number), 0)
    back = host(bytes(8 * 50))
    queue.copy(back.address, memory, 8 * 50)
    queue.synchronize()
    assert list(struct.unpack("<50Q", back.bytes)) == list(range(50))
    device.free(memory)


def test_arguments_that_repeat_each_others_values(device, queue, host, module) -> None:
    """Unchanged arguments are not set again; which are unchanged is told argument by argument."""
    kernel = module.kernel("address")
    memory = device.allocate(32)
    queue.fill(memory, bytes(8), 4)
    words = [memory + 8 * number for number in range(4)]
    expected = [0] * 4
    state = 1
    for _ in range(60):
        state = (state * 1103515245 + 12345) % 2**31
        out, value = state >> 8 & 3, state >> 12 & 3
        expected[out] = words[value]
        queue.launch(kernel, ONE, ONE, struct.pack("<QQ", words[out], words[value]), 0)
    back = host(bytes(32))
    queue.copy(back.address, memory, 32)
    queue.synchronize()
    assert list(struct.unpack("<4Q", back.bytes)) == expected
    device.free(memory)


def test_only_changed_arguments_are_set(device, queue, module, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = module.kernel("values")
    memory = device.allocate(48)
    layout = "<QBxHIQfxxxxd"
    queue.launch(kernel, ONE, ONE, struct.pack(layout, memory, 1, 2, 3, 4, 0.5, 0.25), 0)
    indices = []
    original = api.set_kernel_arg

    def spy(handle: int, index: int, size: int, value: bytes) -> int:
        indices.append(index)
        return original(handle, index, size, value)

    monkeypatch.setattr(api, "set_kernel_arg", spy)
    queue.launch(kernel, ONE, ONE, struct.pack(layout, memory, 1, 2, 9, 4, 0.5, 0.25), 0)
    queue.launch(kernel, ONE, ONE, struct.pack(layout, memory, 1, 2, 9, 4, 0.5, 0.25), 0)
    assert indices == [3]
    queue.synchronize()
    device.free(memory)


def test_an_address_is_set_anew_when_other_memory_may_be_there(device, queue, module, monkeypatch) -> None:
    """An argument holds the driver's object for the memory, not its address: that object goes with the memory."""
    kernel = module.kernel("address")
    size = 65 << 20  # a block of its own on the SVM road too
    kept = device.allocate(size)
    told = []
    original = kernel._set_pointer

    def spy(handle: int, index: int, address: int) -> int:
        told.append((index, address))
        return original(handle, index, address)

    monkeypatch.setattr(kernel, "_set_pointer", spy)

    def launch() -> list[tuple[int, int]]:
        told.clear()
        queue.launch(kernel, ONE, ONE, struct.pack("<QQ", kept, kept), 0)
        queue.synchronize()
        return list(told)

    both = [(0, kept), (1, kept)]
    assert launch() == both
    assert launch() == []
    other = device.allocate(size)
    assert launch() == both
    device.free(other)
    assert launch() == both
    assert launch() == []
    device.free(kept)


def test_an_argument_that_is_refused_does_not_leave_others_behind(device, queue, host, module, monkeypatch) -> None:
    kernel = module.kernel("address")
    memory = device.allocate(16)

    def launch(place: int, value: int) -> None:
        queue.launch(kernel, ONE, ONE, struct.pack("<QQ", memory + 8 * place, value), 0)

    launch(0, 2)
    original = kernel._set_pointer
    with monkeypatch.context() as patch, pytest.raises(LaunchError):
        patch.setattr(kernel, "_set_pointer", lambda h, index, a: -50 if index == 1 else original(h, index, a))
        launch(1, 4)
    queue.fill(memory, bytes(8), 2)
    launch(0, 2)
    back = host(bytes(16))
    queue.copy(back.address, memory, 16)
    queue.synchronize()
    assert struct.unpack("<QQ", back.bytes) == (2, 0)
    device.free(memory)


def test_memory_that_comes_and_goes_between_launches(device, queue, host, module) -> None:
    kernel = module.kernel("address")
    for number in range(100):
        out = run(device, queue, host, kernel, 8 << (number % 3), lambda p, n=number: struct.pack("<QQ", p, n & ~1))
        assert struct.unpack_from("<Q", out) == (number & ~1,)


def test_what_a_kernel_reports(device, module) -> None:
    kernel = module.kernel("values")
    assert 1 <= kernel.max_threads_per_block <= device.info.limits.max_threads_per_block
    assert kernel.private_bytes >= 0
    assert kernel.signature.name == "values"
    assert module.kernel("values") is kernel


def test_an_unknown_kernel_is_a_key_error(module) -> None:
    with pytest.raises(KeyError):
        module.kernel("nothing")


@pytest.mark.parametrize("packed", [b"", bytes(7), bytes(9)])
def test_wrong_number_of_argument_bytes(queue, module, packed: bytes) -> None:
    with pytest.raises(LaunchError, match="takes 8 bytes of arguments"):
        queue.launch(module.kernel("place"), ONE, ONE, packed, 0)


def test_too_many_threads_are_refused(device, queue, host, module) -> None:
    too_many = device.info.limits.max_threads_per_block * 2
    with pytest.raises(LaunchError, match=r"clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE \(-54\): kernel turn"):
        queue.launch(module.kernel("turn"), ONE, Dim3(too_many), bytes(8), 8)
    queue.synchronize()


def test_too_much_shared_memory_is_refused(device, queue, module) -> None:
    too_much = device.info.limits.shared_memory_per_block * 2
    with pytest.raises(LaunchError, match=f"{too_much} (bytes of shared memory|shared bytes)"):
        queue.launch(module.kernel("turn"), ONE, ONE, bytes(8), too_much)


@pytest.mark.parametrize(
    ("format", "data", "message"),
    [
        ("spirv", b"", "is no SPIR-V"),
        ("spirv", b"#version 450", "is no SPIR-V"),
        ("native:opencl", b"\x7fELF" + bytes(60), "CL_"),
        ("native:opencl", b"", "CL_"),
        ("native:rocm", b"\x7fELF", "not native:rocm"),
        ("amdgcn-elf", b"\x7fELF", "takes images in spirv and native:opencl"),
    ],
)
def test_bad_images_are_refused(device, sign, format: str, data: bytes, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        device.load(Image(format=format, data=data, kernels=(sign("k"),)))


def test_a_build_error_carries_the_log(device, image, sign) -> None:
    text = (
        "declare spir_func i32 @nowhere_to_be_found(i32)\ndefine spir_kernel void @k(ptr addrspace(1) %p) {\n"
        "  %v = call spir_func i32 @nowhere_to_be_found(i32 1)\n  store i32 %v, ptr addrspace(1) %p\n  ret void\n}\n"
    )
    with pytest.raises(BuildError, match="kernels k") as caught:
        device.load(image(text, sign("k", ("pointer", 8))))
    assert "nowhere_to_be_found" in caught.value.log
    assert caught.value.call == "clBuildProgram" and caught.value.code == -11


def test_a_signature_that_does_not_fit_is_refused(device, kernels: Image, sign) -> None:
    wrong = kernels.model_copy(update={"kernels": (sign("place", ("pointer", 8), ("value", 4)), sign("ghost"))})
    module = device.load(wrong)
    with pytest.raises(BuildError, match="takes 1 arguments, its signature has 2"):
        module.kernel("place")
    with pytest.raises(BuildError, match="kernel ghost"):
        module.kernel("ghost")
    module.close()


def test_an_argument_outside_the_packed_bytes_is_refused(device, kernels: Image) -> None:
    bad = KernelSignature(
        name="place", arguments=(Argument(kind=ArgumentKind.POINTER, offset=4, size=8),), packed_size=8
    )
    module = device.load(kernels.model_copy(update={"kernels": (bad,)}))
    with pytest.raises(BuildError, match="outside the packed bytes"):
        module.kernel("place")
    module.close()


def test_a_closed_module_says_so(device, queue, kernels: Image) -> None:
    module = device.load(kernels)
    kernel = module.kernel("place")
    module.close()
    module.close()
    with pytest.raises(BackendError, match="closed"):
        module.kernel("chase")
    with pytest.raises(BackendError, match="closed"):
        queue.launch(kernel, ONE, ONE, bytes(8), 0)
    queue.synchronize()
