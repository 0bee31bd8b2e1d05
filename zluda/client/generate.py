"""Make the client's C sources from spec/: `python -m zluda.client.generate OUTDIR`; `--header FILE` for cuda.h alone.

OUTDIR gets
    cuda.h            the driver API's types, numbers and prototypes, for the client and for programs without a toolkit
    cudaProfiler.h    the same for profiler control
    zl_protocol.h     the structures and commands shared with the driver process, each checked against its layout
    zl_bodies.h       prototypes of the hand-written bodies: zl_<symbol>, after the checks that the spec asks for
    zl_entry.c        every exported symbol
    zl_symbols.inc    what cuGetProcAddress finds: name, version, per-thread?, address
    zl_errors.inc     code, name, text of every CUresult
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from zluda.client.header import cuda_header, profiler_header
from zluda.client.stubs import bodies_header, entry_points, symbol_table
from zluda.client.wire import protocol_header
from zluda.spec.errors import errors


def error_table() -> str:
    """One line per CUresult."""
    return "".join(f'    {{{e.code}, "{e.name}", "{e.text}"}},\n' for e in errors().values())


FILES: dict[str, Callable[[], str]] = {
    "cuda.h": cuda_header,
    "cudaProfiler.h": profiler_header,
    "zl_protocol.h": protocol_header,
    "zl_bodies.h": bodies_header,
    "zl_entry.c": entry_points,
    "zl_symbols.inc": symbol_table,
    "zl_errors.inc": error_table,
}


def write(path: Path, text: str) -> None:
    """Write a file only if it changes, so that builds stay incremental."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def generate(folder: Path) -> None:
    """All files, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        write(folder / name, make())


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m zluda.client.generate", description="Generate the client's C sources."
    )
    parser.add_argument("folder", type=Path, nargs="?", help="where all generated files go")
    parser.add_argument("--header", type=Path, metavar="FILE", help="write cuda.h there")
    options = parser.parse_args(arguments)
    if options.folder is None and options.header is None:
        parser.error("give OUTDIR or --header FILE")
    if options.header is not None:
        write(options.header, cuda_header())
    if options.folder is not None:
        generate(options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
