"""The result of a check: its outcome, a sentence, and advice unless the outcome is good.

Tests: tests/cli/doctor/test_machine.py
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class CheckOutcome(StrEnum):
    """The meaning of a result for a peer on this machine."""

    OK = "ok"
    NOTE = "note"
    """A peer works, but less well than it could, or only under a condition."""
    PROBLEM = "problem"
    """A peer does not work, or not as these options ask."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check."""

    check: str
    outcome: CheckOutcome
    said: str
    advice: str = ""


def ok(check: str, said: str) -> CheckResult:
    return CheckResult(check, CheckOutcome.OK, said)


def note(check: str, said: str, advice: str) -> CheckResult:
    return CheckResult(check, CheckOutcome.NOTE, said, advice)


def problem(check: str, said: str, advice: str) -> CheckResult:
    return CheckResult(check, CheckOutcome.PROBLEM, said, advice)


def conclusion(findings: Iterable[CheckResult]) -> str:
    """Return the numbers of problems and notes in a sentence."""
    outcomes = [finding.outcome for finding in findings]
    problems, notes = outcomes.count(CheckOutcome.PROBLEM), outcomes.count(CheckOutcome.NOTE)
    parts = [_counted(count, name) for count, name in ((problems, "problem"), (notes, "note")) if count]
    return ", ".join(parts) or "all is well"


def _counted(count: int, name: str) -> str:
    return f"{count} {name}" + ("s" if count != 1 else "")
