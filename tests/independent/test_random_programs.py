"""Random programs. ZLUDA_INDEPENDENT_PROGRAMS: how many; ZLUDA_INDEPENDENT_SEED: the first seed."""

from __future__ import annotations

import os

import fuzz
import rig

COUNT = int(os.environ.get("ZLUDA_INDEPENDENT_PROGRAMS", "300" if rig.WHOLE else "8"))
SEED = int(os.environ.get("ZLUDA_INDEPENDENT_SEED", "1"))


def test_random_programs() -> None:
    print(f"seeds {SEED} to {SEED + COUNT - 1}")
    wrong = list(fuzz.failures(range(SEED, SEED + COUNT)))
    assert not wrong, "\n".join(wrong)
