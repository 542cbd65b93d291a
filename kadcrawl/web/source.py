"""`DashboardSource`: what the dashboard asks of its peer. A peer or a leaf makes one (peer/dashboard/).

Tests: tests/web/test_listener.py
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSource:
    """One peer or leaf, as its dashboard sees it.

    Each function may be called at any moment of the peer's life.
    """

    data: Path
    """Directory of the peer."""
    now: Callable[[], float]
    """Returns the second by the peer's clock."""
    session_key: Callable[[], bytes]
    """Returns the key of the sessions at this moment (sessions.py)."""
    gather: Callable[[], Awaitable[Json]]
    """Returns the document at this moment, without rates and curves. Raises RemoteError."""
    check: Callable[[str], Json]
    """Returns what the check of the job says of a URL. Raises ConfigError before the job is known."""
    find: Callable[[str], Awaitable[Json]]
    """Returns the way of a URL. Raises ConfigError and RemoteError."""
    order: Callable[[Json], Awaitable[str]]
    """Carries out the order in a JSON object, and returns a sentence. Raises ConfigError and RemoteError."""
