"""The sentences about results that a sink lacks.

Tests: tests/cli/test_command_sinks.py
"""

from collections.abc import Sequence
from pathlib import Path

from kadcrawl.cli.say import tell


def say_shortfalls(shortfalls: Sequence[str], directory: Path) -> None:
    """Print the shortfalls of the sinks of this directory."""
    for shortfall in shortfalls:
        tell(f"kadcrawl: {shortfall}; it is all in {directory}/, and kadcrawl export goes on", err=True)
