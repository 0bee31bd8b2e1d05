"""The vocabulary, and that nobody declares what is not in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from zluda.backend.capabilities import capability_ids, read_vocabulary, vocabulary
from zluda.backend.info import DeviceInfo


def test_the_vocabulary_is_whole() -> None:
    assert set(vocabulary()) == capability_ids()
    assert {"memory.system", "fp64", "progress.grid", "barrier.partial", "native.binary"} <= capability_ids()
    for capability in vocabulary().values():
        assert set(capability.reach) <= {"opencl", "rocm", "level_zero"}


def test_a_known_capability_is_accepted(info: Callable[..., DeviceInfo]) -> None:
    assert "fp64" in info(capabilities={"fp64", "barrier"}).capabilities


def test_an_unknown_capability_is_an_error(info: Callable[..., DeviceInfo]) -> None:
    with pytest.raises(ValidationError, match=r"unknown capabilities fp65, teleport"):
        info(capabilities={"fp64", "teleport", "fp65"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[capability]]\nid = "a"\nmeaning = "m"\nmeasured = "x"\n' * 2, "declared twice: a"),
        ('[[capability]]\nid = "A b"\nmeaning = "m"\nmeasured = "x"\n', "string_pattern_mismatch"),
        ('[[capability]]\nid = "a"\nmeasured = "x"\n', "meaning"),
        ('[[capability]]\nid = "a"\nmeaning = "m"\nmeasured = "x"\ncolour = 1\n', "colour"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "capabilities.toml"
    file.write_text("version = 1\n" + text)
    with pytest.raises(ValidationError, match=complaint):
        read_vocabulary(file)


def test_a_device_goes_through_json_and_back(info: Callable[..., DeviceInfo]) -> None:
    device = info(uuid="ff" * 16, pci=3, capabilities={"fp64"})
    text = device.model_dump_json()
    assert '"uuid":"' + "ff" * 16 + '"' in text
    assert DeviceInfo.model_validate_json(text) == device
    assert device.uuid_text == "GPU-ffffffff-ffff-ffff-ffff-ffffffffffff"
    assert str(device.pci) == "0000:03:00.0"
