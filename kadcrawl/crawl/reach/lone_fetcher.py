"""`LoneFetcher` fetches from sites that no other peer asks for this peer, because their cookies are kept.

If this peer cannot connect, the reason may be its own network, and another owner would reach the site. So the failure
stands only if no other peer can connect either, and the network of this peer is not known to fail. Otherwise the URL
goes back and waits. A host that is missed for too long fails after all, so a crawl ends although the network of one
peer never works again.

Tests: tests/crawl/reach/test_lone_fetcher.py
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from random import Random

from kadcrawl.crawl.fetch.fetcher import FormFetching, always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import BY_PEER, FetchError, FetchResult
from kadcrawl.crawl.reach.opinions import HostFailure, Opinions
from kadcrawl.crawl.reach.relay_client import RelayClient, Unanswered
from kadcrawl.crawl.reach.relayed_fetcher import Helpers
from kadcrawl.urls import site_of

OPINIONS_MAX = 3
"""Other peers that are asked whether they reach a host."""
HOSTS_MAX = 1_000
"""Hosts remembered as missed. The oldest is forgotten first, and may wait again."""


class LoneFetcher:
    """Fetches URLs directly, and lets them wait while the network of this peer fails."""

    def __init__(
        self,
        direct: FormFetching,
        relay: RelayClient,
        opinions: Opinions,
        *,
        helpers: Helpers,
        works: Callable[[float], Awaitable[bool | None]],
        wait_s: float,
        random: Random,
        now: Callable[[], float],
    ) -> None:
        """`works` finds out whether the network has worked since a given second (`NetworkProof`).

        A host may be missed for `wait_s` before its URLs fail, and `now` is the world's clock.
        """
        self._direct = direct
        self._relay = relay
        self._opinions = opinions
        self._helpers = helpers
        self._works = works
        self._wait_s = wait_s
        self._random = random
        self._now = now
        self._missed_since: dict[str, float] = {}
        """Host -> second at which this peer first missed it, while its network failed."""

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
        form: bytes = b"",
    ) -> FetchResult:
        """Return the result of one request for a canonical URL, or NO_OPINION if the network of this peer fails."""
        started_at, host = self._now(), site_of(url, "host")
        result = await self._direct.fetch(url, extra_headers, may_send, memory_slots=memory_slots, form=form)
        if result.status is not None or result.error not in BY_PEER:
            if result.status is not None:
                self._missed_since.pop(host, None)
                self._opinions.forget(host)
            return result
        if await self._lies_with_the_site(url, host, started_at) or not self._may_wait(host):
            return result
        return replace(result, error=FetchError.NO_OPINION)

    async def _lies_with_the_site(self, url: str, host: str, since: float) -> bool:
        """Return whether a failure to connect to the host of a URL says something about the host."""
        if self._opinions.failure_of(host, self._now()) is not None:
            return True
        missed = await self._missed_by_others(url)
        if missed is None or await self._works(since) is False:
            return False
        if missed:
            failure = HostFailure(missed, FetchError.CONNECT, "other peers do not connect to the host either")
            self._opinions.missed(host, failure, self._now())
        return True

    async def _missed_by_others(self, url: str) -> int | None:
        """Return how many other peers cannot connect to the host, or None if one can. They send nothing there."""
        helpers = [peer for peer in self._helpers.live() if self._opinions.can_help(peer.id, self._now())]
        helpers.sort(key=lambda peer: peer.id)
        missed = 0
        for helper in self._random.sample(helpers, min(OPINIONS_MAX, len(helpers))):
            try:
                if await self._relay.reaches(helper, url, url):
                    return None
                missed += 1
            except Unanswered as unanswered:
                self._opinions.cannot_help(helper.id, unanswered.unable, self._now())
        return missed

    def _may_wait(self, host: str) -> bool:
        """Return whether the URLs of a missed host may still wait. Begins the wait."""
        while len(self._missed_since) >= HOSTS_MAX and host not in self._missed_since:
            del self._missed_since[next(iter(self._missed_since))]
        return self._now() < self._missed_since.setdefault(host, self._now()) + self._wait_s
