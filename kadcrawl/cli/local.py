"""A whole swarm on this machine: `kadcrawl crawl` starts N peers as processes, brings them together, and watches.

The parent owns no URL and decides nothing: it starts peers, waits until all have joined, hands one of them the seeds,
and shows and adds up the figures they report (see `pipe`). A peer that dies is started again on its directory, so
nothing it had journaled is lost. As the parent runs as long as its peers do and costs start-up time on top of
theirs, it loads nothing of the crawl or the overlay.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kadcrawl.cli.pipe import LINE_BYTES_MAX, Assignment, Doing, Final, Go, Going, Ready, Report, Unable, line
from kadcrawl.cli.progress import Progress
from kadcrawl.cli.run import Interrupts
from kadcrawl.cli.summary import Summary, add_up
from kadcrawl.config import Job
from kadcrawl.errors import StartError
from kadcrawl.link.messages import PeerRow

RESTARTS_MAX = 3
"""Per peer; one that dies more often has a reason that starting it again does not cure."""
SHOW_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be crawled, by how many, and where."""

    seeds: Sequence[str]
    job: Job
    peers: int
    data: Path
    allow_networks: tuple[str, ...]


class Child:
    """One peer process."""

    def __init__(self, number: int, directory: Path) -> None:
        self.name = f"peer-{number}"
        self.directory = directory
        self.address: tuple[str, int] | None = None
        """Where it listens, while it does."""
        self.row: PeerRow | None = None
        """What it has done, as far as it said."""
        self.restarts = 0
        self._ended = False
        """It has said that it ends as asked."""
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, plan: Plan, bootstrap: Sequence[tuple[str, int]]) -> None:
        """Start the process and wait until it is ready. Raises StartError with its own reason if it cannot start."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from kadcrawl.cli.child import main; main()",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is the parent's to understand.
            limit=LINE_BYTES_MAX,
        )
        self._say(Assignment(str(self.directory), plan.job, plan.allow_networks, list(bootstrap)))
        report = await self._report()
        if not isinstance(report, Ready):
            raise StartError(f"{self.name} ended before it was ready; see {self.directory}/peer.log")
        self.address = report.address

    async def go(self, seeds: Sequence[str]) -> None:
        """Hand over the seeds and let the swarm fetch. Raises StartError if that cannot be done."""
        self._say(Go(list(seeds)))
        while not isinstance(report := await self._report(), Going | Final):
            if report is None:
                raise StartError(f"{self.name} died at the start (log {self.directory}/peer.log)")

    async def wait(self) -> bool:
        """Wait until the process ends; return whether it ended as asked."""
        assert self._process is not None, "started before waited for"
        while await self._report() is not None:
            pass
        await self._process.wait()
        self.address = None
        return self._ended

    def finish(self) -> None:
        """Let the peer finish what is under way and end."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    @property
    def exit_status(self) -> int | None:
        return self._process.returncode if self._process else None

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def _say(self, message: Assignment | Go) -> None:
        assert self._process is not None, "started before talked to"
        assert self._process.stdin is not None, "stdin is a pipe"
        self._process.stdin.write(line(message))

    async def _report(self) -> Report | None:
        """Return the next report, None when the process is ending. Raises StartError if it is Unable."""
        assert self._process is not None, "started before read from"
        assert self._process.stdout is not None, "stdout is a pipe"
        said = await self._process.stdout.readline()
        report = msgspec.json.decode(said, type=Report) if said.endswith(b"\n") else None
        match report:
            case Doing(row):
                self.row = row
            case Final(row):
                self.row, self._ended = row, True
            case Unable(why):
                raise StartError(why)
        return report


class Swarm:
    """The processes of one local crawl."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._children = [Child(n, plan.data / f"peer-{n}") for n in range(1, plan.peers + 1)]
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
            await self._gather()
            await self._children[0].go(self._plan.seeds)
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(), name="watch")
                ends = [group.create_task(self._tend(child), name=child.name) for child in self._children]
                stop = group.create_task(self._stop_on(interrupts), name="stop")
                await asyncio.wait(ends)
                watch.cancel()
                stop.cancel()
        finally:
            for child in self._children:
                child.kill()
        rows = [child.row for child in self._children if child.row is not None]
        return add_up(rows, asyncio.get_running_loop().time() - began)

    async def _gather(self) -> None:
        """Start all peers, the first paused, so that nothing is fetched before every one has its range."""
        first, *others = self._children
        await first.start(self._plan, [])
        assert first.address is not None, "a ready peer has an address"
        async with asyncio.TaskGroup() as group:
            for child in others:
                group.create_task(child.start(self._plan, [first.address]), name=f"start {child.name}")

    async def _tend(self, child: Child) -> None:
        """See the child to its end, starting it again if it dies."""
        while not await child.wait() and not self._stopping.is_set():
            said = f"{child.name} died (exit status {child.exit_status}, log {child.directory}/peer.log)"
            if child.restarts == RESTARTS_MAX:
                raise StartError(f"{said} for the {child.restarts + 1}th time; the crawl can be continued later")
            child.restarts += 1
            self._progress.say(f"{said}: starting it again on its directory")
            others = [other.address for other in self._children if other.address is not None]
            await child.start(self._plan, others)
            if not others:
                await child.go([])
            if self._stopping.is_set():
                child.finish()

    async def _watch(self) -> None:
        """Show what the peers say they do."""
        while True:
            await asyncio.sleep(SHOW_INTERVAL_S)
            self._progress.update([child.row for child in self._children if child.row is not None])

    async def _stop_on(self, interrupts: Interrupts) -> None:
        await interrupts.first.wait()
        self._stopping.set()
        self._progress.say("finishing what is under way (Ctrl-C again to force) ...")
        for child in self._children:
            child.finish()
