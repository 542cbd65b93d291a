"""Fault plans: events with instants and machines, as data that can be printed, kept, replayed and shortened.

A `Plan` is drawn whole from a seed before anything runs. Every event stands for itself: a lasting event carries its
length, and an event that does not fit the state of its machine (a kill of a dead machine) does nothing. So a plan
without some of its events is still a plan, which `sim/shrink.py` uses.

The promise is that as many simultaneous deaths as the job has copies, less one, lose no data. So no more machines than
that are *exposed* at once (`Plan.exposed_max`).
A machine is exposed from the moment it goes (killed, frozen, cut off, leaving, its disk full) until `RECOVERY_S` after
it is back, or after it went for good. In this time the others make all copies again. A machine that stands still for a
moment, or with all others, is not gone.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple, get_args

import msgspec

from kadcrawl.settings.job import History, Job, PartitionSolver
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.recrawl_checks import CalendarGrain
from kadcrawl.urls import Partition

from .annex import Annex
from .site_treatment import SiteTreatment

Disk = Literal["same", "old", "none"]
"""The disk that a machine starts with: as the power cut left it, as it was at a snapshot, or empty."""

RECOVERY_S = 10.0
"""Seconds that a swarm gets after the loss of a machine before another may go. Noticing a death takes about 6 of
them."""


BRIEF_S = 2.4
"""The longest stop of a single peer that nobody takes for its death."""
DELAY_MOST_S = 6.0
"""The job's longest adaptive delay, if it has one."""
EPOCHS = 4
"""The epochs of fingerprints in the time between two visits to a page."""
WebFault = Literal["silent", "no route", "forbidden"]
"""The fault of a machine's network to the web: no answer, no route, or a peer that may not ask the web's addresses."""
WEB_FAULTS: tuple[WebFault, ...] = get_args(WebFault)
ProxyFault = Literal["refuses", "bad gateway"]
"""The fault of a proxy: it answers 407, which is its own, or 502, which may be the site's."""
PROXY_FAULTS: Mapping[ProxyFault, int] = {"refuses": 407, "bad gateway": 502}
"""The statuses of a proxy with a fault."""
LEAF_FIRST = 5_000
"""The number of the first leaf: above those of machines that join later."""


class Kind(StrEnum):
    """The kinds of events. The unit of `amount` depends on the kind. Lasting kinds use `for_s`."""

    JOIN = "join"
    """The machines, never there before, join."""
    KILL = "kill"
    """A power cut: the disks keep all synced bytes and a random part of the bytes written later."""
    AMBUSH = "ambush"
    """A power cut within `for_s`: after the machines were the only holders of a record for `amount` seconds, else at
    the end."""
    RESTART = "restart"
    """The machines boot again with the disk in `disk`."""
    LEAVE = "leave"
    """The machines are asked to leave."""
    SNAPSHOT = "snapshot"
    """The disks of the machines are copied, for a later restart with the "old" disk."""
    FREEZE = "freeze"
    """The machines stand still for `for_s` and then go on."""
    FULL = "full"
    """The disks of the machines are full for `for_s`."""
    STALL = "stall"
    """Each turn of their disks takes `amount` to twice that many seconds more."""
    SLOW = "slow"
    """The machines read only `amount` bytes/s from other peers."""
    JUMP = "jump"
    """The wall clocks they start with next are `amount` seconds off."""
    PARTITION = "partition"
    """The machines and all others do not reach each other."""
    ONE_WAY = "one_way"
    """Nothing the machines send reaches the others, though they hear them."""
    NO_WEB = "no_web"
    """The machines can make no new connection to the web, in one of the `WEB_FAULTS`: `amount` is its number."""
    LOSS = "loss"
    """Datagrams get lost with probability `amount`, and streams are delayed instead."""
    DUPLICATE = "duplicate"
    """`amount`, a probability, of datagrams arrive twice."""
    DELAY = "delay"
    """Everything takes up to `amount` seconds longer."""
    OUTAGE = "outage"
    """Site number `amount` refuses all pages for `for_s`, with a status that no crawler tries again."""
    RETRY = "retry"
    """A person has the machines order that failed URLs are fetched again. The orders arrive once more after `for_s`."""
    PROXY_DOWN = "proxy_down"
    """Proxy number `amount` answers everything with the status of its fault (`proxy_fault`)."""
    SITE_PAUSE = "site_pause"
    """A person has the machines pause site number `amount`. After `for_s` some machine lets it go on."""
    SITE_EXCLUDE = "site_exclude"
    """A person has the machines exclude site number `amount`, for good."""
    SITE_SLOW = "site_slow"
    """A person has the machines leave site number `amount` alone for `value` seconds after each request. After `for_s`
    some machine lifts the order, or none does if that is 0."""
    SITE_DROP = "site_drop"
    """A person has the machines drop the pending URLs of site number `amount`."""
    SCOPE = "scope"
    """A person has the machines take site number `amount` out of scope. After `for_s` some machine brings it back."""
    SCOPE_ADD = "scope_add"
    """A person has the machines bring site number `amount` into scope, which the job leaves out."""
    SET_DELAY = "set_delay"
    """A person has the machines change the job's delay to `value` seconds. It is lifted as `site_slow` is."""
    SET_PAGES = "set_pages"
    """A person has the machines change the job's limit of pages to `value`, for good."""


LASTING = frozenset(
    {
        Kind.AMBUSH,
        Kind.FREEZE,
        Kind.FULL,
        Kind.STALL,
        Kind.SLOW,
        Kind.PARTITION,
        Kind.ONE_WAY,
        Kind.NO_WEB,
        Kind.LOSS,
        Kind.DUPLICATE,
        Kind.DELAY,
        Kind.OUTAGE,
        Kind.RETRY,
        Kind.PROXY_DOWN,
        Kind.SITE_PAUSE,
        Kind.SITE_SLOW,
        Kind.SCOPE,
        Kind.SET_DELAY,
    }
)


def proxy_fault(number: int) -> ProxyFault:
    """Return the fault of a proxy while it is down: that of every second proxy is in doubt."""
    return tuple(PROXY_FAULTS)[number % len(PROXY_FAULTS)]


SITE_ORDERS = frozenset(
    {
        *(Kind.SITE_PAUSE, Kind.SITE_EXCLUDE, Kind.SITE_DROP, Kind.SCOPE, Kind.SCOPE_ADD, Kind.SITE_SLOW),
        *(Kind.SET_DELAY, Kind.SET_PAGES),
    }
)
"""The orders of a person about sites, and about settings. They are no faults."""
UNDISTURBING = SITE_ORDERS | {
    *(Kind.LOSS, Kind.DELAY, Kind.DUPLICATE, Kind.SLOW, Kind.SNAPSHOT, Kind.JOIN, Kind.NO_WEB, Kind.PROXY_DOWN)
}
"""Events that take no grant of pages away."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One event of a plan."""

    at_s: float
    """Virtual seconds since the world began."""
    kind: Kind
    machines: tuple[int, ...] = ()
    """The numbers of the machines. Events of the whole network have none."""
    for_s: float = 0.0
    amount: float = 0.0
    disk: Disk = "same"
    value: float = 0.0
    """The value of the order of a person."""

    def __str__(self) -> str:
        said = f"{self.at_s:8.3f} s  {self.kind:<9}"
        if self.machines:
            said += " " + ",".join(map(str, self.machines))
        if self.kind is Kind.RESTART:
            said += f" on {self.disk} disk"
        if self.amount:
            said += f" by {self.amount:g}"
        if self.value:
            said += f" to {self.value:g}"
        return said + f" for {self.for_s:.3f} s" if self.for_s else said


class Moment(NamedTuple):
    """The instant at which an event begins or, if it lasts, ends."""

    at_s: float
    begins: bool
    event: Event


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The complete description of a simulated world. The same plan makes the same world."""

    seed: int
    """Of the web, the peers, the network and the disks."""
    peers: int
    """Machines there at the beginning, numbered from 0: they join before the first fault."""
    events: tuple[Event, ...]
    """All events, ordered by instant."""
    delay_s: float = 1.0
    """The job's: seconds between two requests to one site."""
    own_delay_s: float = 2.0
    """The delay in seconds of the sites that ask for a delay of their own."""
    trails: int = 0
    """The number of trails in the web: chains of pages from site to site (`sim/synthetic_web.py`)."""
    balance: Literal["off", "level", "drain", "predictive"] = "off"
    """The job's."""
    solver: PartitionSolver = "exact"
    """The job's, with balance "predictive"."""
    block_urls: int = Job().block_urls
    """The job's heavy block."""
    update_s: float = 2.0
    """The job's: between two looks at the load levels."""
    fetches_max: int = Limits().fetches_max
    """The most requests that a peer may have under way. With few, pages wait for their peer and not for their sites."""
    pages_bytes_max: int = Limits().pages_bytes_max
    """Size at which a peer closes a part of its page log. With few bytes, it closes several."""
    history: History = "exact"
    """The job's."""
    refusing: float = 0.0
    """The share of pages whose first requests get 429 without Retry-After."""
    delay_factor: float = 0.0
    """The job's: factor of an adaptive delay, of at most `DELAY_MOST_S`."""
    partition: Partition = "host"
    """The job's: with `url` the URLs of a host have many owners, and share the clock of the host. With `domain` the
    sites are hosts of a few domains, and the hosts of a domain share a clock."""
    per_ip: int = 0
    """The number of addresses that the sites share, in a job whose delay holds for an address, or 0."""
    streamed: bool = False
    """The scope is the hosts of the seeds. The job names the first of them, and the homes of all sites are streamed."""
    refusals_max: int = Job().refusals_max
    """The job's: refusals in a row after which a site is given up."""
    treatments: tuple[SiteTreatment, ...] = ()
    """The job's rules for single sites."""
    annex: Annex | None = None
    """The annex of a site, and what the job makes of it."""
    max_depth: int | None = None
    """The job's: larger than the depth of each page, so that only the shorter paths travel."""
    max_pages: int | None = None
    """The job's: fewer than the URLs of the web, or far more."""
    max_time_s: float | None = None
    """The job's."""
    recrawl_after_s: float | None = None
    """The job's. A job of fingerprints has epochs of a quarter of it."""
    calendar: CalendarGrain | None = None
    """The unit of the calendar for the epochs of the job's fingerprints, which forget after two of them."""
    boundary_s: float = 0.0
    """The second of the world at which the next of these units begins."""
    proxies: int = 0
    """HTTP proxies through which all peers fetch, if there are any."""
    dead_proxies: int = 0
    """Further proxies of the job that nobody serves."""
    copies: int = Job().copies
    """The job's: the peers that hold each record."""
    leaves: int = 0
    """Machines behind a NAT, numbered from `LEAF_FIRST`: they hang on the others."""
    watched: int | None = None
    """The machine whose dashboard somebody looks at."""

    def __str__(self) -> str:
        copies = "" if self.copies == Job().copies else f" {self.copies} copies,"
        limits = {"pages": self.max_pages, "seconds": self.max_time_s}
        limited = "".join(f" at most {most:g} {unit}," for unit, most in limits.items() if most is not None)
        again = "" if self.recrawl_after_s is None else f" again after {self.recrawl_after_s:g} s,"
        head = (
            f"plan of seed {self.seed}: {self.peers} peers,{copies}{again}{limited} delay {self.delay_s:g} s, "
            f"{len(self.events)} events"
        )
        return "\n".join([head, *map(str, self.events)])

    @property
    def exposed_max(self) -> int:
        """The most machines that may be exposed at once: all holders of a record but one."""
        return self.copies - 1

    @property
    def only_slows(self) -> bool:
        """True if all faults are peers that stand still: all of them together, or too briefly to be missed."""
        stops = [one for one in self.events if one.kind is Kind.FREEZE]
        is_brief = all(one.for_s <= BRIEF_S or len(one.machines) >= self.peers for one in stops)
        return bool(stops) and len(stops) == len(self.events) and is_brief

    @property
    def grain_s(self) -> float | None:
        """The seconds of an epoch of the job's fingerprints, if they expire."""
        if self.history == "exact" or self.recrawl_after_s is None:
            return None
        return self.recrawl_after_s / EPOCHS

    @property
    def over_s(self) -> float:
        """The instant of the end of the last event."""
        return max((event.at_s + event.for_s for event in self.events), default=0.0)

    @property
    def added_sites(self) -> tuple[int, ...]:
        """The numbers of the sites that the job leaves out until a person brings them into scope."""
        return tuple(int(event.amount) for event in self.events if event.kind is Kind.SCOPE_ADD)

    def moments(self) -> list[Moment]:
        """Return when events begin and end, in order."""
        begun = [Moment(event.at_s, True, event) for event in self.events]
        ended = [Moment(event.at_s + event.for_s, False, event) for event in self.events if event.kind in LASTING]
        return sorted([*begun, *ended], key=lambda moment: moment.at_s)

    def without(self, taken: frozenset[int]) -> "Plan":
        """Return the plan less the events at these indices."""
        left = tuple(one for at, one in enumerate(self.events) if at not in taken)
        return msgspec.structs.replace(self, events=left)

    def delayed(self, delay_s: float | None) -> "Plan":
        """Return the same plan for a job with this delay. None keeps the plan's delay."""
        return self if delay_s is None else msgspec.structs.replace(self, delay_s=delay_s)

    def kept_by(self, history: History) -> "Plan":
        """Return the same plan for a job with this history. A job of fingerprints retries and streams nothing,
        and counts no URLs of a site."""
        if history == "exact":
            return self
        left_out = {Kind.OUTAGE, Kind.RETRY}
        if self.recrawl_after_s is not None or self.calendar is not None:
            left_out.add(Kind.JUMP)  # A peer whose clock is hours off forgets all, or what it alone has finished.
            left_out.add(Kind.SET_PAGES)  # Under a higher limit it rests until it has forgotten all, perhaps for a day.
        events = tuple(one for one in self.events if one.kind not in left_out)
        treatments = tuple(one for one in self.treatments if one.pages_max is None)
        return msgspec.structs.replace(self, events=events, history=history, treatments=treatments, streamed=False)

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

    @classmethod
    def from_json(cls, text: bytes) -> "Plan":
        """Return the plan in a JSON text. Raises msgspec.DecodeError for any other text."""
        return msgspec.json.decode(text, type=cls)
