"""The pace of Python's garbage collector in the processes of kadcrawl.

Tests: tests/cli/test_run.py
"""

GARBAGE_THRESHOLD = 20_000
"""New objects before the garbage collector looks among them for cycles, which a crawl rarely makes. Python's own 700
is reached every few pages, and the full collections that follow cost a tenth of the crawl, and of its start."""
