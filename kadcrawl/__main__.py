"""`python -m kadcrawl` is the command `kadcrawl`."""

from kadcrawl.cli import main

main()
