"""Fault plans: what befalls which machine when, as data that can be printed, kept, replayed and made shorter.

A `Plan` is drawn whole from a seed before anything runs. Every event stands for itself: one that lasts carries its
length, and one that finds its machine in no state for it (a kill of a dead machine) does nothing. So any events may be
taken out of a plan and the rest is a plan still, which is what `sim.shrink` does.

The promise is that nothing is lost whatever two peers die at once; so no more than `EXPOSED_MAX` machines are *exposed*
at once. A machine is exposed from the moment it goes (killed, frozen, cut off, leaving, its disk full) until
`SETTLE_S` after it is back, or after it went for good: the time the others are given to make three copies again.
"""

from collections.abc import Callable
from enum import StrEnum
from random import Random
from typing import Literal, NamedTuple

import msgspec

Disk = Literal["same", "old", "none"]
"""What a machine finds when it starts: its disk as the power cut left it; as it was at a snapshot; an empty one."""

EXPOSED_MAX = 2
SETTLE_S = 10.0
"""How long a swarm that has lost a machine is given before another may go; noticing takes about 6 of them."""
FAULTS_FROM_S = 2.0
FAULTS_UNTIL_S = 28.0
"""Faults begin within this time; crawls of the sizes simulated here take as long."""
GAP_S = 1.6
"""Mean time between two faults."""
DISKS: tuple[Disk | None, ...] = ("same", "old", "none", None)
DISK_WEIGHTS = (50, 20, 12, 18)
"""How often a killed machine comes back on which disk, or not at all."""
TOGETHER_S = 0.05
"""Two kills this close find nobody repaired in between."""


class Kind(StrEnum):
    """What can happen. `amount` is in the unit named; kinds that last have `for_s`."""

    JOIN = "join"
    """The machines, never there before, join."""
    KILL = "kill"
    """Power cut: the disks keep what was synced and a random part of what was written after."""
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
    {Kind.FREEZE, Kind.FULL, Kind.SLOW, Kind.PARTITION, Kind.ONE_WAY, Kind.LOSS, Kind.DUPLICATE, Kind.DELAY}
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

    def __str__(self) -> str:
        head = f"plan of seed {self.seed}: {self.peers} peers, {len(self.events)} events"
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
        return Plan(self.seed, self.peers, tuple(one for at, one in enumerate(self.events) if at not in taken))

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

    @classmethod
    def from_json(cls, text: bytes) -> "Plan":
        """Raises msgspec.DecodeError for what is no plan."""
        return msgspec.json.decode(text, type=cls)


def draw(seed: int, peers: int, *, faults: bool = True) -> Plan:
    """Return the plan of a seed; without `faults` nothing happens in it."""
    return Plan(seed, peers, tuple(_Drawing(seed, peers).events()) if faults else ())


class _Drawing:
    """One plan in the making: who stands, who is exposed until when."""

    def __init__(self, seed: int, peers: int) -> None:
        self._random = Random(f"plan {seed} {peers}")
        self._machines = list(range(peers))
        """Those that exist and are to be up in the end."""
        self._next_number = peers
        self._standing_min = max(2, peers // 2)
        self._joiners_max = max(2, peers // 2)
        self._busy_until: dict[int, float] = {}
        """Machine -> the instant from which it may be chosen again."""
        self._exposures: list[float] = []
        """The instants at which exposures end."""
        self._events: list[Event] = []
        self._parted_until = 0.0

    def events(self) -> list[Event]:
        choices: dict[Callable[[float], None], int] = {
            self._kill: 30,
            self._kill_two: 20,
            self._join: 10,
            self._join_and_kill: 8,
            self._leave: 8,
            self._leave_and_kill: 6,
            self._freeze: 10,
            self._partition: 12,
            self._full: 4,
            self._slow: 4,
            self._weather: 12,
        }
        at_s = FAULTS_FROM_S + self._random.expovariate(1 / GAP_S)
        while at_s < FAULTS_UNTIL_S:
            [happens] = self._random.choices(list(choices), list(choices.values()))
            happens(at_s)
            at_s += self._random.expovariate(1 / GAP_S)
        return sorted(self._events, key=lambda event: event.at_s)

    # --- what happens, if there is room for it at that moment

    def _kill(self, at_s: float) -> None:
        for machine in self._chosen(1, at_s):
            self._power_cut((machine,), at_s)

    def _kill_two(self, at_s: float) -> None:
        chosen = self._chosen(2, at_s)
        if chosen:
            apart_s = self._random.choice((0.0, TOGETHER_S, 1.0, 5.0)) * self._random.random()
            if apart_s == 0.0:
                self._power_cut(chosen, at_s)
            else:
                self._power_cut(chosen[:1], at_s)
                self._power_cut(chosen[1:], at_s + apart_s)

    def _join(self, at_s: float) -> None:
        self._newcomers(self._random.choice((1, 1, 2)), at_s)

    def _join_and_kill(self, at_s: float) -> None:
        """A newcomer asks for its range, and meanwhile one that takes part in that goes."""
        soon_s = at_s + self._random.uniform(0.05, 2.0)
        victims = self._chosen(1, soon_s)
        newcomers = self._newcomers(1, at_s)
        if victims and newcomers:
            self._power_cut(self._random.choice((victims, newcomers)), soon_s)

    def _leave(self, at_s: float) -> None:
        for machine in self._chosen(1, at_s):
            self._happen(at_s, Kind.LEAVE, (machine,))
            self._gone((machine,), at_s)

    def _leave_and_kill(self, at_s: float) -> None:
        for machine in self._chosen(1, at_s):
            self._happen(at_s, Kind.LEAVE, (machine,))
            self._power_cut((machine,), at_s + self._random.uniform(0.05, 2.0))

    def _freeze(self, at_s: float) -> None:
        chosen = self._chosen(self._random.choice((1, 1, 2)), at_s)
        if chosen:
            for_s = self._random.choice((1.0, 4.0, 10.0)) * self._random.uniform(0.5, 1.0)
            self._last(at_s, Kind.FREEZE, chosen, for_s)

    def _full(self, at_s: float) -> None:
        chosen = self._chosen(1, at_s)
        if chosen:
            self._last(at_s, Kind.FULL, chosen, self._random.uniform(0.5, 6.0))

    def _partition(self, at_s: float) -> None:
        """Cut the swarm in two: a few from the rest, or halves, of which each can spare one machine."""
        half = len(self._machines) // 2
        cost = 1 if half > EXPOSED_MAX else EXPOSED_MAX
        if at_s < self._parted_until or self._room(at_s) < cost:
            return
        kind = self._random.choice((Kind.PARTITION, Kind.PARTITION, Kind.ONE_WAY))
        for_s = self._random.uniform(1.0, 12.0)
        if self._random.random() < 0.5:
            few = self._chosen(self._random.choice((1, 2)), at_s)
            if few:
                self._last(at_s, kind, few, for_s)
        else:
            self._happen(at_s, kind, sorted(self._random.sample(self._machines, half)), for_s=for_s)
            self._exposures += [at_s + for_s + SETTLE_S] * cost
        self._parted_until = at_s + for_s + SETTLE_S

    def _slow(self, at_s: float) -> None:
        machines = (self._random.choice(self._machines),)
        amount = self._random.choice((500.0, 5_000.0))
        self._happen(at_s, Kind.SLOW, machines, for_s=self._random.uniform(2.0, 8.0), amount=amount)

    def _weather(self, at_s: float) -> None:
        kind, most = self._random.choice(((Kind.LOSS, 0.1), (Kind.DUPLICATE, 0.3), (Kind.DELAY, 0.3)))
        amount = round(most * self._random.uniform(0.2, 1.0), 3)
        self._happen(at_s, kind, (), for_s=self._random.uniform(2.0, 8.0), amount=amount)

    # --- the pieces

    def _chosen(self, count: int, at_s: float) -> tuple[int, ...]:
        """Return `count` machines that may go at this moment; none if there is no room for that."""
        free = [one for one in self._machines if self._busy_until.get(one, 0.0) <= at_s]
        spare = len(self._machines) - sum(until > at_s for until in self._busy_until.values()) - self._standing_min
        if self._room(at_s) < count or min(len(free), spare) < count:
            return ()
        return tuple(sorted(self._random.sample(free, count)))

    def _room(self, at_s: float) -> int:
        return EXPOSED_MAX - sum(until > at_s for until in self._exposures)

    def _power_cut(self, machines: tuple[int, ...], at_s: float) -> None:
        """Kill the machines; most come back, each after a while of its own, on one disk or another."""
        self._happen(at_s, Kind.KILL, machines)
        for machine in machines:
            down_s = self._random.choice((0.5, 3.0, 12.0)) * self._random.uniform(0.2, 1.0)
            disk: Disk | None = self._random.choices(DISKS, DISK_WEIGHTS)[0]
            if disk is None:
                self._gone((machine,), at_s)
                continue
            if disk == "old":
                self._happen(max(1.0, at_s - self._random.uniform(0.5, 10.0)), Kind.SNAPSHOT, (machine,))
            if self._random.random() < 0.15:
                amount = self._random.choice((-7200.0, -30.0, 30.0, 7200.0))
                self._happen(at_s, Kind.JUMP, (machine,), amount=amount)
            self._happen(at_s + down_s, Kind.RESTART, (machine,), disk=disk)
            self._expose((machine,), at_s + down_s + SETTLE_S)

    def _newcomers(self, count: int, at_s: float) -> tuple[int, ...]:
        if self._joiners_max < count:
            return ()
        self._joiners_max -= count
        machines = tuple(range(self._next_number, self._next_number + count))
        self._next_number += count
        apart_s = self._random.choice((0.0, 0.5)) * self._random.random()
        for place, machine in enumerate(machines):
            self._happen(at_s + place * apart_s, Kind.JOIN, (machine,), disk="none")
            self._machines.append(machine)
            self._busy_until[machine] = at_s + SETTLE_S
        return machines

    def _last(self, at_s: float, kind: Kind, machines: tuple[int, ...], for_s: float) -> None:
        self._happen(at_s, kind, machines, for_s=for_s)
        self._expose(machines, at_s + for_s + SETTLE_S)

    def _gone(self, machines: tuple[int, ...], at_s: float) -> None:
        self._expose(machines, at_s + SETTLE_S)
        for machine in machines:
            self._machines.remove(machine)
            del self._busy_until[machine]

    def _expose(self, machines: tuple[int, ...], until_s: float) -> None:
        for machine in machines:
            self._busy_until[machine] = until_s
            self._exposures.append(until_s)

    def _happen(
        self,
        at_s: float,
        kind: Kind,
        machines: tuple[int, ...] | list[int],
        *,
        for_s: float = 0.0,
        amount: float = 0.0,
        disk: Disk = "same",
    ) -> None:
        self._events.append(Event(round(at_s, 3), kind, tuple(machines), round(for_s, 3), amount, disk))
