"""Asking backends for their devices, each with a deadline; whatever a probe does, the others are heard."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Mapping

from zluda.backend.info import ProbeReport, Unusable
from zluda.backend.seam import Backend

DEADLINE = 10.0
"""Seconds that all probes together may take."""

_log = logging.getLogger(__name__)


def probe(backends: Mapping[str, Backend], deadline: float = DEADLINE) -> dict[str, ProbeReport]:
    """Probe all at once, one thread each. A probe that raises, hangs or answers nonsense yields a report that says so.

    A hanging probe's thread is left behind; it is a daemon and does not keep the process alive.
    """
    answers: dict[str, ProbeReport] = {}
    threads = []
    end = time.monotonic() + deadline

    def ask(name: str, backend: Backend) -> None:
        answer = _ask(name, backend)
        answers.setdefault(name, answer)

    for name, backend in backends.items():
        thread = threading.Thread(target=ask, args=(name, backend), name=f"probe-{name}", daemon=True)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    # setdefault on both sides: an answer that comes late, while this line runs, does not replace the verdict.
    return {name: answers.setdefault(name, _hung(name, backend, deadline)) for name, backend in backends.items()}


def _ask(name: str, backend: Backend) -> ProbeReport:
    start = time.perf_counter()
    try:
        report = backend.probe()
        if why := _nonsense(name, report):
            return _broken(name, backend, why)
    except BaseException as error:  # noqa: BLE001 - a backend may raise anything; it is reported
        _log.debug("probe of %s:\n%s", name, traceback.format_exc())
        return _broken(name, backend, f"its probe raised {type(error).__name__}: {error}")
    return report.model_copy(update={"seconds": time.perf_counter() - start})


def _nonsense(name: str, report: object) -> str:
    if not isinstance(report, ProbeReport):
        return f"its probe returned {type(report).__name__} instead of a ProbeReport"
    if report.backend != name:
        return f"its probe reports for a backend named {report.backend!r}"
    if strangers := [device.road for device in report.devices if device.backend != name]:
        return f"its probe lists devices of other backends: {', '.join(strangers)}"
    indices = [device.index for device in report.devices]
    if len(set(indices)) != len(indices):
        return f"its probe lists several devices under one index: {indices}"
    return ""


def _broken(name: str, backend: Backend, why: str) -> ProbeReport:
    remedy = f"this is a bug of the backend {name} {backend.version}: report it; ZLUDA_BACKEND='!{name}' leaves it out"
    return _report(name, backend, why, remedy)


def _hung(name: str, backend: Backend, deadline: float) -> ProbeReport:
    why = f"its probe gave no answer within {deadline:g} s"
    remedy = f"a vendor library hangs: see whether the vendor's own tools do; ZLUDA_BACKEND='!{name}' leaves it out"
    return _report(name, backend, why, remedy).model_copy(update={"seconds": deadline})


def _report(name: str, backend: Backend, why: str, remedy: str) -> ProbeReport:
    passed_over = Unusable(what=f"backend {name}", why=why, remedy=remedy)
    return ProbeReport(backend=name, backend_version=backend.version, unusable=(passed_over,))
