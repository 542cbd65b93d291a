"""Orders of a person that stand for a time, given to any machine, and what is seen of them: sites that are slowed down.

The order is lifted by a machine that knows it: the stamp of the lift is then the later one, however far the clocks of
the machines are apart. It is lifted again as long as some machine knows only the order.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

from kadcrawl.errors import KadcrawlError
from kadcrawl.peer import Peer
from kadcrawl.settings.job import Job
from kadcrawl.urls import Partition, site_of

from .excluded_sites import named_site
from .judges import HEARD_S, SlowedSites
from .machines import Machine, Machines
from .plan import Event, Kind
from .site_pauses import UNDISTURBING

Key = tuple[str, str]
"""The kind of an order, and the site that the order is about: an order takes the place of another with the same key."""


@dataclass(slots=True)
class _Given:
    """One order that a machine has given."""

    value: float
    from_s: float
    """The instant at which the giver knew how far the order had come."""
    giver: Machine
    incarnation: int
    all_heard: bool
    """The giver says that all peers have heard of the order."""
    knew: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """(Machine, its incarnation) -> the first and the last look at which the machine knew the order."""

    @property
    def is_sure(self) -> bool:
        """All peers come to hear of the order: all have, or its giver still tells them."""
        return self.all_heard or (self.giver.alive and self.giver.incarnations == self.incarnation)


class PersonOrders:
    """The orders of one trial by which sites are left alone for longer."""

    def __init__(
        self, machines: Machines, origins: Sequence[str], job: Job, events: Iterable[Event], now: Callable[[], float]
    ) -> None:
        self._machines = machines
        self._origins = origins
        self._now = now
        self._kind: Partition = "domain" if job.partition == "domain" else "host"
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
        """Have the order of an event lifted. An event without a length stands to the end."""
        if not event.for_s:
            return
        key = self._key(event)
        self._over.setdefault(key, inf)
        if (order := self._standing.pop(key, None)) is not None:
            self._ended.append(self._seen(key, order, self._now()))

    def look(self, now: float) -> None:
        """Note which machines know an order, and have it lifted where a machine knows one that is over."""
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

    @property
    def missed(self) -> list[str]:
        """Sentences about machines that have not heard of an order."""
        return list(self._missed.values())

    @property
    def seen(self) -> list[SlowedSites]:
        """The orders that were given, lifted or not."""
        return [*self._ended, *(self._seen(key, order, inf) for key, order in self._standing.items())]

    async def _give(self, key: Key, value: float, machine: Machine) -> None:
        peer = machine.peer
        assert peer is not None
        with suppress(KadcrawlError):
            missing = await _order(peer, key, value)
            if key not in self._over:
                self._standing[key] = _Given(value, self._now(), machine, machine.incarnations, not missing)

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
        return SlowedSites(
            *(origins, order.from_s, until_s, order.all_heard, order.value, knew), may_be_lost=not order.is_sure
        )

    def _key(self, event: Event) -> Key:
        assert event.kind is Kind.SITE_SLOW
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
    """Have a peer give or lift an order, and return the number of parts of the swarm that have not heard of it."""
    return await peer.slow_site(key[1], value)
