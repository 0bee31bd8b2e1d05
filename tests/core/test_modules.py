"""Modules: loading, logs, functions, variables, unloading."""

import struct
import threading

import pytest
from core_fake_backend import kernel_info, ptx

from zluda.core import CudaError, JitOptions

VARIABLES = """
.visible .global .align 4 .u32 counter = 7;
.visible .const .align 8 .b8 table[16] = {1, 2, 3};
.global .u64 pointer = generic(counter);
"""


def test_variables_are_placed_and_initialised(any_bench):
    module = any_bench.context.load_module(ptx(variables=VARIABLES))
    counter, size = module.global_variable("counter")
    assert size == 4
    assert any_bench.context.read(counter, 4) == struct.pack("<I", 7)
    table, size = module.global_variable("table")
    assert size == 16 and any_bench.context.read(table, 16) == bytes([1, 2, 3]) + bytes(13)
    pointer, size = module.global_variable("pointer")
    assert any_bench.context.read(pointer, 8) == struct.pack("<Q", counter)
    with pytest.raises(CudaError, match="NOT_FOUND"):
        module.global_variable("nothing")
    # A global may be copied to, as any memory.
    any_bench.context.write(counter, struct.pack("<I", 8))


def test_module_without_variables_takes_no_memory(bench):
    module = bench.context.load_module(ptx("k"))
    assert module.data_address == 0 and bench.window.live == {}


@pytest.mark.parametrize("tail", [b"", b"\0", b"\0\0junk"])
def test_text_may_end_in_nuls(bench, tail):
    assert bench.context.load_module(ptx("k").encode() + tail).function_names == ("k",)


def test_functions_compile_when_needed_and_once(bench):
    bench.compiler.kernels = {"a": kernel_info("a"), "b": kernel_info("b")}
    module = bench.context.load_module(ptx("a", "b"), name="two.ptx")
    assert bench.compiler.requests == []
    assert module.function_count == 2
    listed = module.functions(1)
    assert [f.name for f in listed] == ["a"] and not listed[0].loaded
    function = module.function("b")
    assert function is module.function("b") and function.loaded
    (request,) = bench.compiler.requests
    assert request.entries == ("b",) and request.name == "two.ptx"
    assert request.backend == "fake" and request.device_index == 0 and request.build_identity == "fake 0"
    assert request.target == bench.device.info.target
    with pytest.raises(CudaError, match="NOT_FOUND"):
        module.function("c")


def test_two_threads_compile_a_kernel_once(bench):
    bench.compiler.kernels = {"k": kernel_info("k")}
    bench.compiler.gate = threading.Event()
    module = bench.context.load_module(ptx("k"))
    threads = [threading.Thread(target=module.function, args=("k",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    # The device is free while a kernel compiles.
    bench.context.synchronize()
    bench.context.allocate(4)
    bench.compiler.gate.set()
    for thread in threads:
        thread.join(10)
    assert len(bench.compiler.requests) == 1


def test_compile_errors_show_at_first_need(bench, caplog):
    module = bench.context.load_module(ptx("k"))
    with pytest.raises(CudaError, match="INVALID_PTX") as caught:
        module.function("k")
    assert "nothing here is lowered" in caught.value.log and "line 1" in caught.value.log
    assert "nothing here is lowered" in caplog.text


def test_error_log_compiles_everything_at_load(bench):
    options = JitOptions.parse([(5, 0x1000), (6, 1024)])
    with pytest.raises(CudaError, match="INVALID_PTX") as caught:
        bench.context.load_module(ptx("a", "b", variables=VARIABLES), options)
    assert "nothing here" in caught.value.log
    assert bench.window.live == {}
    bench.compiler.kernels = {"a": kernel_info("a"), "b": kernel_info("b")}
    module = bench.context.load_module(ptx("a", "b"), options)
    assert bench.compiler.requests[-1].entries == ("a", "b")
    assert all(f.loaded for f in module.functions())


def test_syntax_errors_show_at_load(bench):
    with pytest.raises(CudaError, match="INVALID_PTX") as caught:
        bench.context.load_module(ptx("k").replace("ret;", "ret 5 5;"), name="bad.ptx")
    assert "bad.ptx:5" in caught.value.log


@pytest.mark.parametrize("image", [b"", b"garbage", b"\x7fELF", b"\0" * 100, b"\x50\xed\x55\xba", bytes(range(256))])
def test_garbage(bench, image):
    with pytest.raises(CudaError, match="INVALID_IMAGE"):
        bench.context.load_module(image)


def test_ptx_versions(bench):
    with pytest.raises(CudaError, match="UNSUPPORTED_PTX_VERSION"):
        bench.context.load_module(ptx("k", version="10.0"))
    module = bench.context.load_module(ptx("k", version="9.5"))
    assert "9.5" in module.info_log
    assert bench.context.load_module(ptx("k", version="9.0")).info_log == ""


def test_files(bench, tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(ptx("k"))
    assert bench.context.load_module_file(path).name == str(path)
    with pytest.raises(CudaError, match="FILE_NOT_FOUND"):
        bench.context.load_module_file(tmp_path / "none.ptx")


def test_unload_waits_for_work(bench):
    bench.compiler.kernels = {"k": kernel_info("k", hidden=("module",))}
    module = bench.context.load_module(ptx("k", variables=VARIABLES))
    function = module.function("k")
    bench.fake.hold()
    function.launch((1, 1, 1), (1, 1, 1))
    address = module.data_address
    wait = module.unload_wait()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        module.function("k")
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        module.global_variable("counter")
    assert not wait.done() and bench.fake.modules[0].closed == 0 and address in bench.window.live
    bench.fake.release()
    assert wait.done()
    assert bench.fake.modules[0].closed == 1 and address not in bench.window.live
    for call in (lambda: function.launch((1, 1, 1), (1, 1, 1)), lambda: function.attribute(0), module.unload):
        with pytest.raises(CudaError, match="INVALID_HANDLE"):
            call()


def test_launching_while_unloading_is_refused(bench):
    bench.compiler.kernels = {"k": kernel_info("k")}
    module = bench.context.load_module(ptx("k"))
    function = module.function("k")
    bench.fake.hold()
    function.launch((1, 1, 1), (1, 1, 1))
    wait = module.unload_wait()
    with pytest.raises(CudaError, match="INVALID_HANDLE"):
        function.launch((1, 1, 1), (1, 1, 1))
    bench.fake.release()
    wait.block()


def test_jit_options():
    accepted = [(0, 32), (1, 256), (3, 1), (4, 10), (7, 2), (8, 0), (9, 80), (10, 0), (12, 1), (14, 0)]
    assert JitOptions.parse(accepted) == JitOptions(info_log=True, optimisation=2)
    for bad in ((36, 0), (-1, 0), (7, 5)):
        with pytest.raises(CudaError, match="INVALID_VALUE"):
            JitOptions.parse([bad])
    with pytest.raises(CudaError, match="NOT_SUPPORTED"):
        JitOptions.parse([(17, 1), (18, 1), (19, 1)])
    assert not JitOptions.parse([(5, 0x1000)]).error_log


@pytest.mark.parametrize("refusals", [1, 2])
def test_an_image_that_the_device_refuses_is_made_anew_once(bench, refusals):
    bench.compiler.kernels = {"k": kernel_info("k")}
    module = bench.context.load_module(ptx("k"))
    bench.fake.refused_images = refusals
    if refusals == 1:
        assert module.function("k").loaded and "made anew" in module.info_log
    else:
        with pytest.raises(CudaError, match="not this image"):
            module.function("k")
    assert len(bench.compiler.forgotten) == 1 and len(bench.compiler.requests) == 2
    bench.fake.refused_images = 0
    assert module.function("k").loaded
