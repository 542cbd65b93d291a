"""The findings of a check of data: what is wrong in which file, and what to do.

Tests: tests/cli/data_check/test_data_check.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kadcrawl.cli.doctor.check_result import CheckOutcome

REPAIR: Final = "--repair mends it"
REFETCH: Final = "--repair has their pages fetched again when the crawl goes on"

Report = Callable[[Path, float | None], None]
"""A function that is told which file is being read, and which part of it is read already, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class DataFinding:
    """One kind of fault, or of an oddity, in one file."""

    outcome: CheckOutcome
    kind: str
    """Name of the kind, for programs."""
    path: str
    """The file, or the directory."""
    count: int
    """Number of places."""
    said: str
    advice: str = ""


def damage(kind: str, path: Path, count: int, said: str, advice: str = "") -> DataFinding:
    """Return a finding that something is wrong."""
    return DataFinding(CheckOutcome.PROBLEM, kind, str(path), count, said, advice)


def oddity(kind: str, path: Path, count: int, said: str, advice: str = "") -> DataFinding:
    """Return a finding that need not mean that anything is wrong."""
    return DataFinding(CheckOutcome.NOTE, kind, str(path), count, said, advice)
