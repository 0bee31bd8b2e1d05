"""Every form against the oracle. ZLUDA_INDEPENDENT_ROWS: operands per form; ZLUDA_INDEPENDENT_SEED: random ones."""

from __future__ import annotations

import os

import forms
import pytest
import rig

ROWS = int(os.environ.get("ZLUDA_INDEPENDENT_ROWS", "600" if rig.WHOLE else "100"))
SEED = int(os.environ.get("ZLUDA_INDEPENDENT_SEED", "1"))


@pytest.mark.parametrize("family", forms.FAMILIES)
def test_forms_give_what_the_isa_says(family: str) -> None:
    wrong = list(rig.compare(forms.FAMILIES[family](), ROWS, SEED, most=24))
    assert not wrong, "\n".join(wrong)
