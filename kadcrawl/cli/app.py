"""The command `kadcrawl` with all its subcommands, for the documentation, for tests and for shells.

A process that runs one subcommand loads that alone (group.py).

Tests: tests/cli/test_command.py
"""

from kadcrawl.cli.group import NAMES, group_of

main = group_of(NAMES)
