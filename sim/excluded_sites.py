"""Sites that a person excludes by an order to any machine, and what the crawl owes then.

An order is in effect if some machine was seen to know it, or ended a URL because of it. What is owed is computed from
the web and from the page lines: all that the seeds and the fetched pages lead to without the excluded sites. The pages
of the sites that were fetched before the order have led on.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kadcrawl.errors import KadcrawlError
from kadcrawl.urls import Partition, origin_of, site_of

from .judges import Facts, Line, StoppedSites
from .machines import Machine, Machines
from .plan import Event
from .reachable import LinkedPages
from .scene import Scene

EXCLUDED = "site_excluded"
"""The failure of a URL that ends because its site is excluded."""


@dataclass(slots=True)
class _SeenOrder:
    """An order to exclude a site, as seen from outside."""

    origins: frozenset[str]
    at_s: float
    """The instant at which the order was given, or was to be given."""
    giver: Machine
    incarnation: int
    owed: frozenset[str]
    """URLs of the site that finished pages led to before the order."""
    all_heard: bool = False
    knew: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """(machine, its incarnation) -> the first and the last look at which it knew the order."""

    def stopped(self) -> StoppedSites:
        """Return the period without requests, from the order on."""
        stands = self.all_heard or (self.giver.alive and self.giver.incarnations == self.incarnation)
        knew = [(number, *times) for (number, _), times in self.knew.items()]
        return StoppedSites(self.origins, self.at_s, float("inf"), self.all_heard, knew, may_be_lost=not stands)


class ExcludedSites:
    """The excluded sites of one trial."""

    def __init__(self, machines: Machines, scene: Scene) -> None:
        self._machines = machines
        self._origins = scene.web.origins
        self._kind: Partition = "domain" if scene.job.partition == "domain" else "host"
        self._truth = frozenset(scene.web.truth(scene.job.retries))
        self._due = self._truth.union(scene.refused)
        """URLs of which a crawl that finds them owes a line."""
        self._known = self._due.union(scene.optional)
        self._pages = LinkedPages(scene.web, self._known)
        self._seeds = frozenset([*scene.job.seeds, *scene.streamed]) & self._known
        self._orders: dict[str, _SeenOrder] = {}
        """Site -> its order."""

    def order(self, event: Event, machine: Machine, now: Callable[[], float]) -> Collection[str]:
        """Have a machine exclude a site, if it is part of the swarm. Return the URLs that may be left out from now."""
        site = named_site(self._origins, event, self._kind)
        if site in self._orders or machine.peer is None or not machine.peer.begun or machine.peer.joining:
            return ()
        origins = frozenset(one for one in self._origins if site_of(f"{one}/", self._kind) == site)
        met = {url for page in self._followed() for url in self._pages.links(page)} & self._due
        owed = frozenset(url for url in met if origin_of(url) in origins)
        seen = _SeenOrder(origins, now(), machine, machine.incarnations, owed)
        self._orders[site] = seen
        machine.host.spawn(self._exclude(site, machine, seen, now))
        return self._on(seen)

    async def _exclude(self, site: str, machine: Machine, seen: _SeenOrder, now: Callable[[], float]) -> None:
        assert machine.peer is not None
        with suppress(KadcrawlError):
            missing = await machine.peer.exclude_site(site)
            seen.all_heard, seen.at_s = not missing, now()

    def look(self, now: float) -> None:
        """Note which machines know an order."""
        for site, seen in self._orders.items():
            for machine in self._machines.live:
                if knows(machine, "exclude", site):
                    run = machine.number, machine.incarnations
                    seen.knew[run] = seen.knew.get(run, (now, now))[0], now

    def excused(self) -> frozenset[str]:
        """Return the URLs that need not be crawled: those of excluded sites, and what only these lead to."""
        if not (out := {url for seen in self._in_effect() for url in self._on(seen)}):
            return frozenset()
        seeds = self._seeds - out
        starts = [*seeds, *self._followed()]
        return self._known - seeds - self._pages.reached(starts, through=self._truth - out, left_out=out)

    def judged(self, facts: Facts) -> Facts:
        """Return the facts with what was seen of the orders."""
        if not self._orders:
            return facts
        orders = self._in_effect()
        return replace(
            facts,
            excluded=[seen.stopped() for seen in orders],
            excused=self.excused(),
            odd_outcomes=list(_odd_outcomes(facts, orders)),
        )

    def _in_effect(self) -> list[_SeenOrder]:
        """Return the orders that some machine has carried out, or may have."""
        if not self._orders:
            return []
        ended = {origin_of(line.url) for line in self._lines() if line.failed == EXCLUDED}
        return [seen for seen in self._orders.values() if seen.knew or seen.all_heard or ended & seen.origins]

    def _on(self, seen: _SeenOrder) -> list[str]:
        return [url for url in self._known if origin_of(url) in seen.origins]

    def _followed(self) -> list[str]:
        """Return the pages that were fetched to the end, so that their links were followed."""
        lines = [line for line in self._lines() if line.status is not None and line.url in self._known]
        return [line.url for line in lines if line.status == self._pages.status(line.url)]

    def _lines(self) -> Iterator[Line]:
        for machine in self._machines.machines.values():
            for line in machine.lines():
                yield Line(line["url"], line["status"], line.get("failed"), machine.number)


def _odd_outcomes(facts: Facts, orders: Iterable[_SeenOrder]) -> Iterator[str]:
    """Yield sentences about URLs of sites with other than one outcome, but for changes of their owner."""
    lines: defaultdict[str, list[Line]] = defaultdict(list)
    for line in facts.lines:
        lines[line.url].append(line)
    excluded = frozenset[str]()
    for seen in orders:
        excluded |= seen.origins
        yield from (f"{url} was found before its site was excluded and has no line" for url in seen.owed - lines.keys())
    for url, found in lines.items():
        ended = sum(line.failed == EXCLUDED for line in found)
        if ended and origin_of(url) not in excluded:
            yield f"{url} ended as {EXCLUDED}, and no order excludes its site"
        changes = max(facts.changes.get(origin_of(url), 0), facts.changes.get(url, 0))
        most = (1 + max(changes, len({line.machine for line in found}) - 1)) * (1 + facts.orders)
        if ended and len(found) > most:
            told = Counter(line.failed or line.status for line in found)
            yield f"{url} has {len(found)} lines, with {changes} changes of owner: {dict(told)}"


def named_site(origins: Sequence[str], event: Event, kind: Partition) -> str:
    """Return the name of the site that an event is about."""
    return site_of(f"{origins[int(event.amount) % len(origins)]}/", kind)


def knows(machine: Machine, kind: str, about: str) -> bool:
    """Return whether a machine knows an order that stands."""
    peer = machine.peer
    if peer is None or not peer.begun or peer.joining or peer.leaving:
        return False
    return any(order.kind == kind and order.about == about and order.value for order in peer.orders)


def disagreements(machines: Machines) -> list[str]:
    """Return a sentence for each machine that does not know an order that another machine of the swarm knows."""
    known = {
        machine.number: {(one.kind, one.about, one.value, one.stamp) for one in peer.runtime.standing_orders.to_wire()}
        for machine in machines.live
        if (peer := machine.peer) is not None and peer.begun and not (peer.joining or peer.leaving or machine.frozen)
    }
    every = set().union(*known.values())
    return [
        f"{number} does not know the order {kind} {about} {value}"
        for number, orders in known.items()
        for kind, about, value, _ in sorted(every - orders, key=str)
    ]
