"""Sites that are down for a time, and orders to fetch failed URLs again: what happens, and what is seen of it.

`Retries` carries out the events of a plan. `SeenRetries` is the part of the observer that knows the outages and the
orders. At the end of each trial with failures a last order has the rest fetched again, so that the links on failed
pages are found and the whole web is crawled as without outages.
"""

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from kadcrawl.errors import KadcrawlError
from kadcrawl.link.wire.messages import Retry

from .judges import DOWN, Fetch, Outage, awaited
from .machines import Machine, Machines
from .plan import Event
from .web_server import WebServer

REASONS = (f"http_{DOWN}", "http_404", "http_500")
"""The failures that orders name. A robots.txt that never answers would keep its site waiting longer at each order."""


class SeenRetries:
    """The outages of sites and the orders to retry, as seen from outside."""

    def __init__(self, given_up: Collection[str] = ()) -> None:
        """`given_up` are the pages of sites that refuse everything."""
        self.given_up = frozenset(given_up)
        self.outages: list[Outage] = []
        """The periods in which sites are down."""
        self.orders = 0
        """Orders that machines were told to give."""
        self._heard: list[float] = []
        """The instants of orders that all peers have heard, as far as the peer that gave the order knows."""
        self._given: list[tuple[float, Machine, int]] = []
        """(instant, giver, its incarnation) of each order. The giver tells all others, as long as it stands."""
        self.not_retried: list[str] = []
        """Sentences about URLs that no order had fetched again."""

    def give_up(self, urls: Collection[str]) -> None:
        """Expect no more that these URLs are fetched again."""
        self.given_up = self.given_up.union(urls)

    def told(self) -> None:
        """Note that a machine is told to give an order."""
        self.orders += 1

    def given(self, ordered_at: float, giver: Machine, *, all_heard: bool) -> None:
        """Note that a machine has given an order at this instant, and whether all peers have heard it."""
        self._given.append((ordered_at, giver, giver.incarnations))
        if all_heard:
            self._heard.append(ordered_at)

    def awaited(self, fetches: Sequence[Fetch]) -> list[str]:
        """Return the URLs that an order that all peers have heard has fetched again."""
        return awaited(fetches, max(self._heard, default=-math.inf), self.outages, self.given_up)

    def look_back(self, fetches: Sequence[Fetch]) -> None:
        """Note the URLs that no order had fetched again, in a swarm at rest that has heard all its peers."""
        told = [at for at, giver, number in self._given if giver.alive and giver.incarnations == number]
        urls = awaited(fetches, max([*self._heard, *told], default=-math.inf), self.outages, self.given_up)
        self.not_retried = [f"{url} failed before an order and was not fetched after it" for url in urls]


class Retries:
    """The outages and orders of one trial."""

    def __init__(
        self,
        machines: Machines,
        server: WebServer,
        origins: Sequence[str],
        seen: SeenRetries,
        now: Callable[[], float],
        tell: Callable[[str], None],
    ) -> None:
        self._machines = machines
        self._server = server
        self._origins = origins
        self._seen = seen
        self._now = now
        self._tell = tell

    def set_outage(self, event: Event, *, begins: bool) -> None:
        """Take a site down, or bring it back unless another outage goes on."""
        site = self._origins[int(event.amount) % len(self._origins)]
        host = site.removeprefix("http://")
        if begins:
            self._seen.outages.append(Outage(site, event.at_s, event.at_s + event.for_s))
            self._server.down.add(host)
        elif not any(outage.site == site and outage.until_s > self._now() + 1e-6 for outage in self._seen.outages):
            self._server.down.discard(host)

    async def order(self, machine: Machine) -> bool:
        """Have a machine order that failed URLs are fetched again, and return whether all peers have heard it."""
        if machine.peer is None or not machine.peer.begun or machine.peer.joining:
            return False
        ordered_at = self._now()
        self._seen.told()
        try:
            answer = await machine.peer.retry(REASONS)
        except KadcrawlError as error:
            self._tell(f"no order from {machine.number}: {error}")
            return False
        all_heard = not (answer.parts_missing or answer.cells_left)
        self._seen.given(ordered_at, machine, all_heard=all_heard)
        return all_heard

    async def repeat(self, machine: Machine) -> None:
        """Have a machine repeat all orders that it knows, as a late peer would."""
        if machine.peer is not None and machine.peer.begun:
            with suppress(KadcrawlError):
                for order in machine.peer.runtime.retry_orders.to_wire():
                    await machine.peer.waves.ask_all(Retry(order))

    async def order_until_heard(self) -> None:
        """Have the last failed URLs fetched again, by a machine whose order all peers hear."""
        for machine in self._machines.live:
            if await machine.host.spawn(self.order(machine)):
                return
