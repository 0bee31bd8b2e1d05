"""Ranking, ZLUDA_BACKEND and CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import pytest

from zluda.backend.info import Unusable
from zluda.backend.registry import PluginFailure, Registry
from zluda.backend.selection import SelectionError, select, visible, why_none

MISSING = Unusable(what="ROCm runtime", why="libamdhip64.so is not there", remedy="install ROCm 6.1 or newer")


def roads(devices) -> list[str]:
    return [device.road for device in devices]


@pytest.fixture
def machine(backend, info, registry) -> Registry:
    """A discrete GPU by two roads, an integrated one, a CPU by two roads of one backend, and a simulated GPU."""
    return registry(
        backend(
            "opencl",
            [
                info("opencl", 0, "cpu", uuid="c0" * 16),
                info("opencl", 1, "discrete", pci=3),
                info("opencl", 2, "cpu", uuid="c0" * 16),
            ],
            rank=90,
        ),
        backend("rocm", [info("rocm", 0, "discrete", pci=3)], rank=10),
        backend("level_zero", [info("level_zero", 0, "integrated", pci=0)], rank=20),
        backend("null", [info("null", 0, "discrete", simulated=True)]),
    )


def test_default_order(machine: Registry) -> None:
    selection = select({}, machine)
    assert roads(selection.chosen) == ["rocm:0", "level_zero:0", "opencl:0"]
    reasons = {entry.what: entry.why for entry in selection.passed_over}
    assert "the same device as rocm:0 (PCI 0000:03:00.0)" in reasons["opencl device 1 (opencl:1)"]
    assert "the same device as opencl:0 (uuid GPU-c0c0c0c0" in reasons["opencl device 2 (opencl:2)"]
    assert "simulated" in reasons["null device 0 (null:0)"]


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("", ["rocm:0", "level_zero:0", "opencl:0"]),
        ("opencl", ["opencl:1", "opencl:0"]),
        ("opencl,rocm", ["opencl:1", "opencl:0"]),
        ("level_zero, rocm", ["level_zero:0", "rocm:0"]),
        ("!rocm", ["opencl:1", "level_zero:0", "opencl:0"]),
        ("!rocm,!opencl", ["level_zero:0"]),
        ("null", ["null:0"]),
        ("null,opencl", ["null:0", "opencl:1", "opencl:0"]),
        ("rocm,!opencl", ["rocm:0"]),
    ],
)
def test_zluda_backend(machine: Registry, variable: str, expected: list[str]) -> None:
    assert roads(select({"ZLUDA_BACKEND": variable}, machine).chosen) == expected


def test_only_what_is_asked_for_is_probed(machine: Registry) -> None:
    selection = select({"ZLUDA_BACKEND": "opencl"}, machine)
    assert {name: b.probed for name, b in machine.backends.items()} == {
        "opencl": 1,
        "rocm": 0,
        "level_zero": 0,
        "null": 0,
    }
    assert "ZLUDA_BACKEND does not name it" in {e.what: e.why for e in selection.passed_over}["backend rocm"]


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("cuda", "'cuda', which is no backend; installed are: level_zero, null, opencl, rocm"),
        ("!cuda", "'cuda', which is no backend"),
        ("rocm,rocm", "named twice"),
        ("rocm,!rocm", "both named and excluded"),
        ("OpenCL", "'OpenCL', which is no backend"),
    ],
)
def test_a_bad_name_is_an_error(machine: Registry, variable: str, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        select({"ZLUDA_BACKEND": variable}, machine)


def test_a_backend_of_the_project_that_is_not_installed(backend, registry) -> None:
    alone = registry(backend("opencl"))
    with pytest.raises(SelectionError, match=r"rocm, which is not installed: pip install 'zluda-rocm\[rocm\]'"):
        select({"ZLUDA_BACKEND": "rocm"}, alone)
    assert select({"ZLUDA_BACKEND": "!rocm"}, alone).chosen == ()


def test_a_name_that_is_not_usable_fails_with_the_probes_reason_and_never_falls_back(backend, info, registry) -> None:
    machine = registry(backend("rocm", [], [MISSING]), backend("opencl", [info("opencl")]))
    for variable in ("rocm", "rocm,opencl", "opencl,rocm"):
        with pytest.raises(SelectionError) as caught:
            select({"ZLUDA_BACKEND": variable}, machine)
        assert str(caught.value) == (
            f"ZLUDA_BACKEND={variable}: rocm has no usable device\n"
            "  ROCm runtime: libamdhip64.so is not there; install ROCm 6.1 or newer"
        )


def test_without_devices_nothing_is_chosen_and_the_reasons_are_there(backend, registry) -> None:
    selection = select({}, registry(backend("rocm", [], [MISSING])))
    assert selection.chosen == ()
    assert MISSING in selection.passed_over


def test_plugin_failures_are_passed_over_and_named_in_errors(backend) -> None:
    broken = PluginFailure("mine", "zluda-mine 1.0", "ImportError: no")
    registry = Registry({"opencl": backend("opencl")}, {"opencl": "tests"}, (broken,))
    assert ("plugin mine", "ImportError: no") in [(e.what, e.why) for e in select({}, registry).passed_over]
    with pytest.raises(SelectionError, match=r"plugin mine \(zluda-mine 1.0\): ImportError: no"):
        select({"ZLUDA_BACKEND": "mine"}, registry)


def test_two_equal_cards_stay_two(backend, info, registry) -> None:
    cards = [info("rocm", 0, pci=3, uuid="aa" * 16), info("rocm", 1, pci=4, uuid="aa" * 16)]
    assert roads(select({}, registry(backend("rocm", cards))).chosen) == ["rocm:0", "rocm:1"]


def test_one_card_without_a_pci_address_on_one_road_is_known_by_uuid(backend, info, registry) -> None:
    machine = registry(
        backend("rocm", [info("rocm", 0, pci=3, uuid="aa" * 16)], rank=10),
        backend("opencl", [info("opencl", 0, uuid="aa" * 16)], rank=90),
    )
    assert roads(select({}, machine).chosen) == ["rocm:0"]


# CUDA C++ Programming Guide, "CUDA Environment Variables": the examples 2,1 and 0,2,-1,1 are the guide's own.
@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("0", [0]),
        ("2,1", [2, 1]),
        ("0,2,-1,1", [0, 2]),
        ("", []),
        ("-1", []),
        ("3,0", []),
        ("0,3,1", [0]),
        ("1, 0", [1, 0]),
        ("0,0", [0]),
        ("0,,1", [0]),
        ("no", []),
        ("0x1", []),
        ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", [0]),
        ("GPU-8932f937,1", [0, 1]),
        ("gpu-8932F937", [0]),
        ("GPU-8", []),
        ("GPU-8a", [1]),
        ("GPU-", []),
        ("GPU-ff", []),
        ("GPU-01,GPU-8932f937", [2, 0]),
        ("8932f937", []),
        ("MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/2", []),
        ("1,GPU-8a,0", [1]),
    ],
)
def test_cuda_visible_devices(info, variable: str, expected: list[int]) -> None:
    devices = [
        info(index=0, uuid="8932f937d72c4106c12f20bd9faed9f6"),
        info(index=1, uuid="8a" * 16),
        info(index=2, uuid="01" * 16),
    ]
    assert [device.index for device in visible(devices, variable)] == expected


def test_hidden_devices_are_passed_over(machine: Registry) -> None:
    selection = select({"CUDA_VISIBLE_DEVICES": "2,0"}, machine)
    assert roads(selection.chosen) == ["opencl:0", "rocm:0"]
    assert roads(selection.usable) == ["rocm:0", "level_zero:0", "opencl:0"]
    assert "CUDA_VISIBLE_DEVICES=2,0 does not name it" in [entry.why for entry in selection.passed_over]
    (hidden,) = (entry for entry in selection.passed_over if "does not name it" in entry.why)
    assert hidden.remedy == "unset CUDA_VISIBLE_DEVICES, or add 1 to it"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("nonsense", "CUDA_VISIBLE_DEVICES=nonsense names no device"),
        ("", "an empty CUDA_VISIBLE_DEVICES hides all"),
        ("7,0", "CUDA_VISIBLE_DEVICES=7,0 names no device (the list ends at '7', its first invalid entry)"),
    ],
)
def test_why_no_device_is_visible(machine: Registry, text: str, cause: str) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": text}
    selection = select(environment, machine)
    first, *rest = why_none(selection, environment).splitlines()
    assert first == f"no usable device: {cause}; unset it or use 0 to 2"
    names = [f"{device.name} ({device.road})" for device in select({}, machine).chosen]
    assert rest == [f"  {place}: {name}" for place, name in enumerate(names)]
    remedies = [entry.remedy for entry in selection.passed_over if "does not name it" in entry.why]
    assert remedies == [f"unset CUDA_VISIBLE_DEVICES, or set it to {place}" for place in range(3)]


def test_why_no_device_is_usable(backend, registry) -> None:
    machine = registry(backend("rocm", [], [MISSING]))
    assert why_none(select({}, machine), {}).splitlines() == [
        "no usable device",
        "  ROCm runtime: libamdhip64.so is not there; install ROCm 6.1 or newer",
    ]
    assert why_none(select({}, Registry({}, {})), {}) == "no usable device: no backend is installed"
