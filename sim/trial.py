"""One trial: makes a world from a plan, lives through its faults, heals it, waits for rest, and judges it.

The order is safety under faults, then healing, then liveness. After the plan's last moment the network is whole, no
machine is frozen and every disk has room. Machines killed for good stay away. From then on the swarm has
`REST_TIMEOUT_S` to end by itself and to have all copies of all records again. The same plan, size and mutant give the
same trace, in any process.
"""

import asyncio
import math
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from kadcrawl.keys import Cell
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.recrawl_checks import CALENDAR_GRAINS_S
from kadcrawl.store.bloom import calendar_epochs

from .ambush import STEP_S, Ambushes
from .annex import PAGES, TRACKED, Annex
from .dashboard_viewer import DashboardViewer
from .excluded_sites import LeftOutSites, disagreements
from .job_rules import contact, left_out_by_job, site_rules
from .judges import Facts, cut_short, duplicates, judge, parted
from .loop import SimLoop, world
from .machines import EPOCH, WEB_NETWORKS, Machines, memory_directory
from .mutants import planted
from .network import Conditions
from .observer import Observer
from .peer_logs import peer_logs, plain_records
from .person_orders import PersonOrders
from .plan import DELAY_MOST_S, LEAF_FIRST, PROXY_FAULTS, WEB_FAULTS, Event, Kind, Plan, proxy_fault
from .relays import SeenRelays
from .retries import Retries
from .scene import Scene
from .site_pauses import SitePauses
from .site_treatment import by_number
from .synthetic_sites import Mix
from .synthetic_web import SyntheticWeb
from .wall import Wall
from .web_server import HEALTH_HOST, WebServer

OBSERVE_INTERVAL_S = 0.25
"""Virtual seconds between two looks of the observer, ..."""
MACHINES_SEEN_S = 1000
"""... unless this is more than this number of machines per second."""
BOOT_APART_S = 0.05
"""Virtual seconds between the boots of two of the first machines, ..."""
BOOT_MOST_S = 10.0
"""... unless the boots would take longer than this in all."""
OWNERS_KNOWN_S = 60.0
"""Virtual seconds after the last fault within which all peers come to name the rightful owners: two rounds among
siblings at their slowest pace (`OverlaySettings.round_s_max`)."""
OWNERS_AGAIN_S = 5.0
REST_TIMEOUT_S = 300.0
"""Virtual seconds after the last fault within which a swarm must come to rest."""
QUIET_S = 2.0
"""Virtual seconds of rest before peers are asked for owners."""
SEEDS = 3
"""The number of sites at which a crawl begins."""
DOMAINS = 5
"""The registered domains of the sites, in a job in which the hosts of a domain are a site."""
WEB_ADDRESS = str(ip_network(WEB_NETWORKS[0])[1])
PROXY_PORT = 3128
CALENDAR_EPOCHS = 2
"""The units of the calendar after which fingerprints expire: the fewest that a job may have."""
CELLS_ASKED = 4
"""The number of cells for which peers are asked."""
PEERS_ASKED_MAX = 64
"""The most peers that are asked. In a larger swarm they are spread evenly."""

CALM = Conditions()
"""The network without faults."""
LIMITS = Limits(retry_base_s=1.0, robots_retry_s=1.0, back_off_s=8.0, back_off_max_s=32.0, site_connections_max=3)
"""The default limits, with shorter waits and more connections.

Long waits would only lengthen a trial. The connections are more than any site here could use.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of the web. The default keeps a swarm busy for about as long as the faults last."""

    pages: int = 80
    """The number of pages if the job's delay is at most one second. A longer delay reduces it, so that the crawl
    takes no longer."""
    sites: int = 12

    @property
    def limits(self) -> Limits:
        """The peers' bounds."""
        return LIMITS

    def web(self, plan: Plan) -> SyntheticWeb:
        """Return the web of a plan.

        With few pages a larger share is slow and a larger share of sites asks for a delay, so that some do. Without a
        delay most pages are slow, or the crawl would be over before the first fault.
        """
        hurried = plan.delay_s <= 1.0
        pages = self.pages if hurried else round(self.pages / plan.delay_s)
        seeds = min(SEEDS, self.sites)
        trails = min(plan.trails, seeds)
        on_trails = pages // 2 if trails else 0
        mix = Mix(crawl_delay_s=plan.own_delay_s, refusing=plan.refusing)
        mix = mix if plan.delay_s else replace(mix, slow=0.7)
        if plan.refusals_max < Job().refusals_max:
            mix = replace(mix, busy=0.0)  # Busy pages in a row would have their site given up.
        return SyntheticWeb(
            plan.seed,
            sites=self.sites,
            pages=max(self.sites, pages - on_trails - (PAGES if plan.annex else 0)),
            seeds=seeds,
            mix=mix if hurried else replace(mix, calendar=0.0, no_robots=0.1, crawl_delay=0.6, slow=0.25),
            trails=trails,
            trail_pages=on_trails // max(1, trails),
            addresses=tuple(map(str, islice(ip_network(WEB_NETWORKS[0]).hosts(), max(1, plan.per_ip)))),
            treatments=by_number(plan.treatments, self.sites, seeds) if plan.treatments else (),
            annex=plan.annex,
            domains=DOMAINS if plan.partition == "domain" else 0,
        )


USUAL = Size()


class TrialOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one trial, as it travels between processes."""

    plan: Plan
    violations: dict[str, list[str]]
    """Judge -> violations found. Judges without violations are left out."""
    trace: str
    """Hash of all that went over the network."""
    virtual_s: float
    wall_s: float
    messages: int
    kills: int
    partitions: int
    urls: int
    fetches: int
    lent: int
    """Requests for pages that a machine had borrowed."""
    duplicates: int
    cut_short: int
    parted: int
    repair_s: float | None
    met: dict[str, int]

    @property
    def clean(self) -> bool:
        return not self.violations

    def found(self, judge_name: str) -> int:
        return len(self.violations.get(judge_name, ()))


def run(
    plan: Plan,
    size: Size = USUAL,
    *,
    mutant: str | None = None,
    say: Callable[[str], None] | None = None,
    watch: Callable[["Trial"], None] | None = None,
) -> TrialOutcome:
    """Run one trial.

    `mutant` plants a bug by name. `say` gets the story line by line. `watch` is called after each look.
    """
    outcome, _ = run_scene(plan, scene_of(plan, size), mutant=mutant, say=say, watch=watch)
    return outcome


def scene_of(plan: Plan, size: Size) -> Scene:
    """Return the synthetic web and the job of a plan."""
    web = size.web(plan)
    annex = plan.annex or Annex(0)
    calendar = plan.calendar if plan.history == "bloom" else None
    rules = site_rules([site.treatment for site in web.sites], [site.host for site in web.sites])
    job = Job(
        seeds=web.seeds[:1] if plan.streamed else web.seeds,
        scope="host" if plan.streamed else "any",
        delay_s=plan.delay_s,
        delay_factor=plan.delay_factor,
        refusals_max=plan.refusals_max,
        partition=plan.partition,
        per_ip=plan.per_ip > 0,
        delay_most_s=DELAY_MOST_S if plan.delay_factor else Job().delay_most_s,
        balance=plan.balance,
        solver=plan.solver,
        history=plan.history,
        max_depth=plan.max_depth,
        max_pages=plan.max_pages,
        max_time_s=plan.max_time_s,
        recrawl_after_s=plan.recrawl_after_s if calendar is None else CALENDAR_EPOCHS * CALENDAR_GRAINS_S[calendar],
        grain_s=plan.grain_s,
        calendar_grain=calendar,
        block_urls=plan.block_urls,
        copies=plan.copies,
        update_s=plan.update_s,
        nofollow="ignore" if annex.ignores_nofollow else "obey",
        strip_parameters=TRACKED if annex.strips else (),
        sort_query=annex.sorts,
        sitemaps=annex.sitemaps,
        sites=rules,
        include=left_out_by_job([web.sites[number % len(web.sites)].host for number in plan.added_sites]),
        contact=contact(rules),
        proxies=tuple(f"http://{one}:{PROXY_PORT}" for one in proxy_addresses(plan.proxies + plan.dead_proxies)),
        proxy_judge=f"http://{HEALTH_HOST}/" if plan.proxies else "",
    )
    # The smallest possible work area: the delays of the sites leave a peer of so small a crawl little work at once.
    work_area = plan.block_urls if plan.balance == "level" else None
    streamed = [f"{origin}/" for origin in web.origins] if plan.streamed else ()
    return Scene(
        web=web,
        job=job,
        streamed=streamed,
        added=[web.sites[number % len(web.sites)].origin for number in plan.added_sites],
        optional=web.optional(Job().retries),
        refused=web.refused(),
        treatments={site.origin: site.treatment for site in web.sites} if plan.treatments else {},
        limits=replace(size.limits, fetches_max=plan.fetches_max, pages_bytes_max=plan.pages_bytes_max),
        work_area=work_area,
    )


def begins_at(plan: Plan) -> float:
    """Return the wall-clock second at which the world of a plan begins: before a unit of its calendar begins, if any.

    A unit has the same instants in a job that does not use it.
    """
    if plan.calendar is None:
        return EPOCH
    return calendar_epochs.begin_s(plan.calendar, calendar_epochs.number(plan.calendar, EPOCH) + 1) - plan.boundary_s


def proxy_addresses(count: int) -> list[str]:
    """Return the IP addresses of so many proxies: the last of the simulated web."""
    return [str(ip_network(WEB_NETWORKS[0])[-2 - number]) for number in range(count)]


def run_scene(
    plan: Plan,
    scene: Scene,
    *,
    mutant: str | None = None,
    say: Callable[[str], None] | None = None,
    watch: Callable[["Trial"], None] | None = None,
) -> tuple[TrialOutcome, Facts]:
    """Run one trial of any web and job, and return its outcome and facts. Parameters are as of `run`."""
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="kadcrawl-sim-", dir=memory_directory()))
        )
        stack.enter_context(planted(mutant))
        loop = stack.enter_context(world(plan.seed))
        return _lived(loop, plan, scene, directory, say, watch)


def _lived(
    loop: SimLoop,
    plan: Plan,
    scene: Scene,
    directory: Path,
    say: Callable[[str], None] | None,
    watch: Callable[["Trial"], None] | None,
) -> tuple[TrialOutcome, Facts]:
    """Run one trial on its loop. On return no object holds the trial, so that it ends with the world."""
    began = time.perf_counter()
    trial = Trial(loop, plan, scene, directory, say, watch)
    with plain_records(), trial.logged(), trial.relays.watched(), trial.machines:
        facts = loop.run_until_complete(trial.story())
    with warnings.catch_warnings():
        # Resources that dead peers left open are no fault and do not matter any more.
        warnings.simplefilter("ignore", ResourceWarning)
        loop.set_exception_handler(lambda *_: None)
        loop.network.hosts.clear()
    return trial.outcome(facts, time.perf_counter() - began), facts


class Trial:
    """One world and its story."""

    def __init__(
        self,
        loop: SimLoop,
        plan: Plan,
        scene: Scene,
        directory: Path,
        say: Callable[[str], None] | None,
        watch: Callable[["Trial"], None] | None,
    ) -> None:
        self._loop = loop
        self._plan = plan
        self._say = say
        self._watch = watch
        self._look_s = max(OBSERVE_INTERVAL_S, plan.peers / MACHINES_SEEN_S)
        walled = {origin.removeprefix("http://"): one for origin, one in scene.treatments.items() if one.cookies}
        self.server = WebServer(scene.web, {host: Wall(host, has_form=one.login) for host, one in walled.items()})
        self.machines = Machines(
            loop,
            scene.web,
            job=scene.job,
            streamed=scene.streamed,
            limits=scene.limits,
            work_area=scene.work_area,
            seed=plan.seed,
            directory=directory,
            begins_at=begins_at(plan),
        )
        self._pauses = SitePauses(self.machines, scene.web.origins, scene.job, plan.events)
        self._viewer = DashboardViewer(
            *(self.machines, plan.watched, loop.time), lambda: self.observer.unfinished(loop.time())
        )
        self._left_out = LeftOutSites(self.machines, scene, self.server.log, self._pauses.disturbed)
        first_fault_at = min((event.at_s for event in plan.events), default=math.inf)
        connections_max = scene.limits.site_connections_max
        back_off_s = (scene.limits.back_off_s, scene.limits.back_off_max_s)
        self.relays = SeenRelays(loop.time)
        self.observer = Observer(
            *(self.machines, scene, self.server, connections_max, first_fault_at, back_off_s),
            only_slow=plan.only_slows,
            excused=self._left_out.excused,
            relays=self.relays,
        )
        self._retries = Retries(
            self.machines, self.server, scene.web.origins, self.observer.retries, loop.time, self._tell
        )
        self._orders = PersonOrders(self.machines, scene, plan.events, loop.time)
        self._active: list[Event] = []
        self._ambushes = Ambushes(self.observer.is_alone)

    @property
    def now(self) -> float:
        """The world's time, in seconds."""
        return self._loop.time()

    def set_aside(self) -> None:
        """Exempt all current objects from garbage collection until the end."""
        self._loop.set_aside()

    def outcome(self, facts: Facts, wall_s: float) -> TrialOutcome:
        network = self._loop.network
        return TrialOutcome(
            plan=self._plan,
            violations=judge(facts),
            trace=network.trace(),
            virtual_s=self._loop.time(),
            wall_s=wall_s,
            messages=network.delivered,
            kills=self.observer.kills,
            partitions=sum(event.kind in (Kind.PARTITION, Kind.ONE_WAY) for event in self._plan.events),
            urls=len(facts.truth),
            fetches=len(facts.fetches),
            lent=sum(fetch.lender is not None for fetch in facts.fetches),
            duplicates=duplicates(facts),
            cut_short=cut_short(facts),
            parted=parted(facts),
            repair_s=facts.repair_s,
            met=dict(self.observer.met),
        )

    # --- the story -----------------------------------------------------------------------------------------------

    async def story(self) -> Facts:
        now = self._loop.time
        served = sorted({WEB_ADDRESS, *self.observer.addresses.values()})
        for address in served:
            listens = self._loop.create_server(self.server.connect, address, 80)
            await self._loop.network.host(address).spawn(listens)
        proxies = proxy_addresses(self._plan.proxies)
        for address in proxies:
            listens = self._loop.create_server(partial(self.server.connect_via, address), address, PROXY_PORT)
            await self._loop.network.host(address).spawn(listens)
        self._loop.network.web = frozenset([*served, *proxies])
        self.machines.start(0)
        for number in range(1, self._plan.peers):
            await asyncio.sleep(min(BOOT_APART_S, BOOT_MOST_S / self._plan.peers))
            self.machines.join(number)
            self._show()
        for number in range(self._plan.leaves):
            self.machines.hang(LEAF_FIRST + number)
        for moment in self._plan.moments():
            await self._wait_until(moment.at_s)
            self.observer.before(moment.event, now(), begins=moment.begins)
            self._befall(moment.event, begins=moment.begins)
        calm_from = now()
        self.observer.calm(calm_from)
        self._tell("nothing more will happen")
        await self._rest(QUIET_S, calm_from + REST_TIMEOUT_S)
        if self.observer.look_back():
            await self._retries.order_until_heard()
            await self._rest(QUIET_S, now() + REST_TIMEOUT_S)
        named = await self._ask_for_owners()
        while not self.observer.agrees(named) and now() < calm_from + OWNERS_KNOWN_S:
            await self._wait_until(now() + OWNERS_AGAIN_S)
            named = await self._ask_for_owners()
        while disagreements(self.machines) and now() < calm_from + OWNERS_KNOWN_S:
            await self._wait_until(now() + OWNERS_AGAIN_S)
        # A peer may have met an unknown peer just now, and be asking again whether the crawl is over.
        until = now() + REST_TIMEOUT_S
        await self._rest(0.0, until)
        await self._viewer.look_once_more()
        # The look takes a second, in which holders may forget a page one after another. The facts are of one instant.
        await self._rest(0.0, until)
        self.observer.sides_crawled()
        facts = replace(
            self.observer.facts(now(), named),
            paused=self._pauses.seen,
            disturbed=self._pauses.disturbed,
            dashboard=self._viewer.seen,
            calm_s=calm_from,
            unheard=disagreements(self.machines),
        )
        return self._orders.judged(self._left_out.judged(facts))

    async def _rest(self, quiet_s: float, until: float) -> None:
        """Wait until the swarm has been at rest for `quiet_s` seconds, or until the instant `until`."""
        now = self._loop.time
        rested_from = now()
        while (now() < rested_from + quiet_s or not self.observer.at_rest) and now() < until:
            await self._wait_until(now() + self._look_s)
            if not self.observer.at_rest:
                rested_from = now()

    async def _wait_until(self, at_s: float) -> None:
        while self._loop.time() < at_s:
            await self._wait(min(self._look_s, at_s - self._loop.time()))
            self._left_out.look(self._loop.time)
            self.observer.look(self._loop.time())
            self._pauses.look(self._loop.time())
            self._orders.look(self._loop.time())
            self._viewer.look()
            self._show()

    async def _wait(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        while self._ambushes and self._loop.time() < until - STEP_S:
            await asyncio.sleep(STEP_S)
            for event in self._ambushes.sprung(self._loop.time()):
                self._cut_power(event)
        await asyncio.sleep(until - self._loop.time())

    async def _ask_for_owners(self) -> list[tuple[int, int, int]]:
        """Ask peers for the owners of some cells."""
        cells = self.observer.cells[:CELLS_ASKED]
        live = self.machines.live
        questions: list[tuple[int, Cell, asyncio.Task[Any]]] = [
            (machine.number, cell, machine.host.spawn(machine.peer.overlay.owner(cell)))
            for machine in live[:: math.ceil(len(live) / PEERS_ASKED_MAX) or 1]
            if machine.peer is not None and machine.peer.begun
            for cell in cells
        ]
        answers = await asyncio.gather(*(task for _, _, task in questions))
        return [
            (asked, cell, self.observer.number_of(answer.id))
            for (asked, cell, _), answer in zip(questions, answers, strict=True)
        ]

    def _befall(self, event: Event, *, begins: bool) -> None:
        """Begin or end an event. An event that does not fit the state of its machine has no effect."""
        self._tell(str(event) if begins else f"           over: {event.kind} {event.machines or ''}")
        for number in event.machines:
            self._befall_machine(event, number, begins=begins)
        if event.kind is Kind.OUTAGE:
            self._retries.set_outage(event, begins=begins)
        if event.kind is Kind.SITE_PAUSE and not begins:
            self._pauses.end(event, self._loop.time())
        if event.kind in (Kind.SITE_SLOW, Kind.SET_DELAY) and not begins:
            self._orders.end(event)
        if event.kind is Kind.SCOPE and not begins:
            self._left_out.end(event)
        if event.kind is Kind.AMBUSH and begins:
            self._ambushes.lay(event)
        elif event.kind is Kind.AMBUSH and self._ambushes.lift(event):
            self._cut_power(event)
        if begins:
            self._active.append(event)
        elif event in self._active:
            self._active.remove(event)
        self._set_weather()

    def _cut_power(self, ambush: Event) -> None:
        """Kill the machines of an ambush, because its moment has come."""
        kill = Event(self._loop.time(), Kind.KILL, ambush.machines)
        self.observer.before(kill, kill.at_s, begins=True)
        self._befall(kill, begins=True)

    def _befall_machine(self, event: Event, number: int, *, begins: bool) -> None:
        machines = self.machines
        machine = machines.machines.get(number)
        up = machine is not None and machine.alive
        match event.kind:
            case Kind.JOIN if machine is None:
                machines.join(number)
            case Kind.RESTART if machine is not None and not up:
                machines.join(number, event.disk)
            case Kind.KILL if up:
                machines.kill(number)
            case Kind.LEAVE if up:
                machines.leave(number)
            case Kind.SNAPSHOT if up:
                machines.snapshot(number)
            case Kind.FREEZE if up:
                (machines.freeze if begins else machines.thaw)(number)
            case Kind.FULL if machine is not None:
                machines.full(number, begins)
                if not begins and not up:
                    machines.join(number, "same")
            case Kind.RETRY if machine is not None and up:
                machine.host.spawn(self._retries.order(machine) if begins else self._retries.repeat(machine))
            case Kind.SITE_PAUSE if begins:
                self._pauses.begin(event, machine, self._loop.time)
            case Kind.SITE_SLOW | Kind.SET_DELAY | Kind.SET_PAGES if begins:
                if event.kind is Kind.SET_PAGES:
                    self.observer.change_pages(event.value)
                self._orders.begin(event, machine)
            case Kind.SCOPE_ADD if begins:
                self._left_out.end(event)
            case Kind.SITE_EXCLUDE | Kind.SITE_DROP | Kind.SCOPE if machine is not None and up and begins:
                self.observer.retries.give_up(self._left_out.begin(event, machine, self._loop.time))
            case Kind.JUMP if machine is not None:
                machines.jump(number, event.amount)

    def _set_weather(self) -> None:
        """Set the conditions of network and hosts to the combination of all active events."""
        network, conditions = self._loop.network, self._loop.network.conditions
        down = [int(one.amount) for one in self._active if one.kind is Kind.PROXY_DOWN]
        addresses = proxy_addresses(max(down, default=-1) + 1)
        self.server.set_faults({addresses[number]: PROXY_FAULTS[proxy_fault(number)] for number in down})
        worst = {kind: max((one.amount for one in self._active if one.kind is kind), default=0.0) for kind in Kind}
        conditions.loss = worst[Kind.LOSS]
        conditions.duplication = worst[Kind.DUPLICATE]
        conditions.jitter_s = CALM.jitter_s + worst[Kind.DELAY]
        network.heal()
        hosts = {number: machine.host for number, machine in self.machines.machines.items()}
        for number, host in hosts.items():
            slow = [one.amount for one in self._active if one.kind is Kind.SLOW and number in one.machines]
            host.read_bytes_s = min(slow, default=math.inf)
            stalling = [one.amount for one in self._active if one.kind is Kind.STALL and number in one.machines]
            host.disk_s = max(stalling, default=0.0)
            faults = [one.amount for one in self._active if one.kind is Kind.NO_WEB and number in one.machines]
            host.web_fault = WEB_FAULTS[int(faults[0])] if faults else None
        for event in self._active:
            if event.kind in (Kind.PARTITION, Kind.ONE_WAY):
                few = [host.ip for number, host in hosts.items() if number in event.machines]
                many = [host.ip for number, host in hosts.items() if number not in event.machines]
                network.cut(few, many, one_way=event.kind is Kind.ONE_WAY)

    # --- reporting ------------------------------------------------------------------------------------------------

    def logged(self) -> AbstractContextManager[None]:
        """Add the peers' log records to the story while the context is open."""
        return nullcontext() if self._say is None else peer_logs(self._tell)

    def _show(self) -> None:
        if self._watch is not None:
            self._watch(self)

    def _tell(self, what: str) -> None:
        if self._say is not None:
            self._say(f"{self._loop.time():9.3f}  {what}")
