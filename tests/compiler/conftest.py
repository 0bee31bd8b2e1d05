"""Compile services whose workers run a stand-in compiler that dies, hangs and fails on command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zluda.backend.info import TargetInfo
from zluda.compiler import supervisor
from zluda.compiler.cache import Cache
from zluda.compiler.kernel import CompileRequest
from zluda.compiler.service import CompileService

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture
def request_for() -> Callable[..., CompileRequest]:
    """Makes a request of commands for the stand-in compiler."""

    def make(ptx: str, entries: tuple[str, ...] = ("k",), **fields: object) -> CompileRequest:
        base = {"name": "<test>", "target": TargetInfo(name="spirv64", features=("fp64",))}
        return CompileRequest.model_validate({**base, "ptx": ptx, "entries": entries, **fields})

    return make


@pytest.fixture(scope="module")
def fake_compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers take tests/compiler/fakes/portable.py for zluda.compiler.portable, and find the backend `fake`."""
    site = tmp_path_factory.mktemp("site")
    info = site / "fake_vendor-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-vendor\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[zluda]\nfake = fake_vendor\n")
    (site / "fake_vendor.py").symlink_to(FAKES / "fake_vendor.py")
    plant = (
        "import importlib.util; spec = importlib.util.spec_from_file_location("
        f"'zluda.compiler.portable', {str(FAKES / 'portable.py')!r}); module = importlib.util.module_from_spec(spec); "
        "sys.modules['zluda.compiler.portable'] = module; spec.loader.exec_module(module); "
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setattr(supervisor, "_SETUP", plant)
        yield


@pytest.fixture
def make_service(fake_compiler: None) -> Iterator[Callable[..., CompileService]]:
    """Makes services on the stand-in compiler; closes them."""
    made: list[CompileService] = []

    def make(cache: Cache | None = None, workers: int | None = None) -> CompileService:
        made.append(CompileService(cache, workers))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture(scope="module")
def service(fake_compiler: None) -> Iterator[CompileService]:
    """A service that the tests of a module share: what one does to its worker must not matter to the next."""
    service = CompileService(None)
    yield service
    service.close()
