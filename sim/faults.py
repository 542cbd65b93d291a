"""The faults of a user's test, one class each. `events` turns them into the events of a `Plan`.

Peers are numbered from 0. All peers are there from the beginning, except those that `Join`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kadcrawl.settings.job import Job

from .draw import draw
from .plan import WEB_FAULTS, Disk, Event, Kind, WebFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A power cut ends a peer. Its disk loses a part of the unsynced bytes."""

    at_s: float
    peer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A killed peer starts again: on its disk as it was left, on an `old` copy, or on an empty one (`none`)."""

    at_s: float
    peer: int
    disk: Disk = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A peer stands still for `for_s` seconds and then goes on, as after SIGSTOP and SIGCONT."""

    at_s: float
    peer: int
    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FullDisk:
    """The disk of a peer has no room for `for_s` seconds."""

    at_s: float
    peer: int
    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """These peers and all others do not reach each other for `for_s` seconds.

    With `one_way` they hear the others, but are not heard.
    """

    at_s: float
    peers: Sequence[int]
    for_s: float
    one_way: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoWeb:
    """These peers can make no connection to the web for `for_s` seconds, and reach each other as ever."""

    at_s: float
    peers: Sequence[int]
    for_s: float
    fault: WebFault = "no route"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossyNetwork:
    """The network loses, repeats and delays the peers' packets for `for_s` seconds."""

    at_s: float
    for_s: float
    loss: float = 0.05
    """Share of the datagrams that get lost. Streams are delayed instead."""
    duplicates: float = 0.0
    """Share of the datagrams that arrive twice."""
    delay_s: float = 0.0
    """Everything takes up to so much longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A new peer joins the swarm. Its number is above those of all others."""

    at_s: float
    peer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A peer hands its range over and leaves the swarm."""

    at_s: float
    peer: int


Fault: TypeAlias = Kill | Restart | Freeze | FullDisk | Partition | NoWeb | LossyNetwork | Join | Leave | Event
"""An element of the list of faults. An `Event` is an event of the simulator's own plans."""


def random_faults(seed: int, peers: int, copies: int = Job().copies) -> list[Fault]:
    """Return faults drawn from a seed that expose fewer peers at a time than the job keeps copies."""
    return list(draw(seed, peers, copies=copies).events)


def events(faults: Iterable[Fault], peers: int) -> tuple[Event, ...]:
    """Return the events of a plan for `peers` peers. Raises ValueError for a fault of a peer that cannot be there."""
    found = sorted((event for fault in faults for event in _events_of(fault)), key=lambda event: event.at_s)
    known = set(range(peers))
    for event in found:
        if event.kind is Kind.JOIN:
            if again := known & {*event.machines}:
                raise ValueError(f"peer {min(again)} is there already; give Join a new number, from {peers} on")
            known |= {*event.machines}
        elif strange := {*event.machines} - known:
            raise ValueError(
                f"there is no peer {min(strange)} at {event.at_s:g} s: of {peers} peers the numbers are 0 to "
                f"{peers - 1}, and of those that Join their own"
            )
        if event.at_s < 0 or event.for_s < 0:
            raise ValueError(f"a fault is at no time before 0 and lasts no less than 0 seconds: {event}")
    return tuple(found)


def _events_of(fault: Fault) -> Iterator[Event]:
    match fault:
        case Kill():
            yield Event(fault.at_s, Kind.KILL, (fault.peer,))
        case Restart():
            yield Event(fault.at_s, Kind.RESTART, (fault.peer,), disk=fault.disk)
        case Freeze():
            yield Event(fault.at_s, Kind.FREEZE, (fault.peer,), for_s=fault.for_s)
        case FullDisk():
            yield Event(fault.at_s, Kind.FULL, (fault.peer,), for_s=fault.for_s)
        case Partition():
            kind = Kind.ONE_WAY if fault.one_way else Kind.PARTITION
            yield Event(fault.at_s, kind, tuple(fault.peers), for_s=fault.for_s)
        case NoWeb():
            yield Event(fault.at_s, Kind.NO_WEB, tuple(fault.peers), fault.for_s, WEB_FAULTS.index(fault.fault))
        case LossyNetwork():
            amounts = {Kind.LOSS: fault.loss, Kind.DUPLICATE: fault.duplicates, Kind.DELAY: fault.delay_s}
            yield from (Event(fault.at_s, kind, (), fault.for_s, amount) for kind, amount in amounts.items() if amount)
        case Join():
            yield Event(fault.at_s, Kind.JOIN, (fault.peer,), disk="none")
        case Leave():
            yield Event(fault.at_s, Kind.LEAVE, (fault.peer,))
        case Event():
            yield fault
        case _:
            raise ValueError(f"{fault!r} is no fault; the faults are Kill, Restart, Freeze, Partition and so on")
