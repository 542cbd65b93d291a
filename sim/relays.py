"""The requests that peers of a simulated swarm make for others (`crawl/reach/relay_host.py`), as the judges know them.

The web sees the peer that sends a request. The judges also need the peer that decided to send it: while a partition
leaves a site two owners, either may ask any peer for help.

Tests: tests/sim/test_relays.py
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from unittest import mock

import msgspec

from kadcrawl.crawl.reach.relay_host import RelayHost
from kadcrawl.link.wire.relay_messages import FetchedForPeer, FetchForPeer

from .network import HOST


class SeenRelay(msgspec.Struct, eq=False):
    """A request that one machine makes for another."""

    asker: str
    """The IP address of the machine that asked for the request."""
    from_s: float
    until_s: float = inf
    """The instant of the answer to the asker, infinite before."""


class SeenRelays:
    """All requests that peers have made for others."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` returns the loop's seconds."""
        self._now = now
        self._seen: defaultdict[tuple[str, str], list[SeenRelay]] = defaultdict(list)
        """(IP address of the helper, URL) -> its requests."""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note each request for another peer while the context is open."""
        fetch = RelayHost.fetch

        async def noted(relay_host: RelayHost, question: FetchForPeer) -> FetchedForPeer:
            relay = SeenRelay(question.owner.host, self._now())
            self._seen[HOST.get().ip, question.url].append(relay)
            try:
                return await fetch(relay_host, question)
            finally:
                relay.until_s = self._now()

        with mock.patch.object(RelayHost, "fetch", noted):
            yield

    def asker(self, helper: str, url: str, at_s: float) -> str | None:
        """Return the IP address of the machine for which another sent a request at that instant, or None."""
        relays = self._seen.get((helper, url), ())
        return next((relay.asker for relay in reversed(relays) if relay.from_s <= at_s <= relay.until_s), None)
