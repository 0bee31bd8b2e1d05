"""Run the conformance cases through the CUDA driver API of any libcuda.so.1, NVIDIA's own for one.

    python tools/conformance/run_on_driver.py --lib libcuda.so.1 --json verdicts.json

Needs Python 3.11 and three folders of the repository side by side as they are there: tools/conformance,
zluda/testing/portable and spec/conformance. Nothing is imported that the standard library and those lack.

The cases run in a child process; when it dies, hangs, or a case leaves the context unusable, another goes on with the
next case. Status 1 if a verdict is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "zluda" / "testing"))

from portable import Case, Verdict, judge, plan, read_cases  # noqa: E402
from portable.driver import DriverApi, DriverError, Unsupported  # noqa: E402

TIERS = ("smoke", "verify", "exhaustive")
PERSISTENT = {
    214, 700, 702, 709, 714, 715, 716, 717, 718, 719,
}  # fmt: skip
"""Results after which CUDA says the context cannot be used any more."""


def chosen(arguments: argparse.Namespace) -> list[Case]:
    """The cases that the arguments ask for."""
    folder = Path(arguments.cases)
    limit = TIERS.index(arguments.tier)
    return [
        case
        for path in sorted(folder.glob("*.toml"))
        if not arguments.group or path.stem in arguments.group
        for case in read_cases(path)
        if TIERS.index(case.tier) <= limit
        and (not arguments.match or any(text in case.id for text in arguments.match))
        and not set(case.needs) & set(arguments.without)
    ]


def child(arguments: argparse.Namespace) -> int:
    """Run the cases from number `--from` on; a line of JSON for each. Ends early when the context is spent."""
    cases = chosen(arguments)[arguments.start :]
    try:
        opened = DriverApi(arguments.lib, arguments.device)
    except (OSError, DriverError) as error:
        print(error, file=sys.stderr)
        return 1
    with opened as driver:
        print(json.dumps({"device": driver.name, "driver": driver.version}), flush=True)
        for case in cases:
            spent = False
            try:
                verdict = judge(case, driver.run(case, plan(case)))
            except Unsupported as reason:
                verdict = Verdict(case.id, "unsupported", str(reason))
            except DriverError as error:
                verdict = Verdict(case.id, "wrong", f"{case.id}: {error}")
                spent = error.code in PERSISTENT
            print(json.dumps({"case": case.id, "status": verdict.status, "details": verdict.details}), flush=True)
            if spent:
                sys.stdout.flush()
                return 0
    return 0


class Child:
    """One child process and its lines, each within a time limit."""

    def __init__(self, options: Sequence[str], start: int, limit: float) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), *options, "--child", "--start", str(start)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._limit = limit
        self.timed_out = False
        self._stderr: list[str] = []
        assert self._process.stdout is not None and self._process.stderr is not None
        self._lines: IO[str] = self._process.stdout
        self._drain = threading.Thread(target=self._stderr.extend, args=(self._process.stderr,), daemon=True)
        self._drain.start()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            timer = threading.Timer(self._limit, self._expire)
            timer.start()
            try:
                line = self._lines.readline()
            finally:
                timer.cancel()
            if not line.endswith("\n"):
                return
            yield json.loads(line)

    def _expire(self) -> None:
        self.timed_out = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def end(self) -> str:
        """Why it ended, in words; empty if it ended well."""
        status = self._process.wait()
        self._drain.join(5)
        if self.timed_out:
            return f"no answer within {self._limit:g} s"
        tail = "".join(self._stderr)[-2000:].strip()
        return "" if status == 0 else f"the process ended with status {status}; {tail}"


def supervise(arguments: argparse.Namespace, options: Sequence[str]) -> dict[str, Any]:
    """Verdicts of all chosen cases, over as many children as it takes."""
    ids = [case.id for case in chosen(arguments)]
    report: dict[str, Any] = {"library": arguments.lib, "verdicts": []}
    verdicts: list[dict[str, Any]] = report["verdicts"]
    while len(verdicts) < len(ids):
        before = len(verdicts)
        process = Child(options, before, arguments.timeout)
        for message in process:
            if "device" in message:
                report.update(message)
            else:
                verdicts.append(message)
                _show(message)
        reason = process.end()
        if "device" not in report:
            report["error"] = reason
            break
        if reason and len(verdicts) < len(ids):
            lost = {"case": ids[len(verdicts)], "status": "wrong", "details": f"{ids[len(verdicts)]}: {reason}"}
            verdicts.append(lost)
            _show(lost)
        elif len(verdicts) == before:
            report["error"] = "a child ended without a verdict"
            break
    return report


def _show(verdict: dict[str, Any]) -> None:
    if verdict["status"] != "right":
        print(f"{verdict['status']:12}{verdict['case']}\n    {verdict['details']}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", default="libcuda.so.1", help="the driver library")
    parser.add_argument("--device", type=int, default=0, help="the device's ordinal")
    parser.add_argument("--cases", default=str(ROOT / "spec" / "conformance"), help="the folder of cases")
    parser.add_argument("--tier", choices=TIERS, default="verify")
    parser.add_argument("--group", action="append", default=[], help="only this group; may be repeated")
    parser.add_argument("--match", action="append", default=[], help="only ids that contain this; may be repeated")
    parser.add_argument("--without", action="append", default=[], help="leave out cases that need this capability")
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="seconds a case may take, its module's build included"
    )
    parser.add_argument("--json", help="where to write the verdicts")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments)
    report = supervise(arguments, sys.argv[1:])
    verdicts = report["verdicts"]
    counts = {status: sum(v["status"] == status for v in verdicts) for status in ("right", "wrong", "unsupported")}
    report["counts"] = counts
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(report, indent=1), encoding="utf-8")
    if "error" in report:
        print(f"{arguments.lib}: {report['error']}", file=sys.stderr)
    print(f"{report.get('device', arguments.lib)}: " + ", ".join(f"{n} {status}" for status, n in counts.items()))
    return 1 if counts["wrong"] or "error" in report else 0


if __name__ == "__main__":
    sys.exit(main())
