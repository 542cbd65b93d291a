"""Sites that a person pauses for a time, by an order to any machine, and what is seen of the orders.

The order to go on is given by a machine that knows the pause: its stamp is then the later one, however far the clocks
of the machines are apart. It is given again as long as some machine knows only the pause.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from kadcrawl.errors import KadcrawlError
from kadcrawl.settings.job import Job
from kadcrawl.urls import Partition, site_of

from .excluded_sites import knows, named_site
from .judges import StoppedSites
from .machines import Machine, Machines
from .plan import SITE_ORDERS, Event, Kind

UNDISTURBING = SITE_ORDERS | {Kind.RETRY, Kind.OUTAGE, Kind.SNAPSHOT, Kind.NO_WEB, Kind.STALL}
"""Events that keep no order from its way."""


class SitePauses:
    """The pauses of one trial."""

    def __init__(self, machines: Machines, origins: Sequence[str], job: Job, events: Iterable[Event]) -> None:
        self._machines = machines
        self._origins = origins
        self._kind: Partition = "domain" if job.partition == "domain" else "host"
        self._given: dict[str, tuple[float, Machine, int, bool]] = {}
        """Site -> (instant, giver, its incarnation, whether all have heard) of a pause that stands."""
        self._over: set[str] = set()
        """The sites that are to go on."""
        self._ordering: dict[str, tuple[Machine, int]] = {}
        """Site -> the machine that gives the order to go on, and its incarnation."""
        self._knew: dict[tuple[str, int, int], tuple[float, float]] = {}
        """(site, machine, its incarnation) -> the first and the last look at which it knew a pause."""
        self.seen: list[StoppedSites] = []
        """The pauses that are over."""
        self.disturbed = [(one.at_s, one.at_s + one.for_s) for one in events if one.kind not in UNDISTURBING]
        """When faults may keep an order from its way."""

    def begin(self, event: Event, machine: Machine | None, now: Callable[[], float]) -> None:
        """Have a machine pause a site, if it is part of the swarm."""
        if machine is not None and machine.alive and machine.peer is not None and machine.peer.begun:
            machine.host.spawn(self._pause(named_site(self._origins, event, self._kind), machine, now))

    def end(self, event: Event, now: float) -> None:
        """Have the site of an event go on."""
        site = named_site(self._origins, event, self._kind)
        self._over.add(site)
        if site in self._given:
            from_s, giver, incarnation, all_heard = self._given.pop(site)
            if all_heard or (giver.alive and giver.incarnations == incarnation):
                origins = frozenset(one for one in self._origins if site_of(f"{one}/", self._kind) == site)
                knew = [(number, *times) for (one, number, _), times in self._knew.items() if one == site]
                self.seen.append(StoppedSites(origins, from_s, now, all_heard, knew))

    def look(self, now: float) -> None:
        """Note which machines know a pause, and give the order to go on where a machine knows one that is over."""
        for site in self._given:
            for machine in self._machines.live:
                if knows(machine, "pause", site):
                    run = site, machine.number, machine.incarnations
                    self._knew[run] = self._knew.get(run, (now, now))[0], now
        for site in self._over:
            giver, incarnation = self._ordering.get(site, (None, 0))
            if giver is not None and giver.alive and giver.incarnations == incarnation:
                continue
            for machine in self._machines.live:
                if not machine.frozen and knows(machine, "pause", site):
                    self._ordering[site] = machine, machine.incarnations
                    machine.host.spawn(self._go_on(site, machine))
                    break

    async def _pause(self, site: str, machine: Machine, now: Callable[[], float]) -> None:
        assert machine.peer is not None
        with suppress(KadcrawlError):
            missing = await machine.peer.pause_site(site)
            if site not in self._over:
                self._given[site] = now(), machine, machine.incarnations, not missing

    async def _go_on(self, site: str, machine: Machine) -> None:
        assert machine.peer is not None
        try:
            with suppress(KadcrawlError):
                await machine.peer.resume_site(site)
        finally:
            self._ordering.pop(site, None)
