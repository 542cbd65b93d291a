"""The units of tests that run in one process, one after another: the groups, and neighbors of a module.

Tests: tests/support/test_scheduler.py, tests/support/test_forks.py
"""

from collections.abc import Iterable
from itertools import groupby

TOGETHER = 12
"""Neighbors of a module that run in one process, one after another. So most modules prepare what they share once."""


def neighbors(tests: Iterable[str]) -> dict[str, str]:
    """Return for each test the name of the unit with which it runs: some neighbors of its module."""
    units = {}
    for module, its in groupby(tests, lambda test: test.partition("::")[0]):
        for number, test in enumerate(its):
            units[test] = f"{module} {number // TOGETHER}"
    return units
