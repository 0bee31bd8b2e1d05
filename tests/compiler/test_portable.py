"""Real PTX to a portable image, in this process, in a worker, and on to a device's native binary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zluda.backend.info import TargetInfo
from zluda.backend.registry import load_backends
from zluda.backend.seam import Backend
from zluda.compiler import portable, validate
from zluda.compiler.cache import Cache
from zluda.compiler.errors import CompileError
from zluda.compiler.kernel import CompileRequest
from zluda.compiler.service import CompileService, compile_portable
from zluda.ptx.errors import PtxSyntaxError, PtxUnsupported

HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"

SCALE = (
    HEAD
    + """
.visible .entry scale(.param .u64 x, .param .f32 factor, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [x];
	ld.param.f32 %f1, [factor];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 bra DONE;
	cvta.to.global.u64 %rd2, %rd1;
	mul.wide.u32 %rd3, %r5, 4;
	add.s64 %rd4, %rd2, %rd3;
	ld.global.f32 %f2, [%rd4];
	mul.rn.f32 %f3, %f2, %f1;
	st.global.f32 [%rd4], %f3;
DONE:
	ret;
}
.visible .entry empty()
{
	ret;
}
"""
)

BROKEN = HEAD + ".visible .entry k()\n{\n\t.reg .b32 %r<2>;\n\tadd.s32 %r1 %r1, 1;\n\tret;\n}\n"
UNSUPPORTED = HEAD + ".visible .entry k()\n{\n\tsetmaxnreg.inc.sync.aligned.u32 64;\n\tret;\n}\n"

Make = Callable[..., CompileRequest]


@pytest.fixture
def request_of(request_for: Make) -> Make:
    target = TargetInfo(name="spirv64", features=("fp64", "subgroup-size-32", "subgroups"))

    def make(ptx: str, entries: tuple[str, ...] = (), **fields: object) -> CompileRequest:
        return request_for(ptx, entries, **{"name": "m.ptx", "target": target, **fields})

    return make


@pytest.fixture
def service() -> Iterator[CompileService]:
    service = CompileService(None, workers=1)
    yield service
    service.close()


def test_ptx_becomes_a_valid_module(request_of: Make) -> None:
    image = compile_portable(request_of(SCALE, ("scale",)))
    validate.validate(image.image.data)
    text = validate.disassemble(image.image.data)
    assert 'OpEntryPoint Kernel %scale "scale"' in text and "OpFMul" in text and '"empty"' not in text
    (kernel,) = image.kernels
    assert (kernel.name, kernel.parameter_bytes, kernel.sm, kernel.ptx_version) == ("scale", 16, 75, (8, 0))
    assert [p.offset for p in kernel.parameters] == [0, 8, 12]
    assert image.image.kernels == (kernel.signature,) and image.image.format == "spirv"


def test_no_entries_mean_every_entry(request_of: Make) -> None:
    assert [kernel.name for kernel in compile_portable(request_of(SCALE)).kernels] == ["scale", "empty"]


def test_a_worker_gives_the_same_kernels(service: CompileService, request_of: Make) -> None:
    request = request_of(SCALE)
    image = service.compile(request)
    assert image.kernels == compile_portable(request).kernels
    validate.validate(image.image.data)


@pytest.mark.parametrize("through_a_worker", [False, True])
def test_errors_name_the_place(service: CompileService, request_of: Make, through_a_worker: bool) -> None:
    compile = service.compile if through_a_worker else compile_portable
    with pytest.raises(CompileError) as raised:
        compile(request_of(BROKEN))
    error = raised.value
    assert error.kind == "ptx" and error.line == 7 and error.function == "k" and "add.s32 %r1 %r1, 1;" in str(error)
    assert isinstance(error.__cause__, PtxSyntaxError)
    with pytest.raises(CompileError) as raised:
        compile(request_of(UNSUPPORTED))
    error = raised.value
    assert error.kind == "unsupported" and (error.line, error.column) == (6, 2) and "setmaxnreg" in str(error)
    assert isinstance(error.__cause__, PtxUnsupported)


def test_a_kernel_that_is_not_there_and_an_unknown_target(request_of: Make) -> None:
    with pytest.raises(CompileError, match=r"m\.ptx has no kernel 'scales'; it has scale, empty") as raised:
        compile_portable(request_of(SCALE, ("scale", "scales")))
    assert raised.value.kind == "ptx"
    with pytest.raises(CompileError, match="no compiler target is called 'sparc'") as raised:
        compile_portable(request_of(SCALE, target=TargetInfo(name="sparc")))
    assert raised.value.kind == "unsupported"


def test_a_module_is_indexed_once_for_its_kernels(request_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed = []
    real = portable.index_module
    monkeypatch.setattr(portable, "index_module", lambda text, name: indexed.append(name) or real(text, name))
    text = SCALE + "// of its own\n"
    for entry in ("scale", "empty", "scale"):
        compile_portable(request_of(text, (entry,)))
    assert indexed == ["m.ptx"]


def finalizing() -> tuple[Backend, int, TargetInfo] | None:
    """The first real device here."""
    for backend in load_backends().values():
        for device in backend.probe().devices:
            if not device.simulated and device.target.name == "spirv64":
                return backend, device.index, device.target
    return None


def test_a_native_binary_is_made_once(request_of: Make, tmp_path: Path) -> None:
    found = finalizing()
    if found is None:
        pytest.skip("no device that takes SPIR-V")
    backend, index, target = found
    request = request_of(
        SCALE, ("scale",), target=target, backend=backend.name, device_index=index,
        build_identity=backend.build_identity(index),
    )  # fmt: skip
    first = CompileService(Cache(tmp_path), workers=1)
    image = first.compile(request)
    first.close()
    assert image.image.format in ("spirv", f"native:{backend.name}") and image.image.kernels[0].name == "scale"
    second = CompileService(Cache(tmp_path), workers=1)
    assert second.compile(request) == image and not second._workers
    second.close()
    device = backend.open(index)
    module = device.load(image.image)
    assert module.kernel("scale").signature == image.kernels[0].signature
    module.close()
    device.close()
