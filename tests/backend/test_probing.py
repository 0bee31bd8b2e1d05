"""Probes that raise, hang or answer nonsense."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from zluda.backend.info import DeviceInfo, ProbeReport
from zluda.backend.probing import probe


def report(name: str, *devices: DeviceInfo) -> ProbeReport:
    return ProbeReport(backend=name, backend_version="1", devices=devices)


def test_a_good_probe_is_timed(probing_backend, info) -> None:
    def slow() -> ProbeReport:
        time.sleep(0.05)
        return report("good", info("good"))

    (answer,) = probe({"good": probing_backend("good", slow)}).values()
    assert answer.devices == (info("good"),)
    assert 0.05 <= answer.seconds < 5


def test_a_probe_that_raises(probing_backend, info) -> None:
    def fail() -> ProbeReport:
        raise RuntimeError("the vendor library is in a bad mood")

    answers = probe({"bad": probing_backend("bad", fail), "good": probing_backend("good", lambda: report("good"))})
    (passed_over,) = answers["bad"].unusable
    assert answers["bad"].devices == ()
    assert "RuntimeError: the vendor library is in a bad mood" in passed_over.why
    assert "!bad" in passed_over.remedy
    assert answers["good"].unusable == ()


def test_a_probe_that_exits(probing_backend) -> None:
    def leave() -> ProbeReport:
        raise SystemExit(3)

    assert "SystemExit: 3" in probe({"bad": probing_backend("bad", leave)})["bad"].unusable[0].why


def test_a_probe_that_hangs(probing_backend, info) -> None:
    release = threading.Event()

    def hang() -> ProbeReport:
        release.wait()
        return report("slow", info("slow"))

    start = time.monotonic()
    answers = probe(
        {"slow": probing_backend("slow", hang), "good": probing_backend("good", lambda: report("good"))}, deadline=0.2
    )
    assert time.monotonic() - start < 2
    assert answers["slow"].unusable[0].why == "its probe gave no answer within 0.2 s"
    assert answers["good"].unusable == ()
    release.set()
    time.sleep(0.05)
    assert answers["slow"].devices == ()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda info: None, "returned NoneType instead of a ProbeReport"),
        (lambda info: {"devices": []}, "returned dict instead of a ProbeReport"),
        (lambda info: report("other"), "reports for a backend named 'other'"),
        (lambda info: report("odd", info("other")), "lists devices of other backends: other:0"),
        (lambda info: report("odd", info("odd"), info("odd")), "several devices under one index: [0, 0]"),
        (lambda info: report("odd", info("odd", capabilities={"flight"})), "unknown capabilities flight"),
    ],
)
def test_a_probe_that_answers_nonsense(probing_backend, info, answer: Callable[..., object], why: str) -> None:
    answers = probe({"odd": probing_backend("odd", lambda: answer(info))})
    assert why in answers["odd"].unusable[0].why
    assert answers["odd"].devices == ()
