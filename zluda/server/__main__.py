"""The driver process: `python -m zluda.server --fd N`, started by libcuda.so.1 with one end of a socket pair as N."""

from __future__ import annotations

import argparse
import gc
import os
import sys

# The program waits in cuInit meanwhile: start-up makes no garbage worth collecting, and pydantic has no plugins here.
gc.disable()
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from zluda.server.process import run  # noqa: E402

parser = argparse.ArgumentParser(prog="python -m zluda.server", description="A CUDA program's driver process.")
parser.add_argument("--fd", type=int, required=True, help="descriptor of the socket to the client")
sys.exit(run(parser.parse_args().fd))
