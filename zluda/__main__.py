"""`python -m zluda`: the same as the `zluda` script."""

from zluda.cli import main

main()
