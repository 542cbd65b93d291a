"""The reasons for which a crawler starts no request, and the view of a crawler for modules that pause it.

All crawlers of one peer share one set of reasons: the crawl goes on when the set is empty. A module that removes a
reason calls `wake` afterwards.

Tests: tests/crawl/test_crawler.py, tests/peer/test_disk_full.py
"""

from enum import StrEnum
from typing import Protocol


class PauseReason(StrEnum):
    """The reason for which a crawler starts no request."""

    COMMAND = "paused"
    """A person paused the swarm (peer/swarm/state_gossip.py)."""
    JOINING = "joining"
    """The peer is joining, and may not know the whole job yet."""
    STOPPING = "stopping"
    """The peer finishes the requests under way and starts no others."""
    SEEDING = "seeding"
    """The first seeds are on their way to their owners (peer/swarm/seeds.py)."""
    DISK = "disk"
    """The free disk space is below the reserve (crawl/disk_guard.py)."""
    FILES = "files"
    """The machine had no socket left. The crawler removes this reason after a few seconds."""
    PROXIES = "proxies"
    """No proxy is alive (crawl/proxies/health_checks.py). This reason alone does not keep the crawl from its end."""
    NETWORK = "network"
    """No peer reaches any site (crawl/reach/self_test.py). This reason alone does not keep the crawl from its end."""

    LIMIT = "limit"
    """The crawl has reached a limit of the whole swarm (crawl/crawl_limits.py). It ends, as no URL counts as work."""


LETTING_END = frozenset({PauseReason.PROXIES, PauseReason.NETWORK, PauseReason.LIMIT})
"""Reasons that do not keep the crawl from its end, when nothing is pending."""


class Pausable(Protocol):
    """A crawler as seen by a module that pauses it."""

    @property
    def pause_reasons(self) -> set[PauseReason]: ...
    def wake(self) -> None: ...
