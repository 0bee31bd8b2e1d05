"""Conformance: running the cases of spec/conformance against a device."""

from __future__ import annotations

from zluda.testing.executor import CoreExecutor, DriverApiExecutor, Executor, Unsupported
from zluda.testing.portable import Case, Verdict
from zluda.testing.runner import load_cases, run_case, summary

__all__ = [
    "Case",
    "CoreExecutor",
    "DriverApiExecutor",
    "Executor",
    "Unsupported",
    "Verdict",
    "load_cases",
    "run_case",
    "summary",
]
