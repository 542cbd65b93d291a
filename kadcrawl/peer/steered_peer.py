"""`SteeredPeer`: what a program asks a full peer about its swarm, and the orders that a program gives to the swarm.

No method takes or returns a type of the wire.

Tests: tests/peer/test_crawl_status.py, tests/peer/test_site_orders.py, tests/peer/test_retry.py
"""

from collections.abc import Sequence

from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.given_order import GivenOrder
from kadcrawl.link.wire.order_messages import OrderKind, OrdersGiven, StandingOrder
from kadcrawl.link.wire.queue_messages import QUEUED_SITES_MAX, QUEUED_URLS_MAX, SurveyQueue
from kadcrawl.link.wire.retry_messages import RetryOrder
from kadcrawl.peer.base import PeerBase
from kadcrawl.peer.crawl_status import CrawlStatus, DroppedUrls, RetriedUrls
from kadcrawl.peer.queue_status import QueueStatus
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.census import take_census
from kadcrawl.peer.swarm.fetch_again import fetch_again
from kadcrawl.peer.swarm.queue_survey import survey_queue
from kadcrawl.peer.swarm.retry import retry_failed
from kadcrawl.peer.swarm.seeds import refuse_text
from kadcrawl.peer.swarm.state_gossip import StateGossip
from kadcrawl.peer.swarm.steer import give_orders
from kadcrawl.urls import seed


class SteeredPeer(PeerBase):
    """The part of a full peer by which a program looks at its swarm and steers it."""

    @property
    def runtime(self) -> Runtime:
        """The parts and the state of this peer."""
        raise NotImplementedError

    @property
    def state_gossip(self) -> StateGossip:
        """The gossip of the swarm state."""
        raise NotImplementedError

    async def status(self) -> CrawlStatus:
        """Ask every peer of the swarm for its figures, and return them with the orders that stand."""
        answer = await take_census(self.runtime.waves)
        return CrawlStatus.of(answer, self.orders, paused=self.runtime.paused, ended=self.runtime.ended)

    async def queue(self, site: str = "", *, sites: int = 20, urls: int = 0) -> QueueStatus:
        """Return the pending URLs of the swarm, or of one site: counts, and up to 100 sites or next URLs of that site.

        The figures may be ten seconds old. Raises ConfigError for text that is no site.
        """
        self._refuse_if_ended()
        if not (0 <= sites <= QUEUED_SITES_MAX and 0 <= urls <= QUEUED_URLS_MAX):
            raise ConfigError(f"a queue shows at most {QUEUED_SITES_MAX} sites and {QUEUED_URLS_MAX} URLs")
        return QueueStatus.of(await survey_queue(self.runtime, SurveyQueue(site, sites, urls)))

    async def retry(self, reasons: Sequence[str] = (), *, site: str = "", url: str = "") -> RetriedUrls:
        """Have the swarm fetch its failed URLs again, and return how many became pending, by reason.

        `reasons`, a host or domain as `site`, and one `url` narrow the order down. It applies to each URL once, and to
        none that fails where the order is known. Raises ConfigError if the job does not remember failed URLs.
        """
        wanted = RetryOrder(0, tuple(reasons), site, seed(url) if url else "")
        retried = await retry_failed(self.runtime, wanted)
        return RetriedUrls(dict(retried.urls), retried.cells_left, retried.parts_missing)

    async def fetch_again(self, urls: Sequence[str], *, only_failed: bool = False) -> int:
        """Have these URLs fetched again, and return how many: those that are done, or with `only_failed` that failed.

        A URL that the crawl has not met is not fetched. Raises ConfigError for text that is no http(s) URL, and if the
        job does not remember its URLs.
        """
        refuse_text(urls)
        outcomes = await fetch_again(self.runtime, [seed(url) for url in urls], only_failed=only_failed)
        return outcomes["again"]

    async def pause(self) -> None:
        """Let the swarm fetch nothing more until `resume`. Raises RemoteError when a part of it does not answer."""
        await self.state_gossip.order("pause")

    async def resume(self) -> None:
        """Let a paused swarm go on. Raises RemoteError as `pause` does."""
        await self.state_gossip.order("resume")

    async def pause_site(self, site: str, *, user: str = "") -> int:
        """Let no peer start a request to a site, a host or `*.` and a domain, until `resume_site`.

        Its URLs stay pending, so the crawl is not over. Returns how many parts of the swarm have not heard of the order
        yet. Raises ConfigError for text that is no site.
        """
        return (await self._give("pause", site, 1.0, user)).parts_missing

    async def resume_site(self, site: str, *, user: str = "") -> int:
        """Let a paused site go on. Returns and raises as `pause_site`."""
        return (await self._give("pause", site, None, user)).parts_missing

    async def exclude_site(self, site: str, *, user: str = "") -> int:
        """Leave a site out of the crawl: its pending URLs fail as `site_excluded`. Returns as `pause_site`."""
        return (await self._give("exclude", site, 1.0, user)).parts_missing

    async def include_site(self, site: str, *, user: str = "") -> int:
        """Lift `exclude_site` for links from now on. Returns and raises as `pause_site`."""
        return (await self._give("exclude", site, None, user)).parts_missing

    async def slow_site(self, site: str, delay_s: float | None, *, user: str = "") -> int:
        """Leave a site alone for so many seconds at least after each request, or lift that. Returns as `pause_site`."""
        return (await self._give("delay", site, delay_s, user)).parts_missing

    async def drop_site(self, site: str, *, user: str = "") -> DroppedUrls:
        """End the pending URLs of a site, which fail as `site_dropped`, and return how many. Raises as `pause_site`.

        URLs that are found where the order has arrived are followed.
        """
        given = await self._give("drop", site, 1.0, user)
        return DroppedUrls(given.dropped, given.cells_left, given.parts_missing)

    async def add_scope(self, subject: str, *, user: str = "") -> int:
        """Bring hosts, or the URLs that a pattern between slashes finds, into the scope, for links from now on.

        Returns as `pause_site`. Raises ConfigError for text that is neither.
        """
        return (await self._give("scope", subject, 1.0, user)).parts_missing

    async def remove_scope(self, subject: str, *, user: str = "") -> int:
        """Take hosts or URLs out of the scope: pending URLs fail as `scope_removed`. Returns as `add_scope`."""
        return (await self._give("scope", subject, 0.0, user)).parts_missing

    async def change_setting(self, name: str, value: float | None, *, user: str = "") -> int:
        """Give a setting of the job another value in the whole swarm, or with None its own again.

        The settings are `delay` (seconds), `retries`, `refusals`, `max-site-pages`, and if the crawl began with them
        `max-pages`, `max-bytes` and `max-time` (seconds). Returns as `pause_site`. Raises ConfigError if a setting
        cannot change.
        """
        return (await self._give("set", name, value, user)).parts_missing

    @property
    def orders(self) -> list[GivenOrder]:
        """The orders of people about sites that stand, as far as this peer knows, the latest first."""
        return [GivenOrder.of(order) for order in self.runtime.standing_orders.in_force]

    async def _give(self, kind: OrderKind, about: str, value: float | None, user: str) -> OrdersGiven:
        return await give_orders(self.runtime, [StandingOrder(kind, about, value, user=user)])
