"""Orders of a person that stand for a time, given to any machine, and what is seen of them.

They slow sites down, or change the delay or the limit of pages of the job.

The order is lifted by a machine that knows it: the stamp of the lift is then the later one, however far the clocks of
the machines are apart. It is lifted again as long as some machine knows only the order.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf

from kadcrawl.errors import KadcrawlError
from kadcrawl.peer import Peer
from kadcrawl.urls import Partition, site_of

from .excluded_sites import named_site
from .judges import HEARD_S, Facts, SlowedSites
from .machines import Machine, Machines
from .observer import AMPLE
from .plan import Event, Kind
from .scene import Scene
from .site_pauses import UNDISTURBING

Key = tuple[str, str]
"""The kind of an order, and its site or setting: an order takes the place of another with the same key."""
PAGES_KEY: Key = ("set", "max-pages")
GRANTED_S = 5.0
"""Seconds after which no grant is under way that was decided on before a lower limit was known."""


@dataclass(slots=True)
class _Given:
    """One order that a machine has given."""

    value: float
    from_s: float
    """The instant at which the giver knew how far the order had come, or at which a person gave it before."""
    giver: Machine
    incarnation: int
    is_given: bool = False
    """The giver has said how far the order has come."""
    all_heard: bool = False
    """The giver says that all peers have heard of the order."""
    knew: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """(Machine, its incarnation) -> the first and the last look at which the machine knew the order."""

    @property
    def is_sure(self) -> bool:
        """All peers come to hear of the order: all have, or its giver still tells them."""
        is_told = self.giver.alive and self.giver.incarnations == self.incarnation
        return self.is_given and (self.all_heard or is_told)


class PersonOrders:
    """The orders of one trial that slow sites down, or change settings of the job."""

    def __init__(self, machines: Machines, scene: Scene, events: Iterable[Event], now: Callable[[], float]) -> None:
        self._machines = machines
        self._origins = scene.web.origins
        self._ruled = frozenset(origin for origin, one in scene.treatments.items() if one.delay_s is not None)
        """The sites whose delay is not that of the job."""
        self._now = now
        self._kind: Partition = "domain" if scene.job.partition == "domain" else "host"
        self._granted: int | None = None
        """The pages granted `GRANTED_S` after all knew another limit, or None before."""
        self._standing: dict[Key, _Given] = {}
        self._over: dict[Key, float] = {}
        """The orders that are to be lifted -> the instant at which a machine has done so, or infinity."""
        self._lifting: dict[Key, tuple[Machine, int]] = {}
        """Order -> the machine that lifts it, and its incarnation."""
        self._ended: list[SlowedSites] = []
        self._begun: dict[tuple[int, int], float] = {}
        """(Machine, its incarnation) -> the first look at which it was part of the swarm."""
        self._missed: dict[tuple[Key, int], str] = {}
        self.disturbed = [(one.at_s, one.at_s + one.for_s) for one in events if one.kind not in UNDISTURBING]
        """When faults may keep an order from its way."""

    def begin(self, event: Event, machine: Machine | None) -> None:
        """Have a machine give the order of an event, if it is part of the swarm."""
        if machine is not None and machine.alive and _member(machine) is not None:
            machine.host.spawn(self._give(self._key(event), event.value, machine))

    def end(self, event: Event) -> None:
        """Have the order of an event lifted. The order of an event without a length stands to the end."""
        if not event.for_s:
            return
        key = self._key(event)
        self._over.setdefault(key, inf)
        if (order := self._standing.pop(key, None)) is not None:
            self._ended.append(self._seen(key, order, self._now()))

    def look(self, now: float) -> None:
        """Note which machines know an order, and have it lifted where a machine knows one that is over."""
        self._see_grants(now)
        members = [(one, peer) for one in self._machines.live if (peer := _member(one)) is not None]
        for machine, _ in members:
            self._begun.setdefault((machine.number, machine.incarnations), now)
        for key, order in self._standing.items():
            for machine, peer in members:
                run = machine.number, machine.incarnations
                if _value(peer, key) == order.value:
                    order.knew[run] = order.knew.get(run, (now, now))[0], now
                elif order.is_sure and now > self._heard_by(run, order.from_s, now):
                    self._note(key, run[0], f"has not heard at {now:.3f} s of the order of {order.from_s:.3f} s about")
        for key, lifted_s in self._over.items():
            knowing = [one for one, peer in members if _value(peer, key) is not None and not one.host.frozen]
            for machine in knowing:
                if now > self._heard_by((machine.number, machine.incarnations), lifted_s, now):
                    self._note(key, machine.number, f"has not heard at {now:.3f} s of the lift at {lifted_s:.3f} s of")
            giver, incarnation = self._lifting.get(key, (None, 0))
            is_under_way = giver is not None and giver.alive and giver.incarnations == incarnation
            if knowing and not is_under_way:
                self._lifting[key] = knowing[0], knowing[0].incarnations
                knowing[0].host.spawn(self._lift(key, knowing[0]))

    def judged(self, facts: Facts) -> Facts:
        """Return the facts with what was seen of the orders."""
        standing = [self._seen(key, order, inf) for key, order in self._standing.items() if key != PAGES_KEY]
        unheard = [*facts.unheard, *self._missed.values()]
        facts = replace(facts, slowed=[*self._ended, *standing], unheard=unheard)
        order = self._standing.get(PAGES_KEY)
        if order is None or facts.max_pages is None:
            return facts
        pages = int(order.value)
        if pages < facts.max_pages:
            granted = None if self._granted is None else max(pages, self._granted)
            return replace(facts, granted=granted, pages_enough=False)
        # An order that died with its giver has raised the limit, or has not.
        is_enough = facts.pages_enough and order.is_sure and pages <= len(facts.truth)
        cuts_off = facts.max_time_s is not None or not order.is_sure or pages < AMPLE * len(facts.truth)
        return replace(facts, max_pages=pages, pages_enough=is_enough, cuts_off=cuts_off)

    def _see_grants(self, now: float) -> None:
        """Note how many pages are granted once all machines know another limit."""
        order = self._standing.get(PAGES_KEY)
        if order is None or self._granted is not None or not order.all_heard:
            return
        over_s = [until_s for from_s, until_s in self.disturbed if from_s <= now and until_s >= order.from_s]
        if now > (max(over_s) + HEARD_S if over_s else order.from_s) + GRANTED_S:
            peers = [machine.peer for machine in self._machines.live if machine.peer is not None and machine.peer.begun]
            known: dict[bytes, int] = {}
            for peer in peers:
                for one, total in peer.components.crawl_limits.pages.known.items():
                    known[one] = max(known.get(one, 0), total)
            known |= {peer.contact.id: peer.components.crawl_limits.pages.granted for peer in peers}
            self._granted = sum(known.values())

    async def _give(self, key: Key, value: float, machine: Machine) -> None:
        peer = machine.peer
        assert peer is not None
        order = _Given(value, self._now(), machine, machine.incarnations)
        if key not in self._over:
            self._standing[key] = order
        with suppress(KadcrawlError):
            missing = await _order(peer, key, value)
            order.from_s, order.is_given, order.all_heard = self._now(), True, not missing

    async def _lift(self, key: Key, machine: Machine) -> None:
        peer = machine.peer
        assert peer is not None
        try:
            with suppress(KadcrawlError):
                await _order(peer, key, None)
                self._over[key] = min(self._over[key], self._now())
        finally:
            self._lifting.pop(key, None)

    def _heard_by(self, run: tuple[int, int], given_s: float, now: float) -> float:
        """Return the instant at which a machine must have heard of an order."""
        over_s = [until_s for from_s, until_s in self.disturbed if from_s <= now and until_s >= given_s]
        return max(given_s, self._begun[run], *over_s) + HEARD_S

    def _note(self, key: Key, number: int, what: str) -> None:
        self._missed.setdefault((key, number), f"{number} {what} {key[1]}")

    def _seen(self, key: Key, order: _Given, until_s: float) -> SlowedSites:
        origins = frozenset(one for one in self._origins if site_of(f"{one}/", self._kind) == key[1])
        knew = [(number, *times) for (number, _), times in order.knew.items()]
        if key[0] == "set":
            origins = frozenset(self._origins) - self._ruled
        return SlowedSites(
            *(origins, order.from_s, until_s, order.all_heard, order.value, knew), may_be_lost=not order.is_sure
        )

    def _key(self, event: Event) -> Key:
        if event.kind is Kind.SET_PAGES:
            return PAGES_KEY
        if event.kind is Kind.SET_DELAY:
            return "set", "delay"
        return "delay", named_site(self._origins, event, self._kind)


def _member(machine: Machine) -> Peer | None:
    """Return the peer of a machine that is part of the swarm, or None."""
    peer = machine.peer
    is_member = peer is not None and peer.begun and not peer.joining and not peer.leaving
    return peer if is_member and not machine.disk.full and not machine.host.frozen else None


def _value(peer: Peer, key: Key) -> float | None:
    """Return the value of an order that stands as far as a peer knows, or None."""
    return next((one.value for one in peer.orders if (one.kind, one.about) == key), None)


async def _order(peer: Peer, key: Key, value: float | None) -> int:
    """Have a peer give or lift an order, and return how many parts of the swarm have not heard."""
    kind, about = key
    return await (peer.change_setting(about, value) if kind == "set" else peer.slow_site(about, value))
