"""Targets: how they are found, and the facts of SPIR-V they state."""

from __future__ import annotations

import inspect

import pytest

from zluda.backend.info import TargetInfo
from zluda.compiler.target import SpirvTarget, Target, UnknownTarget, target_for


@pytest.fixture
def spirv() -> Target:
    return target_for(TargetInfo(name="spirv64", features=("fp64",)))


def test_a_target_is_found_by_name(spirv: Target) -> None:
    assert isinstance(spirv, SpirvTarget)
    assert spirv.has("fp64")
    assert not spirv.has("fp16")


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UnknownTarget, match=r"'riscv'.*spirv64"):
        target_for(TargetInfo(name="riscv"))


def test_address_spaces_are_those_of_opencl(spirv: Target) -> None:
    """SPIR-V 3.7, Storage Class, as LLVM numbers them: CrossWorkgroup 1, Workgroup 3, Generic 4, Function 0."""
    spaces = {name: spirv.space(name) for name in ("local", "global", "const", "shared", "generic")}
    assert spaces == {"local": 0, "global": 1, "const": 1, "shared": 3, "generic": 4}
    with pytest.raises(KeyError):
        spirv.space("texture")


def test_kernel_metadata(spirv: Target) -> None:
    assert spirv.kernel_metadata(subgroup_size=None, required_block=None) == {}
    nodes = spirv.kernel_metadata(subgroup_size=32, required_block=(8, 4, 2))
    assert nodes == {
        "intel_reqd_sub_group_size": "!{i32 32}",
        "reqd_work_group_size": "!{i32 8, i32 4, i32 2}",
    }


def test_sync_scopes(spirv: Target) -> None:
    assert spirv.sync_scope("cta") == 'syncscope("workgroup") '
    assert spirv.sync_scope("gpu") == 'syncscope("device") '
    assert spirv.sync_scope("sys") == ""


@pytest.mark.parametrize(
    ("features", "types"),
    [
        ((), []),
        (("float-atomics",), ["float"]),
        (("float64-atomics",), ["double"]),
        (("float-atomics", "float64-atomics"), ["float", "double"]),
    ],
)
def test_float_atomics_by_feature(features: tuple[str, ...], types: list[str]) -> None:
    assert list(target_for(TargetInfo(name="spirv64", features=features)).float_atomics) == types


def test_every_method_of_a_target_says_what_it_does() -> None:
    documented = [member for name, member in vars(Target).items() if name != "__init__" and inspect.isfunction(member)]
    assert all(member.__doc__ for member in documented)
