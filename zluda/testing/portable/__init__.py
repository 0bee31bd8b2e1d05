"""Reading, launching and judging conformance cases with the standard library alone.

Nothing in here imports anything outside this package and the standard library, so that the cases run where neither
zluda nor its dependencies are installed (tools/conformance/run_on_driver.py).
"""

from .bits import BitsError, Pointer, decode, encode, pack
from .case import Argument, Case, CaseError, case_from_table, read_cases
from .judge import Difference, Verdict, judge
from .launch import GUARD, POISON, Buffer, Fixup, Launch, Value, plan

__all__ = [
    "GUARD",
    "POISON",
    "Argument",
    "BitsError",
    "Buffer",
    "Case",
    "CaseError",
    "Difference",
    "Fixup",
    "Launch",
    "Pointer",
    "Value",
    "Verdict",
    "case_from_table",
    "decode",
    "encode",
    "judge",
    "pack",
    "plan",
    "read_cases",
]
