"""The command line: one file per command, registered in `zluda.cli.app`."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `zluda` script."""
    if sys.argv[1:3] == ["run", "--"] and len(sys.argv) > 3:
        # The usual form needs no parser: loading one would add a fifth of a second to every program's start.
        from zluda.cli.launch import launch

        sys.exit(launch(sys.argv[3:]))
    from zluda.cli.app import app

    app()
