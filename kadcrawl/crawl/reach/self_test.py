"""`SelfTest` finds out whether the network of this peer works: it connects to hosts that worked, and sends nothing.

A connection without a request needs no robots.txt and no turn at a site's clock. The tests are rare and go on until a
host is reached. While the network is unreachable the crawl is paused, and each test also asks other peers to connect.

Tests: tests/crawl/reach/test_self_test.py
"""

import asyncio
import logging
from collections.abc import Callable

from kadcrawl.crawl.pause_reasons import Pausable, PauseReason
from kadcrawl.crawl.reach.network_health import NetworkHealth, NetworkState
from kadcrawl.crawl.reach.network_proof import NetworkProof
from kadcrawl.crawl.reach.opinions import Opinions
from kadcrawl.crawl.reach.relay_client import RelayClient, Unanswered
from kadcrawl.crawl.reach.relayed_fetcher import Helpers
from kadcrawl.urls import site_of

LOOK_S = 0.5
"""Seconds between two looks at whether a test is due."""
PROXIES_TEST_S = 30.0
"""Seconds between two questions to other peers for a proxy, while none is alive here."""
HELPERS_ASKED = 3
"""Other peers asked to connect in one test."""

log = logging.getLogger(__name__)


class SelfTest:
    """The tests of one peer's network."""

    def __init__(
        self,
        proof: NetworkProof,
        relay: RelayClient,
        health: NetworkHealth,
        opinions: Opinions,
        *,
        helpers: Helpers,
        now: Callable[[], float],
        keep: Callable[[list[str]], None],
    ) -> None:
        """`keep` journals the URLs of hosts that work, for the next run."""
        self._proof = proof
        self._relay = relay
        self._health = health
        self._opinions = opinions
        self._helpers = helpers
        self._now = now
        self._keep = keep

    async def run(self, crawler: Pausable) -> None:
        """Test the network when it is in doubt, and pause the crawler while it is unreachable, until cancelled."""
        proxies_at = 0.0
        while True:
            await asyncio.sleep(LOOK_S)
            self._keep(self._health.known)
            due_s = self._health.test_due_s(self._now())
            if due_s is not None and due_s <= 0:
                await self._test()
            if (left_s := self._health.give_up_s(self._now())) is not None and left_s <= 0:
                self._health.give_up(self._now())
            if PauseReason.PROXIES in crawler.pause_reasons and self._now() >= proxies_at:
                proxies_at = self._now() + PROXIES_TEST_S
                await self._ask_for_proxies(crawler)
            paused = self._health.state is NetworkState.UNREACHABLE
            if paused != (PauseReason.NETWORK in crawler.pause_reasons):
                (crawler.pause_reasons.add if paused else crawler.pause_reasons.discard)(PauseReason.NETWORK)
                crawler.wake()

    async def _test(self) -> None:
        """Connect to a few hosts, and let other peers connect if this peer cannot."""
        urls = self._health.to_test()
        if await self._proof.reaches_any(urls):
            self._opinions.forget_reached()
            return
        self._health.test_failed(self._now())
        log.info("network.test_failed hosts=%d state=%s", len(urls), self._health.state.value)
        if self._health.state in (NetworkState.UNREACHABLE, NetworkState.GIVEN_UP):
            await self._ask_others(urls)

    async def _ask_for_proxies(self, crawler: Pausable) -> None:
        """Let the crawler go on through other peers, if they have a proxy that is alive."""
        url = self._health.without_proxy
        if url is not None and await self._ask_others([url]):
            crawler.pause_reasons.discard(PauseReason.PROXIES)
            crawler.wake()

    async def _ask_others(self, urls: list[str]) -> bool:
        """Let a few other peers connect to the last of these URLs, and return whether one did."""
        for helper in self._helpers.live()[:HELPERS_ASKED]:
            for url in urls[-1:]:
                try:
                    reached = await self._relay.reaches(helper, url, url)
                except Unanswered as unanswered:
                    log.info("network.no_opinion of=%s why=%s", helper, unanswered)
                    continue
                if reached:
                    self._opinions.reached(site_of(url, "host"), helper.id, self._now())
                    self._health.reached_by_other(site_of(url, "host"), url, self._now())
                    return True
        return False
