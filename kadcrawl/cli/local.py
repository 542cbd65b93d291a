"""A whole swarm on this machine: `kadcrawl crawl` starts N peers as processes, brings them together, and watches.

The parent owns no URL and decides nothing: it starts peers, waits until all have joined, hands one of them the seeds,
and shows and adds up the figures they report (see `pipe`). A peer that dies is started again on its directory, so
nothing it had journaled is lost; the dead join the living, or begin anew together, so that there is always one swarm.
As the parent runs as long as its peers do and costs start-up time on top of theirs, it loads nothing of the crawl or
the overlay.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from kadcrawl.cli.pipe import LINE_BYTES_MAX, Assignment, Doing, Final, Go, Going, Ready, Report, Unable, line
from kadcrawl.cli.progress import Progress
from kadcrawl.cli.run import Interrupts
from kadcrawl.cli.summary import LINES_COMPARED_MAX, Summary, add_up, repeats
from kadcrawl.config import Job
from kadcrawl.errors import StartError
from kadcrawl.link.messages import PeerRow

RESTARTS_MAX = 3
"""Per peer; one that dies more often has a reason that starting it again does not cure."""
REVIVE_TRIES = 4
REVIVE_WAIT_S = 1.0
SHOW_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be crawled, by how many, and where."""

    seeds: Sequence[str]
    job: Job
    peers: int
    data: Path
    allow_networks: tuple[str, ...]


def peers_of(data: Path) -> list[int]:
    """Return the numbers of the peers that have a directory below `data`: each may hold URLs nobody else knows."""
    names = (path.name.removeprefix("peer-") for path in data.glob("peer-*") if path.is_dir())
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal() and str(int(name)) == name)


class Child:
    """One peer's process, and the next one if it dies."""

    def __init__(self, number: int, directory: Path) -> None:
        self.name = f"peer-{number}"
        self.directory = directory
        self.address: tuple[str, int] | None = None
        """Where it listens, once it is ready."""
        self.row: PeerRow | None = None
        """What it has done, as far as it said."""
        self.ended = False
        """It has said that it ends as asked."""
        self.restarts = 0
        self.exit_status: int | None = None
        """Of the process `wait` has seen the end of."""
        self._process: asyncio.subprocess.Process | None = None
        self._answers: asyncio.Queue[Report | None] = asyncio.Queue()
        self._reading: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """Whether the peer is ready and has neither ended nor died, as far as is known."""
        running = self._process is not None and self._process.returncode is None
        return running and self.address is not None and not self.ended

    async def start(self, plan: Plan, bootstrap: Sequence[tuple[str, int]]) -> None:
        """Start the process and wait until it is ready. Raises StartError with its own reason if it cannot start."""
        self.address = None
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from kadcrawl.cli.child import main; main()",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is the parent's to understand.
            limit=LINE_BYTES_MAX,
        )
        self._answers = asyncio.Queue()
        self._reading = asyncio.create_task(self._read(self._process, self._answers), name=f"read {self.name}")
        self._say(Assignment(str(self.directory), plan.job, plan.allow_networks, list(bootstrap)))
        try:
            report = await _next(self._answers)
        except StartError:
            await self.close()  # So that its directory is free.
            raise
        if not isinstance(report, Ready):
            raise StartError(f"{self.name} ended before it was ready; see {self.directory}/peer.log")
        self.address = report.address

    async def go(self, seeds: Sequence[str]) -> None:
        """Hand over the seeds and let the swarm fetch. Raises StartError if that cannot be done."""
        self._say(Go(list(seeds)))
        while not isinstance(report := await _next(self._answers), Going | Final):
            if report is None:
                raise StartError(f"{self.name} died at the start (log {self.directory}/peer.log)")

    async def wait(self) -> bool:
        """Wait until the process ends; return whether it ended as asked. Raises StartError if it was Unable."""
        assert self._process is not None, "started before waited for"
        assert self._reading is not None, "a started process is read from"
        # Of this process, even if the next one is started before we notice the end.
        process, answers, reading = self._process, self._answers, self._reading
        await reading
        self.exit_status = await process.wait()
        while await _next(answers) is not None:
            pass
        return self.ended

    def finish(self) -> None:
        """Let the peer finish what is under way and end."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def close(self) -> None:
        """Kill the process if it still runs, and see it end."""
        if self._process is not None and self._reading is not None:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()
            await self._reading

    def _say(self, message: Assignment | Go) -> None:
        assert self._process is not None, "started before talked to"
        assert self._process.stdin is not None, "stdin is a pipe"
        if not self._process.stdin.is_closing():  # Else it is dead, which the end of its answers tells.
            self._process.stdin.write(line(message))

    async def _read(self, process: asyncio.subprocess.Process, answers: "asyncio.Queue[Report | None]") -> None:
        """Take in what the process says, always: it must not wait for us. The answers end with None."""
        assert process.stdout is not None, "stdout is a pipe"
        try:
            while (said := await process.stdout.readline()).endswith(b"\n"):
                report = msgspec.json.decode(said, type=Report)
                if isinstance(report, Doing | Final):
                    self.row = report.row
                if not isinstance(report, Doing):
                    self.ended = self.ended or isinstance(report, Final)
                    answers.put_nowait(report)
        finally:
            answers.put_nowait(None)


async def _next(answers: "asyncio.Queue[Report | None]") -> Report | None:
    """Return the next answer, None when the process is ending. Raises StartError if it is Unable."""
    report = await answers.get()
    if report is None:
        answers.put_nowait(None)  # For whoever asks next.
    if isinstance(report, Unable):
        raise StartError(report.why)
    return report


class Swarm:
    """The processes of one local crawl."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        known = peers_of(plan.data)
        numbers = sorted({*range(1, plan.peers + 1), *known})
        self._children = [Child(number, plan.data / f"peer-{number}") for number in numbers]
        if len(numbers) > plan.peers:
            progress.say(
                f"{plan.data} holds the work of {len(known)} peers, so {len(numbers)} are started, not {plan.peers}"
            )
        self._going = False
        """The swarm has been told to fetch since it last began."""
        self._reviving = asyncio.Lock()
        self._stopping = asyncio.Event()

    @property
    def interrupted(self) -> bool:
        """Whether a person ended it."""
        return self._stopping.is_set()

    async def run(self) -> Summary:
        """Crawl to the end, or until interrupted. Raises StartError."""
        interrupts = Interrupts()
        began = asyncio.get_running_loop().time()
        try:
            await self._bring_together()
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(), name="watch")
                ends = [group.create_task(self._tend(child), name=child.name) for child in self._children]
                stop = group.create_task(self._stop_on(interrupts), name="stop")
                await asyncio.wait(ends)
                watch.cancel()
                stop.cancel()
        finally:
            await asyncio.gather(*(child.close() for child in self._children))
        rows = [child.row for child in self._children if child.row is not None]
        summary = add_up(rows, asyncio.get_running_loop().time() - began)
        if summary.urls_done > LINES_COMPARED_MAX:
            return summary
        # A peer counts what it finished twice itself, but not what two peers finished.
        return replace(summary, duplicates=repeats(child.directory for child in self._children))

    async def _bring_together(self) -> None:
        """Start every peer that is not alive, so that all are one swarm. Raises StartError.

        They join those alive. Where none is, the first begins anew: paused, so that nothing is fetched before every
        peer is there with its range and what it knows to be done.
        """
        alive = [child for child in self._children if child.alive]
        dead = [child for child in self._children if not child.alive and not child.ended]
        if not alive:
            self._going = False
            await dead[0].start(self._plan, [])
            alive, dead = dead[:1], dead[1:]
        bootstrap = [child.address for child in alive if child.address is not None]
        outcomes = await asyncio.gather(*(child.start(self._plan, bootstrap) for child in dead), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        if not self._going:
            await alive[0].go(self._plan.seeds)
            self._going = True

    async def _tend(self, child: Child) -> None:
        """See the child to its end, starting it again if it dies."""
        while not await child.wait() and not self._stopping.is_set():
            said = f"{child.name} died (exit status {child.exit_status}, log {child.directory}/peer.log)"
            if child.restarts == RESTARTS_MAX:
                raise StartError(f"{said} for the {child.restarts + 1}th time; the crawl can be continued later")
            child.restarts += 1
            self._progress.say(f"{said}: starting it again on its directory")
            async with self._reviving:
                await self._revive(child)
            if self._stopping.is_set():
                self._finish()

    async def _revive(self, child: Child) -> None:
        """Bring the child back, with all who died as well; one by one, as each must know who is alive."""
        for attempt in range(REVIVE_TRIES):
            if child.alive or self._stopping.is_set():
                return
            try:
                await self._bring_together()
            except StartError:
                # The peers it was to join may have died meanwhile, and nobody had seen it yet.
                if attempt == REVIVE_TRIES - 1:
                    raise
                await asyncio.sleep(REVIVE_WAIT_S)

    async def _watch(self) -> None:
        """Show what the peers say they do."""
        while True:
            await asyncio.sleep(SHOW_INTERVAL_S)
            self._progress.update([child.row for child in self._children if child.row is not None])

    async def _stop_on(self, interrupts: Interrupts) -> None:
        await interrupts.first.wait()
        self._stopping.set()
        self._progress.say("finishing what is under way (Ctrl-C again to force) ...")
        self._finish()

    def _finish(self) -> None:
        for child in self._children:
            child.finish()
