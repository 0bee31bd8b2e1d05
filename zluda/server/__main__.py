"""The driver process: `python -m zluda.server --fd N`, started by libcuda.so.1 with one end of a socket pair as N.

Or `--listen N --program P`, started by `zluda run` ahead of the program, whose pidfd is P.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys

# The program waits in cuInit meanwhile: start-up makes no garbage worth collecting, and pydantic has no plugins here.
gc.disable()
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from zluda.server.process import run, run_ahead  # noqa: E402

parser = argparse.ArgumentParser(prog="python -m zluda.server", description="A CUDA program's driver process.")
start = parser.add_mutually_exclusive_group(required=True)
start.add_argument("--fd", type=int, help="descriptor of the socket to the client")
start.add_argument("--listen", type=int, help="descriptor of the socket where clients claim a driver started ahead")
parser.add_argument("--program", type=int, help="with --listen: pidfd of the program it is meant for")
options = parser.parse_args()
if options.listen is None:
    sys.exit(run(options.fd))
if options.program is None:
    parser.error("--listen needs --program")
sys.exit(run_ahead(options.listen, options.program))
