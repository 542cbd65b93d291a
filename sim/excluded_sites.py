"""`LeftOutSites` gives orders that leave sites out, and computes the URLs that the crawl still owes.

A site is excluded for good, its pending URLs are dropped once, or it is out of scope for a time. An order is in effect
if some machine was seen to know it, or ended a URL because of it. What is owed is computed from the web, the page lines
and the access log: all that the seeds and the fetched pages lead to without what is left out. The pages of the sites
that were fetched before the order have led on.

The order that brings a site back is given by a machine that knows the first, and again as long as some machine knows
only the first: its stamp is then the later one, however far the clocks of the machines are apart.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from kadcrawl.errors import KadcrawlError
from kadcrawl.urls import Partition, origin_of, site_of

from .judges import HEARD_S, Facts, Line, StoppedSites
from .machines import Machine, Machines
from .order_outcomes import DROPPED, LeftOut, dropped_in_vain, odd_outcomes
from .plan import Event, Kind
from .reachable import LinkedPages
from .scene import Scene
from .web_server import Request

Verb = Literal["exclude", "drop", "scope"]
"""The kinds of orders of kadcrawl that leave sites out."""
VERBS: dict[Kind, Verb] = {
    Kind.SITE_EXCLUDE: "exclude",
    Kind.SITE_DROP: "drop",
    Kind.SCOPE: "scope",
    Kind.SCOPE_ADD: "scope",
}
EXCLUDED, REMOVED = "site_excluded", "scope_removed"
REASONS: dict[Verb, str] = {"exclude": EXCLUDED, "drop": DROPPED, "scope": REMOVED}
"""The failure of a URL that ends because of an order of each kind."""


@dataclass(slots=True)
class _SeenOrder:
    """An order that leaves a site out, as seen from outside."""

    verb: Verb
    origins: frozenset[str]
    urls: frozenset[str]
    """The URLs of the site that a crawl of the whole web asks for."""
    at_s: float
    """The instant at which the order was given, or was to be given."""
    giver: Machine | None
    """The machine that was to give the order, or None if the job itself leaves the site out."""
    incarnation: int
    owed: frozenset[str]
    """URLs of the site that finished pages led to before the order."""
    pending: frozenset[str]
    """Those of them that had not ended."""
    all_heard: bool = False
    knew: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """(machine, its incarnation) -> the first and the last look at which it knew the order."""
    until_s: float = inf
    """The instant at which the first machine was told to bring the site back."""
    back_s: float = inf
    """The instant from which all machines know that the site is back."""
    is_over: bool = False
    returner: tuple[Machine, int] | None = None
    """The machine that brings the site back at the moment, and its incarnation."""

    def stopped(self) -> StoppedSites:
        """Return the period without requests, from the order on."""
        giver = self.giver
        stands = self.all_heard or (giver is not None and giver.alive and giver.incarnations == self.incarnation)
        knew = [(number, *times) for (number, _), times in self.knew.items()]
        return StoppedSites(self.origins, self.at_s, self.until_s, self.all_heard, knew, may_be_lost=not stands)

    def left_out(self) -> LeftOut:
        """Return the order as its outcomes are judged."""
        return LeftOut(REASONS[self.verb], self.urls, self.stopped(), self.owed, self.pending)


class LeftOutSites:
    """The sites that are left out in one trial."""

    def __init__(
        self,
        machines: Machines,
        scene: Scene,
        log: Sequence[Request],
        disturbed: Sequence[tuple[float, float]],
    ) -> None:
        """`log` are the requests to the web, and `disturbed` the periods in which faults keep orders from their way."""
        self._machines = machines
        self._log = log
        self._disturbed = disturbed
        self._calm_s = max((until_s for _, until_s in disturbed), default=0.0)
        self._origins = scene.web.origins
        self._kind: Partition = "domain" if scene.job.partition == "domain" else "host"
        self._truth = frozenset(scene.web.truth(scene.job.retries))
        self._due = self._truth.union(scene.refused)
        """URLs of which a crawl that finds them owes a line."""
        self._known = self._due.union(scene.optional)
        self._pages = LinkedPages(scene.web, self._known)
        self._seeds = frozenset([*scene.job.seeds, *scene.streamed]) & self._known
        self._orders: dict[tuple[Verb, str], _SeenOrder] = {}
        """(kind, site) -> the order."""
        for origin in scene.added:
            urls = frozenset(url for url in self._known if origin_of(url) == origin)
            nothing = frozenset[str]()
            left = _SeenOrder("scope", frozenset([origin]), urls, 0.0, None, 0, nothing, nothing, all_heard=True)
            self._orders["scope", self._name(origin, "scope")] = left

    # --- the orders ----------------------------------------------------------------------------------------------

    def begin(self, event: Event, machine: Machine, now: Callable[[], float]) -> Collection[str]:
        """Have a machine leave a site out, if it is part of the swarm. Return the URLs that may fail from now on."""
        verb = VERBS[event.kind]
        site = self._site(event, verb)
        if (verb, site) in self._orders or machine.peer is None or not machine.peer.begun or machine.peer.joining:
            return ()
        origins = frozenset(one for one in self._origins if self._name(one, verb) == site)
        urls = frozenset(url for url in self._known if origin_of(url) in origins)
        lines = list(self._lines())
        found = {url for page in self._followed(lines) for url in self._pages.links(page)}
        # Links that are found while their site is out of scope, or excluded, are not followed.
        unfollowed = {url for (kind, _), one in self._orders.items() if kind != "drop" for url in one.urls}
        owed = found & urls & self._due - unfollowed
        pending = owed - {line.url for line in lines}
        seen = _SeenOrder(
            *(verb, origins, urls, now(), machine, machine.incarnations, frozenset(owed), frozenset(pending))
        )
        self._orders[verb, site] = seen
        machine.host.spawn(self._order(site, machine, seen, now))
        return urls

    def end(self, event: Event) -> None:
        """Have some machine bring a site back into scope."""
        verb = VERBS[event.kind]
        if (seen := self._orders.get((verb, self._site(event, verb)))) is not None:
            seen.is_over = True

    async def _order(self, site: str, machine: Machine, seen: _SeenOrder, now: Callable[[], float]) -> None:
        peer = machine.peer
        assert peer is not None
        with suppress(KadcrawlError):
            match seen.verb:
                case "exclude":
                    missing = await peer.exclude_site(site)
                case "drop":
                    missing = (await peer.drop_site(site)).parts_missing
                case "scope":
                    missing = await peer.remove_scope(site)
            seen.all_heard, seen.at_s = not missing, now()

    async def _bring_back(self, site: str, machine: Machine, seen: _SeenOrder, now: Callable[[], float]) -> None:
        assert machine.peer is not None
        try:
            with suppress(KadcrawlError):
                missing = await machine.peer.add_scope(site)
                # A peer that was not there may come back without the order. One that joins later has it.
                away = any(
                    begun_s <= now() and until_s + HEARD_S >= seen.until_s for begun_s, until_s in self._disturbed
                )
                seen.back_s = max(now(), self._calm_s) + HEARD_S if missing or away else now()
        finally:
            seen.returner = None

    def look(self, now: Callable[[], float]) -> None:
        """Note which machines know an order, and bring back what is to come back."""
        for (verb, site), seen in self._orders.items():
            value = 0.0 if verb == "scope" else 1.0
            live = self._machines.live
            knowing = [machine for machine in live if knows(machine, verb, site, value)]
            if seen.giver is None and not any(knows(machine, verb, site) for machine in live):
                knowing = [one for one in live if one.peer is not None and one.peer.begun and not one.peer.joining]
            if seen.giver is None:
                seen.knew |= dict.fromkeys(((number, 0) for number in self._machines.machines), (-inf, inf))
            for machine in knowing if seen.giver is not None else ():
                run = machine.number, machine.incarnations
                seen.knew[run] = seen.knew.get(run, (now(), now()))[0], now()
            if not seen.is_over:
                continue
            giver, incarnation = seen.returner or (None, 0)
            if giver is not None and giver.alive and giver.incarnations == incarnation:
                continue
            for machine in knowing:
                if not machine.frozen:
                    seen.until_s = min(seen.until_s, now())
                    seen.returner = machine, machine.incarnations
                    machine.host.spawn(self._bring_back(site, machine, seen, now))
                    break

    # --- what is owed --------------------------------------------------------------------------------------------

    def excused(self) -> frozenset[str]:
        """Return the URLs that need not be crawled: those left out, and those that only these lead to."""
        if not self._orders:
            return frozenset()
        lines = list(self._lines())
        orders = self._in_effect(lines)
        if not orders:
            return frozenset()
        ended = {line.url for line in lines if line.failed in (DROPPED, REMOVED)}
        excluded = {url for seen in orders if seen.verb == "exclude" for url in seen.urls}
        removed = [seen for seen in orders if seen.verb == "scope"]
        first_s: dict[str, float] = {}
        for request in self._log if removed else ():
            first_s.setdefault(request.url, request.time)

        def is_left_out(page: str | None, url: str) -> bool:
            if url in ended or url in excluded:
                return True
            found_s = -inf if page is None else first_s.get(page, inf)
            return any(url in seen.urls and found_s <= seen.back_s for seen in removed)

        seeds = frozenset(url for url in self._seeds if not is_left_out(None, url))
        reached = self._pages.reached([*seeds, *self._followed(lines)], through=self._truth, is_left_out=is_left_out)
        return self._known - seeds - reached

    def judged(self, facts: Facts) -> Facts:
        """Return the facts with what was seen of the orders."""
        if not self._orders:
            return facts
        orders = self._in_effect(facts.lines)
        stopped = {verb: [seen.stopped() for seen in orders if seen.verb == verb] for verb in REASONS}
        facts = replace(
            facts,
            excluded=stopped["exclude"],
            removed=stopped["scope"],
            excused=self.excused(),
            odd_outcomes=list(odd_outcomes(facts, [seen.left_out() for seen in self._orders.values()])),
        )
        drops = [seen.left_out() for seen in orders if seen.verb == "drop"]
        return replace(facts, dropped_in_vain=list(dropped_in_vain(facts, drops, self._pages, self._seeds)))

    def _in_effect(self, lines: Iterable[Line]) -> list[_SeenOrder]:
        """Return the orders that some machine has carried out, or may have."""
        ended = {(line.failed, origin_of(line.url)) for line in lines}
        return [
            seen
            for seen in self._orders.values()
            if seen.knew or seen.all_heard or any((REASONS[seen.verb], origin) in ended for origin in seen.origins)
        ]

    def _followed(self, lines: Iterable[Line]) -> list[str]:
        """Return the pages that were fetched to the end, so that their links were followed."""
        fetched = [line for line in lines if line.status is not None and line.url in self._known]
        return [line.url for line in fetched if line.status == self._pages.status(line.url)]

    def _lines(self) -> Iterator[Line]:
        for machine in self._machines.machines.values():
            for line in machine.lines():
                yield Line(line["url"], line["status"], line.get("failed"), machine.number)

    def _site(self, event: Event, verb: Verb) -> str:
        return self._name(self._origins[int(event.amount) % len(self._origins)], verb)

    def _name(self, origin: str, verb: Verb) -> str:
        """Return the name of a site in an order. Those about the scope always name hosts."""
        return site_of(f"{origin}/", "host" if verb == "scope" else self._kind)


def named_site(origins: Sequence[str], event: Event, kind: Partition) -> str:
    """Return the name of the site that an event is about."""
    return site_of(f"{origins[int(event.amount) % len(origins)]}/", kind)


def knows(machine: Machine, kind: str, about: str, value: float = 1.0) -> bool:
    """Return whether a machine knows an order with this value, which is not lifted."""
    peer = machine.peer
    if peer is None or not peer.begun or peer.joining or peer.leaving:
        return False
    orders = peer.runtime.standing_orders.to_wire()
    return any(order.kind == kind and order.about == about and order.value == value for order in orders)


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
