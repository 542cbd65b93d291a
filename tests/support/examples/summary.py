"""The last lines of a test run name the slowest examples, and the blocks that are not run."""

from typing import Any

import pytest

SLOWEST = 5


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the slowest examples and the reasons, which the tests of pages left as their properties."""
    found: list[tuple[str, Any]] = [
        (name, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
    ]
    examples = sorted((tuple(value) for name, value in found if name == "example"), reverse=True)
    not_run = sorted(value for name, value in found if name == "not_run")
    if examples:
        total = sum(seconds for seconds, _ in examples)
        cpu = sum(value for name, value in found if name == "example_cpu")
        slowest = ", ".join(f"{where} {seconds:.1f} s" for seconds, where in examples[:SLOWEST])
        terminalreporter.write_line(
            f"{len(examples)} examples took {total:.0f} s, {cpu:.0f} s of CPU; the slowest: {slowest}"
        )
    if not_run:
        terminalreporter.write_line(f"{len(not_run)} blocks are not run:")
        for reason in not_run:
            terminalreporter.write_line(f"  {reason}")
