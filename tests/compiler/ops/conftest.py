"""Lets the tests here import `ops_rig` and `cpu`."""

from __future__ import annotations

import sys
from pathlib import Path

here = Path(__file__).parent
sys.path[:0] = [str(here), str(here.parent)]
