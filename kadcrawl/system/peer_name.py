"""The name of the peer that the current task belongs to, in a process with several.

Tests: tests/cli/test_log.py
"""

from contextvars import ContextVar

peer_name: ContextVar[str] = ContextVar("peer_name", default="-")
