"""Fault plans: what befalls which machine when, as data that can be printed, kept, replayed and made shorter.

A `Plan` is drawn whole from a seed before anything runs. Every event stands for itself: one that lasts carries its
length, and one that finds its machine in no state for it (a kill of a dead machine) does nothing. So any events may be
taken out of a plan and the rest is a plan still, which is what `sim.shrink` does.

The promise is that nothing is lost whatever two peers die at once; so no more than `EXPOSED_MAX` machines are *exposed*
at once. A machine is exposed from the moment it goes (killed, frozen, cut off, leaving, its disk full) until
`SETTLE_S` after it is back, or after it went for good: the time the others are given to make three copies again.
"""

from enum import StrEnum
from typing import Literal, NamedTuple

import msgspec

from kadcrawl.settings.job import History, Job
from kadcrawl.settings.limits import Limits

Disk = Literal["same", "old", "none"]
"""What a machine finds when it starts: its disk as the power cut left it; as it was at a snapshot; an empty one."""

EXPOSED_MAX = 2
RECOVERY_S = 10.0
"""How long a swarm that has lost a machine is given before another may go; noticing takes about 6 of them."""


LEAF_FIRST = 5_000
"""The number of the first leaf: above those of machines that join later."""


class Kind(StrEnum):
    """What can happen. `amount` is in the unit named; kinds that last have `for_s`."""

    JOIN = "join"
    """The machines, never there before, join."""
    KILL = "kill"
    """Power cut: the disks keep what was synced and a random part of what was written after."""
    AMBUSH = "ambush"
    """Power cut, within `for_s`: as soon as they have held for `amount` seconds what no other has, else at its end."""
    RESTART = "restart"
    """They come back, on the `disk` named."""
    LEAVE = "leave"
    """They are asked to leave."""
    SNAPSHOT = "snapshot"
    """Their disks are copied, for a later restart on the `old` one."""
    FREEZE = "freeze"
    """They stand still for `for_s`, then go on as if nothing had been."""
    FULL = "full"
    """Their disks have no room for `for_s`."""
    STALL = "stall"
    """Each turn of their disks takes `amount` to twice that many seconds more."""
    SLOW = "slow"
    """They read from other peers only `amount` bytes/s."""
    JUMP = "jump"
    """The wall clocks they start with next are `amount` seconds off."""
    PARTITION = "partition"
    """The machines and all others do not reach each other."""
    ONE_WAY = "one_way"
    """Nothing the machines send reaches the others, though they hear them."""
    LOSS = "loss"
    """`amount`, a probability, of datagrams get lost; streams of bytes are held up instead."""
    DUPLICATE = "duplicate"
    """`amount`, a probability, of datagrams arrive twice."""
    DELAY = "delay"
    """Everything takes up to `amount` seconds longer."""


LASTING = frozenset(
    {
        Kind.AMBUSH,
        Kind.FREEZE,
        Kind.FULL,
        Kind.STALL,
        Kind.SLOW,
        Kind.PARTITION,
        Kind.ONE_WAY,
        Kind.LOSS,
        Kind.DUPLICATE,
        Kind.DELAY,
    }
)


class Event(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing that happens."""

    at_s: float
    """Virtual seconds since the world began."""
    kind: Kind
    machines: tuple[int, ...] = ()
    """Their numbers; none for what befalls the whole network."""
    for_s: float = 0.0
    amount: float = 0.0
    disk: Disk = "same"

    def __str__(self) -> str:
        said = f"{self.at_s:8.3f} s  {self.kind:<9}"
        if self.machines:
            said += " " + ",".join(map(str, self.machines))
        if self.kind is Kind.RESTART:
            said += f" on {self.disk} disk"
        if self.amount:
            said += f" by {self.amount:g}"
        return said + f" for {self.for_s:.3f} s" if self.for_s else said


class Moment(NamedTuple):
    """The instant at which an event begins or, if it lasts, ends."""

    at_s: float
    begins: bool
    event: Event


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a simulated world is made from; the same plan makes the same world."""

    seed: int
    """Of the web, the peers, the network and the disks."""
    peers: int
    """Machines there at the beginning, numbered from 0: they join before the first fault."""
    events: tuple[Event, ...]
    """In the order in which they happen."""
    delay_s: float = 1.0
    """The job's: seconds between two requests to one site."""
    own_delay_s: float = 2.0
    """What those sites ask for that ask for a delay of their own."""
    trails: int = 0
    """Of the web: chains of pages from site to site (`sim.synthetic_web`)."""
    balance: Literal["off", "level", "drain"] = "off"
    """The job's."""
    block_urls: int = Job().block_urls
    """The job's heavy block."""
    update_s: float = 2.0
    """The job's: between two looks at the load levels."""
    fetches_max: int = Limits().fetches_max
    """Requests a peer may have under way; with few, pages wait for it and not for their sites."""
    history: History = "exact"
    """The job's: with fingerprints nothing is lent, and there are no leaves."""
    leaves: int = 0
    """Machines behind a NAT, numbered from `LEAF_FIRST`: they hang on the others."""

    def __str__(self) -> str:
        head = f"plan of seed {self.seed}: {self.peers} peers, delay {self.delay_s:g} s, {len(self.events)} events"
        return "\n".join([head, *map(str, self.events)])

    @property
    def over_s(self) -> float:
        """The instant after which nothing befalls anybody."""
        return max((event.at_s + event.for_s for event in self.events), default=0.0)

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
        """Return the same plan for a job with this delay; with its own, for None."""
        return self if delay_s is None else msgspec.structs.replace(self, delay_s=delay_s)

    def kept_by(self, history: History) -> "Plan":
        """Return the same plan for a job with this history."""
        if history == "exact":
            return self
        return msgspec.structs.replace(self, history=history, balance="off", leaves=0)

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

    @classmethod
    def from_json(cls, text: bytes) -> "Plan":
        """Raises msgspec.DecodeError for what is no plan."""
        return msgspec.json.decode(text, type=cls)
