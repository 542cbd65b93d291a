"""Property tests have no deadline, as machines may be busy, and a summary of the examples ends a run."""

from hypothesis import settings

from tests.support.examples.summary import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]

settings.register_profile("kadcrawl", deadline=None)
settings.load_profile("kadcrawl")
