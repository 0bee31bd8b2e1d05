"""Entry points that are not built say so, and nothing else happens."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from zluda.spec.driver_api import driver_api

if TYPE_CHECKING:
    from tests.client.conftest import Client

CALL_ALL = """
import ctypes, sys
library = ctypes.CDLL("libcuda.so.1")
nothing = [ctypes.c_void_p(0)] * 16
before = {getattr(library, name)(*nothing) for name in sys.argv[1:]}
assert library.cuInit(0) == 0
for _ in range(2):
    after = {getattr(library, name)(*nothing) for name in sys.argv[1:]}
print(before, after)
"""


def test_every_one_returns_not_supported_and_says_so_once(client: Client) -> None:
    symbols = [f.symbol for f in driver_api().function if f.support == "none"]
    per_thread = [f"{f.symbol}_{f.per_thread}" for f in driver_api().function if f.support == "none" and f.per_thread]
    done = client.run([sys.executable, "-c", CALL_ALL, *symbols, *per_thread])
    assert done.stdout == "{3} {801}\n", done.stderr  # CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_NOT_SUPPORTED
    said = sorted(line.removeprefix("zluda: ").split()[0] for line in done.stderr.splitlines())
    assert said == sorted(symbols)
