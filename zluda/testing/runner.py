"""Loading cases, running them, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zluda.spec import conformance
from zluda.spec.conformance import Tier
from zluda.testing.executor import Executor, Unsupported
from zluda.testing.portable import Case, Verdict, judge, plan, read_cases

_ORDER = [tier.value for tier in Tier]


def load_cases(tier: str | Tier = Tier.SMOKE, groups: Iterable[str] | None = None) -> list[Case]:
    """The cases of a tier and of the tiers below it, of all groups or the named ones. Raises CaseError, ValueError."""
    limit = _ORDER.index(tier.value if isinstance(tier, Tier) else tier)
    wanted = None if groups is None else set(groups)
    cases = [
        case
        for path in conformance.files()
        if wanted is None or path.stem in wanted
        for case in read_cases(path)
        if _ORDER.index(case.tier) <= limit
    ]
    if wanted is not None and wanted - {case.group for case in cases}:
        raise ValueError(f"no cases in {', '.join(sorted(wanted - {case.group for case in cases}))}")
    return cases


def run_case(case: Case, executor: Executor) -> Verdict:
    """Right, wrong, or unsupported. What an executor raises, Unsupported aside, is a wrong verdict."""
    launch = plan(case)
    try:
        images = executor.run(case, launch)
    except Unsupported as reason:
        return Verdict(case.id, "unsupported", str(reason))
    except Exception as error:  # noqa: BLE001 - whatever went wrong is the verdict
        return Verdict(case.id, "wrong", f"{case.id}: {type(error).__name__}: {error}")
    return judge(case, images)


def summary(verdicts: Sequence[Verdict]) -> str:
    """One line: how many of each."""
    counts = {status: sum(v.status == status for v in verdicts) for status in ("right", "wrong", "unsupported")}
    return ", ".join(f"{count} {status}" for status, count in counts.items())
