"""The driver process: `python -m zluda.server --fd N`, started by libcuda.so.1 with one end of a socket pair as N."""

from __future__ import annotations

import argparse
import sys

from zluda.server.process import run

parser = argparse.ArgumentParser(prog="python -m zluda.server", description="A CUDA program's driver process.")
parser.add_argument("--fd", type=int, required=True, help="descriptor of the socket to the client")
sys.exit(run(parser.parse_args().fd))
