"""The smoke cases, one test each, on the machine's OpenCL device."""

from __future__ import annotations

import fnmatch
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from zluda.testing import Case, CoreExecutor, Verdict, load_cases, run_case


@dataclass(frozen=True)
class Known:
    """A case, or a pattern of cases, that is known to come out otherwise than right."""

    case: str
    status: str
    reason: str
    strict: bool = True
    """False where it depends on the machine whether the case comes out right."""

    def covers(self, case: Case) -> bool:
        return fnmatch.fnmatchcase(case.id, self.case)


KNOWN = [
    Known(**entry)
    for entry in tomllib.loads((Path(__file__).parent / "known.toml").read_text(encoding="utf-8"))["known"]
]
CASES = load_cases("verify")


def check(verdict: Verdict, case: Case, lacking: set[str]) -> None:
    known = next((entry for entry in KNOWN if entry.covers(case)), None)
    if known is not None and verdict.status == known.status:
        pytest.xfail(f"{known.status}: {known.reason}")
    if known is not None and known.strict:
        pytest.fail(f"{case.id} is listed in known.toml as {known.status}, but is {verdict.status}: {verdict.details}")
    if verdict.status == "unsupported" and lacking:
        pytest.skip(verdict.details)
    assert verdict.status == "right", verdict.details


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.xdist_group(f"conformance-{case.group}")) for case in CASES],
    ids=lambda case: case.id,
)  # fmt: skip
def test_case(case: Case, executor: CoreExecutor) -> None:
    verdict = run_case(case, executor)
    check(verdict, case, set(case.needs) - executor.capabilities)


def test_every_entry_of_the_known_list_names_a_case() -> None:
    for entry in KNOWN:
        assert any(entry.covers(case) for case in CASES), entry.case
