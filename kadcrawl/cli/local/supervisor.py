"""A whole swarm on this machine: `kadcrawl crawl` starts N peers as processes, brings them together, and watches.

The parent owns no URL and decides nothing: it starts peers, waits until all have joined, hands one of them the seeds,
and shows and adds up the figures they report (see `pipe`). If a peer dies the others go on, as they hold copies of all
it had; if asked to, the parent starts it again on its directory, where it joins the living. Once all have died they
begin anew together, so that there is always one swarm. At the end the parent looks into the directories of the dead
for what only they knew. As it runs as long as its peers do and costs start-up time on top of theirs, it loads nothing
of the crawl or the overlay.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf
from pathlib import Path

import msgspec

from kadcrawl.cli.exits import leaves_of
from kadcrawl.cli.local.child import Child
from kadcrawl.cli.local.fork_server import take_server
from kadcrawl.cli.local.forked_process import ForkLauncher
from kadcrawl.cli.local.last_rows import last_rows
from kadcrawl.cli.log_file import LOG, log_to, secrets_of_machine
from kadcrawl.cli.machine import MachineSettings
from kadcrawl.cli.run import Interrupts
from kadcrawl.cli.seeds.seed_file import SeedFile
from kadcrawl.cli.targets import peer_directories
from kadcrawl.cli.view.failed_examples import by_counted_reason, examples_at_the_ends
from kadcrawl.cli.view.limit_end import with_pages_lost
from kadcrawl.cli.view.live.expectation import Expectation
from kadcrawl.cli.view.live.sites import merge_reports
from kadcrawl.cli.view.progress import Progress
from kadcrawl.cli.view.summary import LINES_COMPARED_MAX, PageLogs, Summary, add_up, failed_before
from kadcrawl.errors import KadcrawlError, StartError
from kadcrawl.link.wire.peer_state import MACHINE_PAUSES, PeerState, state_text
from kadcrawl.members.key_file import read_kept_key
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_changes import changed
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.settings.limits import Limits
from kadcrawl.system.event import Event
from kadcrawl.system.file_names import SWARM_KEY
from kadcrawl.system.lean_imports import import_lean
from kadcrawl.system.open_files import FILES_OF_A_PEER, files_allowed, has_room, how_to_allow
from kadcrawl.system.peer_name import peer_name
from kadcrawl.system.start_up_memory import give_back_again

FILES_OF_THE_COMMAND = 64
"""Files that a process with peers opens beside theirs: libraries, the terminal, the log, the resolver."""
REVIVE_TRIES = 4
REVIVE_WAIT_S = 1.0
END_S = 240.0
"""Once a peer has ended with the crawl, the others do within this time, or will not: one may be stopped."""
SHOW_INTERVAL_S = 0.5
JOINS_IN_PROCESS_MAX = 8
"""Peers of one process that enter the swarm at a time. They share a processor, and a peer that waits long for an answer
takes others for dead."""
WARNING_INTERVAL_S = 600.0
"""Seconds between two equal warnings, as each peer may have the same warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """The plan of a local crawl: its seeds, job, number of peers, and directory."""

    seeds: Sequence[str]
    job: Job
    peers: int
    data: Path
    allow_networks: tuple[str, ...]
    respawn: bool = False
    """Start peers that die again, although the others live."""
    machine: MachineSettings = field(default_factory=MachineSettings)
    swarm_key: SwarmKey | None = None
    named_again: Sequence[str] = ()
    """Those of the seeds that a person has named again for a crawl that had begun before."""
    in_process: bool = False
    """All peers run in the process of the command."""
    seeds_file: SeedFile | None = None
    """Further seeds, read while the swarm runs."""
    changes: Mapping[str, float] = field(default_factory=dict)
    """The settings of the job that standing orders change, by name."""
    is_over: bool = False
    """An earlier run has reached --max-bytes or --max-time, so there is nothing to expect."""
    addresses: Sequence[str] = ()
    """Sentences about the addresses of metrics and dashboards, to be said once all peers listen."""


def peers_of(data: Path) -> list[int]:
    """Return the numbers of the peers that have a directory below `data`: each may hold URLs nobody else knows."""
    names = (path.name.removeprefix("peer-") for path in data.glob("peer-*") if path.is_dir())
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal() and str(int(name)) == name)


def _children(plan: CrawlPlan, numbers: Sequence[int], forks: ForkLauncher) -> list[Child]:
    """Return the peers to be started, each a process, or all in this process. Raises StartError for want of files."""
    directories, last = {number: plan.data / f"peer-{number}" for number in numbers}, max(numbers)
    if not plan.in_process:
        launch = forks.launch
        return [Child(number, directory, launch, directory / LOG, last) for number, directory in directories.items()]
    check_files(len(numbers))
    import_lean()
    from kadcrawl.cli.local.child_task import TaskLauncher  # Not at the top: it loads the whole peer.

    plan.data.mkdir(parents=True, exist_ok=True)
    secrets = secrets_of_machine(plan.swarm_key, plan.machine.secrets)
    log_to(plan.data, plan.machine.log, secrets, peer_name.get, of_many=True)
    in_task = TaskLauncher(len(numbers)).launch
    return [Child(number, directory, in_task, plan.data / LOG, last) for number, directory in directories.items()]


def check_files(peers: int) -> None:
    """Raise StartError if this process may not open the files of so many peers."""
    needed = FILES_OF_THE_COMMAND + peers * FILES_OF_A_PEER
    if not has_room(needed - FILES_OF_THE_COMMAND):
        allowed = files_allowed() or 0
        fit = max(0, allowed - FILES_OF_THE_COMMAND) // FILES_OF_A_PEER
        raise StartError(
            f"{peers} peers in one process open {needed} files, and this process may open {allowed}: "
            f"{how_to_allow(needed)}, or use --in-process {max(1, fit)}"
        )


class LocalSwarm:
    """The processes of one local crawl."""

    def __init__(self, plan: CrawlPlan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        known = peers_of(plan.data)
        numbers = sorted({*range(1, plan.peers + 1), *known})
        self._start_slots = asyncio.Semaphore(JOINS_IN_PROCESS_MAX if plan.in_process else len(numbers))
        self._forks = ForkLauncher(take_server(), len(numbers))
        self._children = _children(plan, numbers, self._forks)
        if len(numbers) > plan.peers:
            progress.say(
                f"{plan.data} holds the work of {len(known)} peers, so {len(numbers)} are started, not {plan.peers}"
            )
        self._going = False
        """The swarm has been told to fetch since it last began."""
        self._named_again = plan.named_again
        self._addresses = plan.addresses
        self._holds = plan.seeds_file is not None
        """The swarm stays paused, as its seeds are being read."""
        self._feed_error: KadcrawlError | None = None
        """The reason for which the seeds could not be read to their end."""
        self._waiting: dict[asyncio.Task[bool], Child] = {}
        """Tasks that see processes to their ends."""
        self._stopping = Event()
        self.reached_nothing = False
        """The peers paused for a while, because none of them reached any site."""

    @property
    def interrupted(self) -> bool:
        """True if a person ended the crawl."""
        return self._stopping.is_set()

    @property
    def stopped(self) -> bool:
        """True if `kadcrawl stop`, or a signal to a peer, ended the crawl before it was done."""
        return any(child.is_stopped for child in self._children)

    async def run(self) -> Summary:
        """Crawl to the end, or until interrupted. Raises StartError, or why seeds cannot be read."""
        interrupts = Interrupts()
        began = asyncio.get_running_loop().time()
        try:
            if self._plan.in_process:
                await self._forks.close()
            async with asyncio.TaskGroup() as group:
                beside = {"watch": self._watch(), "stop": self._stop_on(interrupts)}
                if self._plan.in_process:
                    from kadcrawl.cli.local.child_task import drop_pages  # It is loaded: the peers are built.

                    beside["drop pages"] = drop_pages()
                tasks = [group.create_task(work, name=name) for name, work in beside.items()]
                try:
                    await self._bring_together(self._children)
                except StartError:
                    if not self._stopping.is_set():  # Else a peer found that those it wanted to join had ended.
                        raise
                feed = group.create_task(self._feed(), name="feed")
                await self._tend()
                for one in (feed, *tasks):
                    one.cancel()
        finally:
            for task in self._waiting:
                task.cancel()
            await asyncio.gather(*self._waiting, return_exceptions=True)
            await asyncio.gather(self._forks.close(), *(child.close() for child in self._children))
        if self._feed_error is not None:
            raise self._feed_error
        return self._summary(asyncio.get_running_loop().time() - began)

    async def _bring_together(self, children: Sequence[Child]) -> None:
        """Start these, so that all are one swarm. Raises StartError.

        They join those alive. Where none is, the first begins anew: paused, so that nothing is fetched before every
        peer is there with its range and what it knows to be done.
        """
        alive = [child for child in self._children if child.alive]
        children = [child for child in children if not child.alive]
        if not alive:
            self._going = False
            await self._start(children[0], [])
            if self._plan.in_process:  # Processes do so themselves.
                give_back_again()
            alive, children = list(children[:1]), children[1:]
        bootstrap = [child.address for child in alive if child.address is not None]
        starts = (self._start(child, bootstrap) for child in children)
        for outcome in await asyncio.gather(*starts, return_exceptions=True):
            if outcome is not None:
                raise outcome
        if self._plan.in_process:
            give_back_again()
        if not self._going:
            plan = self._plan
            addresses, self._addresses = self._addresses, ()
            for sentence in addresses:
                self._progress.say(sentence)
            limits = limits_with(Limits(fetches_max=plan.machine.fetches), plan.job.shared_limits)
            begun = sum(child.pages_begun for child in self._children)
            job = changed(plan.job, plan.changes)
            expected = () if plan.is_over else plan.seeds
            expectation = Expectation(job, expected, limits, len(self._children), pages_begun=begun)
            self._progress.expect(job, expectation)
            named_again, self._named_again = self._named_again, ()
            again = await alive[0].go(plan.seeds, resume=not self._holds, named_again=named_again)
            if again:
                self._progress.say(f"kadcrawl: {failed_before(again)}")
            self._going = True
            for child in self._children:
                if child.row is not None and child.row.state is PeerState.PAUSED:
                    # As all were until now: the next one says what it does.
                    child.row = msgspec.structs.replace(child.row, state=PeerState.STARTING)

    async def _feed(self) -> None:
        """Read the seeds of a file or pipe into the swarm, if there are any. A failure ends the crawl."""
        plan = self._plan
        if plan.seeds_file is None or self._stopping.is_set():
            return
        from kadcrawl.cli.local.local_feed import LocalFeed  # Not at the top: it loads the link.

        feed = LocalFeed(
            seeds=plan.seeds_file,
            job=plan.job,
            key=self._swarm_key(),
            peers=lambda: [child.address for child in self._children if child.alive and child.address is not None],
            say=self._progress.say,
            let_go=self._let_go,
        )
        try:
            await feed.run(has_seeds=bool(plan.seeds))
        except* KadcrawlError as errors:
            if not self._stopping.is_set():  # Else the peers have ended.
                self._feed_error = next(error for error in leaves_of(errors) if isinstance(error, KadcrawlError))
                self._finish()

    async def _let_go(self) -> None:
        """Let the whole swarm fetch, by the first peer that can say so."""
        self._holds = False
        for child in self._children:
            if child.alive:
                with suppress(StartError):  # If all die now, they begin anew without a pause.
                    await child.go([])
                    return

    async def _start(self, child: Child, bootstrap: Sequence[tuple[str, int]]) -> None:
        """Start one peer. Raises StartError, also if the crawl is to end."""
        plan, interval_s = self._plan, self._progress.sites_interval_s
        machine = plan.machine.of_peer(child.number)
        async with self._start_slots:
            if self._stopping.is_set():
                raise StartError(f"{child.name} was not started, as the crawl is to end")
            await child.start(plan.job, plan.allow_networks, bootstrap, machine, self._swarm_key(), interval_s)

    def _swarm_key(self) -> SwarmKey | None:
        """Return the key of the running peers, which may have been changed since, or the plan's key."""
        begun = (child.directory / SWARM_KEY for child in self._children if child.address is not None)
        return next((read_kept_key(path) for path in begun if path.exists()), self._plan.swarm_key)

    async def _tend(self) -> None:
        """Wait until all peers end, and start dead peers again as the plan says. Raises StartError."""
        self._wait_for(self._children)
        while self._waiting:
            over = not self._stopping.is_set() and any(child.ended_with_all for child in self._children)
            timeout = END_S if over else None
            done, _ = await asyncio.wait(self._waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                for child in self._waiting.values():
                    self._progress.say(
                        f"{child.name} has not noticed the end of the crawl within {END_S:g} s; killing it"
                    )
                    child.kill()
            died = [child for task in done if not task.result() and (child := self._waiting[task])]
            for task in done:
                del self._waiting[task]
            for child in died:
                child.died(asyncio.get_running_loop().time())
            if self._stopping.is_set():
                continue
            if not self._waiting and not any(child.ended for child in self._children):
                await self._begin_anew(died)
            elif self._plan.respawn and self._plan.data.is_dir() and not any(child.ended for child in self._children):
                for child in died:
                    await self._respawn(child)
            else:
                for child in died:
                    self._progress.say(f"{child.exit_report}; the others go on with what it had")

    def _wait_for(self, children: Sequence[Child]) -> None:
        for child in children:
            if child.was_started:
                self._waiting[asyncio.create_task(child.wait(), name=child.name)] = child

    async def _begin_anew(self, died: Sequence[Child]) -> None:
        """All have died: start all again, on their directories. Raises StartError if that does not help."""
        for child in died:
            if not child.directory.is_dir():  # On an empty one it would fetch all pages again, and nobody wants that.
                raise StartError(child.exit_report)
            self._progress.say(f"{child.exit_report}, the last of all; starting all again on their directories")
            if not child.may_be_started:
                raise StartError(f"{child.exit_report}, too often; the same command goes on with the crawl")
        for attempt in range(REVIVE_TRIES):
            dead = [child for child in self._children if not child.alive]
            try:
                await self._bring_together(dead)
                break
            except StartError:
                if self._stopping.is_set():
                    break
                # One that has just begun may have been killed as well.
                if attempt == REVIVE_TRIES - 1:
                    raise
                await asyncio.gather(*(child.close() for child in self._children))
                await asyncio.sleep(REVIVE_WAIT_S)
        self._wait_for(self._children)

    async def _respawn(self, child: Child) -> None:
        """Start a dead peer again while others live. If that fails, the others go on without it."""
        if not child.may_be_started:
            self._progress.say(f"{child.exit_report}, too often to start it again; the others go on with what it had")
            return
        self._progress.say(f"{child.exit_report}; starting it again on its directory")
        for _ in range(REVIVE_TRIES):
            if self._stopping.is_set() or not any(other.alive for other in self._children):
                return  # All have died, which will be seen.
            try:
                await self._bring_together([child])
            except StartError as error:
                why = error  # Those it was to join may have died meanwhile, and nobody had seen it yet.
                if self._replaced_if_broken(child):
                    continue
                await asyncio.sleep(REVIVE_WAIT_S)
            else:
                self._wait_for([child])
                return
        child.dead = True
        self._progress.say(f"{child.name} cannot be started again ({why}); the others go on with what it had")

    def _replaced_if_broken(self, child: Child) -> bool:
        """Put a directory with a damaged journal aside, so that the peer gets an empty directory."""
        from kadcrawl.cli.local.salvage import is_broken

        if not is_broken(child.directory):
            return False
        names = (child.directory.with_name(f"{child.name}.broken-{number}") for number in count(1))
        aside = next(name for name in names if not name.exists())  # An earlier run may have put others aside.
        child.directory.rename(aside)
        self._progress.say(f"the journal of {child.name} is damaged; it is kept as {aside}, and the peer begins anew")
        return True

    def _summary(self, seconds: float) -> Summary:
        """Add up the figures of all peers, and the URLs that the dead leave."""
        dead = [child for child in self._children if child.dead]
        rows, orders, unreadable = last_rows(self._children, self._plan.data, self._plan.job)
        for journal in unreadable:
            self._progress.say(f"kadcrawl: {journal.lacking(self._plan.data)}")
        orders = [*orders, *(order for child in self._children for order in child.orders)]
        summary = add_up(rows, seconds, self._plan.job, orders)
        summary = replace(summary, damaged_journals=[str(one.directory) for one in unreadable])
        if dead:
            summary = with_pages_lost(summary, rows, self._plan.job)
        directories = peer_directories(self._plan.data)
        if summary.urls_done > LINES_COMPARED_MAX:
            return replace(summary, failed_examples=by_counted_reason(examples_at_the_ends(directories)))
        logs = PageLogs(directories, self._plan.job)
        left_behind = 0
        if (
            dead
            and self._plan.job.max_pages is None
            and not summary.limit_reached
            and not (self.interrupted or self.stopped)
        ):
            from kadcrawl.cli.local.salvage import pending_urls

            left_behind = logs.lacking(url for child in dead for url in pending_urls(child.directory))
        # A peer counts what it finished twice itself, but not what two peers finished.
        return replace(summary, duplicates=logs.repeats, left_behind=left_behind, failed_examples=logs.failed_examples)

    async def _watch(self) -> None:
        """Show the reports of the peers."""
        shown: dict[str, PeerState | None] = {}
        warned_at, reads_seeds = -inf, True  # The peers begin paused, also for the seeds of the command.
        while True:
            await asyncio.sleep(SHOW_INTERVAL_S)
            now = asyncio.get_running_loop().time()
            for child in self._children:
                if child.warning is not None and now >= warned_at + WARNING_INTERVAL_S:
                    self._progress.say(f"kadcrawl: {child.name}: {child.warning}")
                    warned_at = now
                child.warning = None
                state = child.row.state if child.row is not None else None
                before = shown.get(child.name)
                self.reached_nothing = self.reached_nothing or state is PeerState.NO_NETWORK
                if state is not None and state != before and state in MACHINE_PAUSES:
                    self._progress.say(f"{child.name} {state_text(state)}")
                elif state not in (before, PeerState.DIED) and before in MACHINE_PAUSES:
                    self._progress.say(f"{child.name} goes on")
                shown[child.name] = state
            rows = [child.row for child in self._children if child.row is not None]
            if rows and self._going:  # Until then they wait for each other, and say that they are paused.
                sites = merge_reports(child.sites for child in self._children)
                # Peers tell their states every so often: just after the seeds are read they still seem paused.
                is_paused = any(row.state is PeerState.PAUSED for row in rows)
                reads_seeds = self._holds or (reads_seeds and is_paused)
                self._progress.update(rows, sites, reads_seeds=reads_seeds)

    async def _stop_on(self, interrupts: Interrupts) -> None:
        await interrupts.first.wait()
        self._stopping.set()
        self._progress.say("finishing what is under way (Ctrl-C again to force) ...")
        self._finish()

    def _finish(self) -> None:
        for child in self._children:
            child.finish()
