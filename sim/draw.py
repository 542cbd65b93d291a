"""Fault plans drawn from a seed: faults in a random order and mixture.

A plan keeps the assumptions of the promise under test: no more than `Plan.exposed_max` machines are exposed at once
(`sim/plan.py`), and half of the swarm stands at any time. Leaving loses nothing, so many machines may leave together
while no other machine is exposed.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Literal

from msgspec.structs import replace

from kadcrawl.settings.job import PartitionSolver
from kadcrawl.urls import Partition

from .draw_limits import draw_limits, draw_parts, draw_proxies
from .draw_orders import draw_added, draw_left_out
from .draw_overload import draw_overload
from .draw_pairs import draw_pairs
from .draw_slow_orders import draw_slow_orders
from .draw_treatments import draw_annex, draw_refusals_max, draw_treatments
from .plan import DELAY_MOST_S, RECOVERY_S, WEB_FAULTS, Disk, Event, Kind, Plan

FAULTS_FROM_S = 2.0
FAULTS_UNTIL_S = 28.0
"""The last instant at which a fault may begin. Crawls of the sizes simulated here take about as long."""
GAP_S = 1.6
"""Mean time between two faults."""
DISKS: tuple[Disk | None, ...] = ("same", "old", "none", None)
DISK_WEIGHTS = (50, 20, 12, 18)
"""Weights of the `DISKS` with which a killed machine comes back. None: the machine stays away."""
TOGETHER_S = 0.05
"""Seconds between two kills with no repair between them."""
DELAYS_S = ((0.0, 1.0), (0.25, 1.0), (1.0, 2.0), (2.0, 12.0), (4.0, 16.0))
"""Pairs of delays in seconds: the job's, and the delay of the sites that ask for a longer one.

With the long delays a death is noticed before its site may be asked again, so only the clocks restrain the next owner.
"""
DELAY_WEIGHTS = (5, 14, 38, 20, 25)
TRAILS = (0, 1, 3)
TRAIL_WEIGHTS = (30, 40, 30)
"""Weights of the `TRAILS`. With a trail each link counts. With a single trail nearly all peers are idle while one is
not."""
BLOCKS = (0, 0, 0, 1, 2, 6)
"""Choices for the URLs of a heavy block, 0 for no balance.

Most are small, because no peer of so small a crawl has many URLs. The largest is nearly a site, so that a loan lasts
until its two peers lose contact.
"""
BALANCES: tuple[Literal["level", "drain"], ...] = ("level", "drain")
SOLVERS: tuple[PartitionSolver | None, ...] = (None, None, "exact", "pso")
"""Solvers of a job that would have the balance "drain": it has "predictive" with one."""
FETCHES = (1, 2, 64)
"""Requests of a peer under way at a time, in a job that balances by time: mostly fewer than sites allow."""
HURRIED = 0.5
"""Share of those jobs without a delay. With a delay, pages wait for their sites more than for their peer."""
UPDATES_S = (0.5, 3.0)
REFUSING = (0.0, 0.0, 0.03, 0.08)
"""Shares of pages that answer 429 at first, so that their sites must be left alone."""
FACTORS = (0.0, 0.0, 0.0, 3.0)
"""Delay factors of the job, 0 for a delay that does not adapt."""
ADDRESSES = (0, 0, 0, 0, 0, 0, 3, 6)
"""Addresses that the sites share in a job with per-ip, 0 for a job without."""
BY_URL, BY_DOMAIN = 1 / 8, 1 / 16
"""Shares of the plans in which the URLs of a host have many owners, and in which the hosts of a domain have one."""
LEAVES = (0, 0, 0, 2)
DEPTHS = (None, None, None, 1_000)
"""Limits on the depth: larger than that of each page, as a page may be reached by a detour."""
COPIES = (3, 3, 3, 3, 3, 2, 4, 5)
"""Copies of each record in the job: mostly the usual number, as the other faults were found with."""
AMBUSHES = 1 / 5
"""Share of the single kills that wait for the moment of most harm."""
AMBUSH_S = (1.0, 4.0)
"""The least and the most seconds that an ambush waits."""
ALONE_MOST_S = 0.15
"""The most seconds for which the killed machine has been the only holder of a record. After this time others usually
have it."""
STREAMED = 1 / 2
"""Share of the plans in which the seeds of most sites are streamed."""
LEAVERS_MIN, LEAVERS_MAX = 4, 8
OUTAGES = 1 / 3
"""Share of the plans with sites that are down for a time, and with orders to fetch failed URLs again."""
SITES_DOWN = 6
"""The largest sites, of which some are down."""
SOON_S = 1.5
"""Seconds after an outage in which an order comes at once."""
OUTAGE_S = (4.0, 14.0)
"""The least and the most seconds that a site is down."""
REPLAY_S = (0.5, 8.0)
"""The least and the most seconds after which an order arrives once more."""
SITE_PAUSES = 1 / 4
"""Share of the plans in which a person pauses sites."""
SITE_PAUSED_S = (2.0, 9.0)
"""The instants at which sites are paused: most of their pages are still to be fetched then."""
SITE_PAUSE_S = (3.0, 15.0)
"""The least and the most seconds of a short pause."""
SITE_PAUSE_AFTER_S = (18.0, 30.0)
"""The least and the most seconds for which a long pause outlasts the last fault."""
WATCHED = 1 / 6
"""Share of the plans in which somebody looks at a dashboard. Overload alone has none, as its requests are counted."""
NO_WEB = 1 / 3
"""Share of the plans in which the network of machines to the web fails."""
NO_WEB_S = (3.0, 20.0)
"""The least and the most seconds for which it fails."""


def draw(seed: int, peers: int, *, faults: bool = True, copies: int | None = None) -> Plan:
    """Return the plan of a seed. Without `faults` the plan has no events. `copies` are those of the job, or drawn."""
    plan = draw_limits(seed, _unlimited(seed, peers, copies, faults=faults))
    plan = draw_pairs(seed, draw_proxies(seed, plan), faults=faults)
    return _watched(seed, draw_slow_orders(seed, draw_overload(seed, draw_parts(seed, plan)), faults=faults))


def _watched(seed: int, plan: Plan) -> Plan:
    """Return the plan with somebody who looks at the dashboard of a machine, in some plans."""
    random = Random(f"watched {seed}")
    if random.random() >= WATCHED or plan.only_slows:
        return plan
    return replace(plan, watched=random.randrange(plan.peers))


def _unlimited(seed: int, peers: int, copies: int | None, *, faults: bool) -> Plan:
    copies = copies or Random(f"copies {seed}").choice(COPIES)
    plan = _with_loads(seed, _drawn(seed, peers, copies, faults=faults))
    chance = Random(f"partition {seed}").random()
    if chance < BY_URL + BY_DOMAIN and not plan.per_ip:
        # The rules for sites have cookies and limits, which no peer can keep where a host is not a site.
        partition: Partition = "url" if chance < BY_URL else "domain"
        return replace(plan, partition=partition, annex=draw_annex(seed, plan.delay_s))
    plan = replace(plan, refusals_max=draw_refusals_max(seed, plan.refusing))
    treatments = draw_treatments(seed, plan.own_delay_s, plan.delay_factor, plan.refusals_max)
    plan = replace(plan, treatments=treatments)
    return replace(plan, annex=draw_annex(seed, plan.delay_s))


def _drawn(seed: int, peers: int, copies: int, *, faults: bool) -> Plan:
    random = Random(f"web {seed}")
    [(delay_s, own_delay_s)] = random.choices(DELAYS_S, DELAY_WEIGHTS)
    [trails] = random.choices(TRAILS, TRAIL_WEIGHTS)
    events = tuple(_Drawing(seed, peers, copies - 1).events()) if faults else ()
    if faults:
        orders = [*_site_pauses(seed, peers, events), *draw_left_out(seed, peers, events)]
        events = tuple(sorted([*events, *_retries(seed, peers, events), *_no_web(seed, peers), *orders], key=_at))
    leaves = Random(f"leaves {seed}").choice(LEAVES)
    refusing = Random(f"refusing {seed}").choice(REFUSING)
    plan = Plan(seed, peers, events, delay_s, own_delay_s, trails, refusing=refusing, leaves=leaves, copies=copies)
    plan = replace(plan, delay_factor=Random(f"factor {seed}").choice(FACTORS) if delay_s <= DELAY_MOST_S else 0.0)
    plan = replace(plan, max_depth=Random(f"depth {seed}").choice(DEPTHS))
    plan = replace(plan, per_ip=Random(f"per ip {seed}").choice(ADDRESSES))
    return draw_added(seed, replace(plan, streamed=Random(f"streamed {seed}").random() < STREAMED))


def _with_loads(seed: int, plan: Plan) -> Plan:
    """Return the plan with what its peers lend each other."""
    balance = Random(f"balance {seed}")
    block_urls, update_s = balance.choice(BLOCKS), balance.uniform(*UPDATES_S)
    plan = replace(plan, update_s=update_s)
    if not block_urls:
        return plan
    plan = replace(plan, balance=balance.choice(BALANCES), block_urls=block_urls)
    if plan.balance == "level":
        return plan
    if (solver := Random(f"solver {seed}").choice(SOLVERS)) is not None:
        plan = replace(plan, balance="predictive", solver=solver)
    if balance.random() < HURRIED:
        delay_s, own_delay_s = DELAYS_S[0]
        plan = replace(plan, delay_s=delay_s, own_delay_s=own_delay_s)
    return replace(plan, fetches_max=balance.choice(FETCHES))


def _retries(seed: int, peers: int, faults: Sequence[Event]) -> list[Event]:
    """Return outages of sites, and orders to retry.

    An order comes at any time, or as soon as a site works again, or while these faults keep peers from hearing it.
    """
    random = Random(f"retries {seed} {peers}")
    if random.random() >= OUTAGES:
        return []
    events = []
    for _ in range(random.randint(1, 3)):
        site, at_s = random.randrange(SITES_DOWN), random.uniform(FAULTS_FROM_S, FAULTS_UNTIL_S - OUTAGE_S[1])
        events.append(Event(round(at_s, 3), Kind.OUTAGE, (), round(random.uniform(*OUTAGE_S), 3), float(site)))
    for _ in range(random.randint(1, 3)):
        missed = [one for one in faults if one.kind in (Kind.PARTITION, Kind.ONE_WAY, Kind.FREEZE)]
        [begin_s, end_s] = random.choice(
            [
                (FAULTS_FROM_S, FAULTS_UNTIL_S),
                *((one.at_s + one.for_s, one.at_s + one.for_s + SOON_S) for one in events if one.kind is Kind.OUTAGE),
                *((one.at_s, one.at_s + one.for_s) for one in missed),
            ]
        )
        at_s, for_s = random.uniform(begin_s, min(end_s, FAULTS_UNTIL_S + SOON_S)), random.uniform(*REPLAY_S)
        events.append(Event(round(at_s, 3), Kind.RETRY, (random.randrange(peers),), round(for_s, 3)))
    return events


def _site_pauses(seed: int, peers: int, faults: Sequence[Event]) -> Iterator[Event]:
    """Yield pauses of sites, early in the crawl, or while these faults keep peers from hearing of them.

    Some pauses last until long after the last fault, so that all peers must have heard of them.
    """
    random = Random(f"site pauses {seed} {peers}")
    if random.random() >= SITE_PAUSES:
        return
    missed = [one for one in faults if one.kind in (Kind.PARTITION, Kind.ONE_WAY, Kind.FREEZE)]
    over_s = max((one.at_s + one.for_s for one in faults), default=FAULTS_UNTIL_S)
    for site in random.sample(range(SITES_DOWN), random.randint(1, 2)):
        at_s = random.uniform(*SITE_PAUSED_S)
        if missed and random.random() < 1 / 3:
            one = random.choice(missed)
            at_s = random.uniform(one.at_s, one.at_s + one.for_s)
        until_s = random.choice((at_s + random.uniform(*SITE_PAUSE_S), over_s + random.uniform(*SITE_PAUSE_AFTER_S)))
        for_s = max(1.0, until_s - at_s)
        yield Event(round(at_s, 3), Kind.SITE_PAUSE, (random.randrange(peers),), round(for_s, 3), float(site))


def _no_web(seed: int, peers: int) -> Iterator[Event]:
    """Yield the failures of machines' networks to the web.

    At least two thirds of the machines keep theirs. If all lose it at once, URLs may fail before the peers know why.
    """
    random = Random(f"no web {seed}")
    if random.random() >= NO_WEB:
        return
    for _ in range(random.choice((1, 1, 2))):
        machines = tuple(sorted(random.sample(range(peers), random.randint(1, max(1, peers // 3)))))
        at_s, for_s = random.uniform(FAULTS_FROM_S, FAULTS_UNTIL_S), random.uniform(*NO_WEB_S)
        yield Event(round(at_s, 3), Kind.NO_WEB, machines, round(for_s, 3), random.randrange(len(WEB_FAULTS)))


def _at(event: Event) -> float:
    return event.at_s


class _Drawing:
    """A plan in the making: the machines that stand, and the instants at which exposures end."""

    def __init__(self, seed: int, peers: int, exposed_max: int) -> None:
        self._exposed_max = exposed_max
        self._random = Random(f"plan {seed} {peers}")
        self._machines = list(range(peers))
        """The machines that exist and are to be up in the end."""
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
            self._kill_many: 20,
            self._join: 10,
            self._join_and_kill: 8,
            self._leave: 8,
            self._leave_and_kill: 6,
            self._leave_many: 16,
            self._freeze: 16,
            self._partition: 12,
            self._full: 4,
            self._slow: 4,
            self._stall: 8,
            self._weather: 12,
        }
        # A plan leaves out half of the kinds of faults, so that the others happen more often, and together: swarm
        # testing (Groce et al. 2012). With all kinds in every plan, a kind that needs much room hardly ever finds any.
        choices = {happens: weight for happens, weight in choices.items() if self._random.random() < 0.5} or choices
        at_s = FAULTS_FROM_S + self._random.expovariate(1 / GAP_S)
        while at_s < FAULTS_UNTIL_S:
            [happens] = self._random.choices(list(choices), list(choices.values()))
            happens(at_s)
            at_s += self._random.expovariate(1 / GAP_S)
        return sorted(self._events, key=lambda event: event.at_s)

    # --- faults: each happens only if there is room for it at that moment

    def _kill(self, at_s: float) -> None:
        """Kill a machine now, or by an ambush: at the moment at which the kill does most harm."""
        for machine in self._chosen(1, at_s):
            if self._random.random() >= AMBUSHES:
                self._power_cut((machine,), at_s)
            else:
                for_s = self._random.uniform(*AMBUSH_S)
                self._happen(at_s, Kind.AMBUSH, (machine,), for_s=for_s, amount=self._random.uniform(0.0, ALONE_MOST_S))
                self._come_back(machine, at_s + for_s)

    def _kill_many(self, at_s: float) -> None:
        """Kill as many machines as the promise allows, at once or one after the other."""
        chosen = self._chosen(self._exposed_max, at_s)
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
        """Let a newcomer join, and meanwhile kill the newcomer or another machine."""
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

    def _leave_many(self, at_s: float) -> None:
        """Let many machines leave together, often all holders of a cell: leaving loses nothing, however many leave."""
        chosen = self._chosen(self._random.randint(LEAVERS_MIN, LEAVERS_MAX), at_s, exposed=self._exposed_max)
        if chosen:
            self._happen(at_s, Kind.LEAVE, chosen)
            self._gone(chosen, at_s)

    def _freeze(self, at_s: float) -> None:
        chosen = self._chosen(self._random.choice((1, 1, 2)), at_s)
        if chosen:
            for_s = self._random.choice((1.0, 4.0, 10.0, 10.0)) * self._random.uniform(0.5, 1.0)
            self._last(at_s, Kind.FREEZE, chosen, for_s)

    def _full(self, at_s: float) -> None:
        chosen = self._chosen(1, at_s)
        if chosen:
            self._last(at_s, Kind.FULL, chosen, self._random.uniform(0.5, 6.0))

    def _partition(self, at_s: float) -> None:
        """Cut the swarm in two: a few machines from the rest, or two halves. Each half can spare one machine."""
        half = len(self._machines) // 2
        cost = max(1, self._exposed_max - 1) if half > self._exposed_max else self._exposed_max
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
            self._exposures += [at_s + for_s + RECOVERY_S] * cost
        self._parted_until = at_s + for_s + RECOVERY_S

    def _stall(self, at_s: float) -> None:
        """Make a disk slow and cut its power meanwhile, so that written and safe bytes drift apart."""
        for_s = self._random.uniform(1.0, 4.0)
        dies_s = at_s + self._random.uniform(0.2, 1.0) * for_s
        machines = self._chosen(1, dies_s)
        if machines:
            self._happen(at_s, Kind.STALL, machines, for_s=for_s, amount=self._random.choice((0.05, 0.5, 1.0)))
            self._power_cut(machines, dies_s)

    def _slow(self, at_s: float) -> None:
        machines = (self._random.choice(self._machines),)
        amount = self._random.choice((500.0, 5_000.0))
        self._happen(at_s, Kind.SLOW, machines, for_s=self._random.uniform(2.0, 8.0), amount=amount)

    def _weather(self, at_s: float) -> None:
        kind, most = self._random.choice(((Kind.LOSS, 0.1), (Kind.DUPLICATE, 0.3), (Kind.DELAY, 0.3)))
        amount = round(most * self._random.uniform(0.2, 1.0), 3)
        self._happen(at_s, kind, (), for_s=self._random.uniform(2.0, 8.0), amount=amount)

    # --- the pieces

    def _chosen(self, count: int, at_s: float, exposed: int | None = None) -> tuple[int, ...]:
        """Return `count` machines that may go at this moment, or none if there is no room for so many.

        `exposed` is the number of exposures this costs, if it differs from `count`.
        """
        free = [one for one in self._machines if self._busy_until.get(one, 0.0) <= at_s]
        spare = len(self._machines) - sum(until > at_s for until in self._busy_until.values()) - self._standing_min
        if self._room(at_s) < (exposed or count) or min(len(free), spare) < count:
            return ()
        return tuple(sorted(self._random.sample(free, count)))

    def _room(self, at_s: float) -> int:
        return self._exposed_max - sum(until > at_s for until in self._exposures)

    def _power_cut(self, machines: tuple[int, ...], at_s: float) -> None:
        """Kill the machines. Most come back, each after a random time."""
        self._happen(at_s, Kind.KILL, machines)
        for machine in machines:
            self._come_back(machine, at_s)

    def _come_back(self, machine: int, at_s: float) -> None:
        """Restart a machine that is down since `at_s` after a while, on a random disk, or never."""
        down_s = self._random.choice((0.5, 3.0, 12.0)) * self._random.uniform(0.2, 1.0)
        disk: Disk | None = self._random.choices(DISKS, DISK_WEIGHTS)[0]
        if disk is None:
            self._gone((machine,), at_s)
            return
        if disk == "old":
            self._happen(max(1.0, at_s - self._random.uniform(0.5, 10.0)), Kind.SNAPSHOT, (machine,))
        if self._random.random() < 0.15:
            amount = self._random.choice((-7200.0, -30.0, 30.0, 7200.0))
            self._happen(at_s, Kind.JUMP, (machine,), amount=amount)
        self._happen(at_s + down_s, Kind.RESTART, (machine,), disk=disk)
        self._expose((machine,), at_s + down_s + RECOVERY_S)

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
            self._busy_until[machine] = at_s + RECOVERY_S
        return machines

    def _last(self, at_s: float, kind: Kind, machines: tuple[int, ...], for_s: float) -> None:
        self._happen(at_s, kind, machines, for_s=for_s)
        self._expose(machines, at_s + for_s + RECOVERY_S)

    def _gone(self, machines: tuple[int, ...], at_s: float) -> None:
        self._expose(machines, at_s + RECOVERY_S)
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
