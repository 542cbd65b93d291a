"""The orders of a person that bring URLs into the scope of a running crawl, or take them out. A decision: no I/O.

An order names hosts, as an order about sites does, or a pattern between slashes that is searched for in the URL, as
`include` and `exclude` are. Of all orders that match a URL, the latest counts.

Tests: tests/settings/test_scope_orders.py
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kadcrawl.errors import ConfigError
from kadcrawl.settings.host_matches import most_specific
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_rules import EVERY, match_named
from kadcrawl.urls import site_of

OR_PATTERN = ", or a pattern between slashes"
"""The other thing that a person may name beside a host."""


class ScopeOrders:
    """The orders about the scope that one peer knows."""

    def __init__(self) -> None:
        self._orders: list[tuple[str | re.Pattern[str], bool]] = []
        """(Match of hosts, or pattern; whether URLs are in scope), the latest first."""

    def follow(self, orders: Sequence[tuple[str, bool]]) -> None:
        """Take the orders in force, the latest first. An order without a meaning is left out."""
        self._orders = []
        for about, is_in in orders:
            try:
                self._orders.append((re.compile(about[1:-1]) if is_pattern(about) else about, is_in))
            except (re.error, RecursionError, OverflowError):
                continue

    def verdict(self, url: str) -> bool | None:
        """Return whether a person has brought a canonical URL into scope, or taken it out. None without an order."""
        if not self._orders:
            return None
        host = site_of(url, "host")
        for about, is_in in self._orders:
            is_met = most_specific({about: True}, host) if isinstance(about, str) else about.search(url)
            if is_met:
                return is_in
        return None


def is_pattern(about: str) -> bool:
    """Return whether the subject of an order is a pattern."""
    return len(about) > 2 and about.startswith("/") and about.endswith("/")


def subject_of(text: str, job: Job) -> str:
    """Return the hosts or the pattern that a person names in an order about the scope. Raises ConfigError."""
    if is_pattern(text):
        replace(job, exclude=(text[1:-1],))  # It raises ConfigError for a pattern that no job may have.
        return text
    match = match_named(text, OR_PATTERN)
    if match == EVERY:
        raise ConfigError("an order about the scope names hosts, such as *.example.org, or a pattern between slashes")
    return match
