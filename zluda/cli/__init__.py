"""The command line: one file per command, registered in `zluda.cli.app`."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `zluda` script."""
    if sys.argv[1:3] == ["run", "--"] and len(sys.argv) > 3:
        # The usual form needs no parser: loading one would add a fifth of a second to every program's start.
        from zluda.cli.launch import launch

        sys.exit(launch(sys.argv[3:]))
    _with_parser()


def _with_parser() -> None:
    import errno
    import os

    from zluda.cli.app import app

    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        # Only what a full device says of a stream; an error of a file names it, and is a fault of ours if it gets here.
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        print(f"zluda: cannot write: {error.strerror}", file=sys.stderr)
        # What is still buffered must not fail a second time when Python ends.
        with open(os.devnull, "wb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 1)
        sys.exit(2)
