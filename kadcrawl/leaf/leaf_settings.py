"""`ChangedSettings` lets a leaf work by the settings, delays and scope that a person has changed.

The full peers of a leaf tell it the orders with its work. A leaf keeps nothing of them beyond its run.

Tests: tests/peer/test_changed_settings.py
"""

import logging
from collections.abc import Callable, Sequence

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.crawler import Crawler
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.peer.swarm.standing_orders import StandingOrders, fingerprint_of
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_changes import changed

log = logging.getLogger(__name__)


class ChangedSettings:
    """The changed settings of one leaf."""

    def __init__(
        self, job: Job, components: CrawlComponents, frontier: Frontier, crawler: Crawler, now: Callable[[], float]
    ) -> None:
        """`frontier` and `crawler` are those of the pages that the leaf has borrowed."""
        self._job = job
        self._components = components
        self._frontier = frontier
        self._crawler = crawler
        self._now = now
        self._orders = StandingOrders()

    @property
    def fingerprint(self) -> int:
        """The fingerprint of the orders that the leaf hears with its work."""
        return fingerprint_of(self._orders.for_leaves)

    @property
    def scope_fingerprint(self) -> int:
        """The fingerprint of the orders about the scope that the leaf knows."""
        return fingerprint_of(self._orders.of_kind("scope"))

    def hear(self, orders: Sequence[StandingOrder]) -> None:
        """Take over orders that change settings, the scope or the delays of sites, and work by them."""
        heard = self._orders.hear([one for one in orders if one.kind in ("set", "scope", "delay")], self._now())
        for order in heard:
            log.info(
                "order.heard kind=%s about=%s value=%s by=%s user=%s stamp=%d",
                *(order.kind, order.about, order.value, order.peer.hex(), order.user or "-", order.stamp),
            )
        job, components = changed(self._job, self._orders.values("set")), self._components
        components.site_settings.change(job)
        components.site_settings.steering.follow({}, self._orders.values("delay"), scope=self._orders.scope)
        if any(one.kind == "scope" for one in heard):
            components.forwarder.forget()
        components.crawl_limits.change(job)
        if not components.crawl_limits.is_time_over:
            self._crawler.pause_reasons.discard(PauseReason.LIMIT)
        self._frontier.steer(self._now(), [one.about for one in heard if one.kind == "delay" and not one.value])
        self._crawler.wake()
