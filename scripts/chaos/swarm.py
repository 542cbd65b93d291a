"""A swarm of real `kadcrawl start` and `kadcrawl join` processes, for faults. `chaos` makes them happen.

Everything here goes through a person's means: commands, signals, directories. The standard error of a process goes to a
file and names its address. Its results stand in its directory. No process outlives the swarm's context.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self

from kadcrawl.members.swarm_key import SwarmKey
from scripts.chaos.dealt_web import DealtWeb
from scripts.chaos.machines import OnHub
from scripts.chaos.parted import NetworkSplit
from scripts.chaos.peer_process import KADCRAWL, PROCESS_POLL_S, PeerProcess
from scripts.kadcrawl_run import page_lines

CONTACT: Final = "chaos@example.org"
"""The contact, needed wherever the web is not on loopback."""
ENTRY: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "entry.sh"
"""The command of the containers."""
LATE: Final = 0.97
"""Share of the pages after which the crawl may end at any time."""


class OverError(Exception):
    """The crawl is nearly over: a victim may have ended by itself."""


class ProcessSwarm:
    """Async context manager: peers below `directory` that crawl `web`, asking each site every `delay_s` seconds."""

    def __init__(self, directory: Path, web: DealtWeb, delay_s: float) -> None:
        self.directory = directory
        self._key = SwarmKey.generate().text
        self.processes: list[PeerProcess] = []
        """All that were ever started."""
        self.left: list[PeerProcess] = []
        """Peers that were told to hand over and leave."""
        self.leaves: list[PeerProcess] = []
        self.events: list[str] = []
        """The faults and their victims so far, each with the share of pages fetched by then."""
        self.kills: list[float] = []
        """When peers were killed, on the access log's clock."""
        self.parting: NetworkSplit | None = None
        """The network split, or None."""
        self._web = web
        self._delay_s = delay_s

    async def __aenter__(self) -> Self:
        self.directory.mkdir(parents=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for peer in self.processes:
            if peer.process.returncode is None:
                peer.process.kill()
        await asyncio.gather(*(peer.process.wait() for peer in self.processes))

    @property
    def living(self) -> list[PeerProcess]:
        """Full peers that run and are to go on running, in the order of their start."""
        return [peer for peer in self.processes if peer.living and peer not in (*self.left, *self.leaves)]

    @property
    def share(self) -> float:
        """The share of the web's pages that have been asked for, 0 to 1."""
        return len(self._web.fetched.keys() & self._web.truth.keys()) / len(self._web.truth)

    @property
    def logged(self) -> bool:
        """True if every page of the web has a line in some page log."""
        return self._web.truth.keys() <= {line.url for line in page_lines(self.directory)}

    def note(self, what: str, *names: str) -> None:
        """Remember a fault and its victims."""
        self.events.append(" ".join([f"{self.share:.0%}", what, *names]))

    # --- life ----------------------------------------------------------------------------------------------------

    async def begin(self, count: int, options: Sequence[str] = (), leaves: int = 0) -> None:
        """Start peers and leaves, and hand the seeds to one of the peers once all have joined."""
        job = ["--delay", str(self._delay_s), "--contact", CONTACT, *options]
        first = await self._start("peer-1", ["start", *job, "--exit-when-done", *self._listening("peer-1")])
        await first.ready()
        await asyncio.gather(*[self.join(f"peer-{number}") for number in range(2, count + 1)])
        for number in range(1, leaves + 1):
            leaf = ["join", "--leaf", "--bootstrap", first.address, "--exit-when-done"]
            self.leaves.append(await self._start(f"leaf-{number}", leaf))
        await first.command("add", *self._web.seeds)

    async def join(self, name: str) -> PeerProcess:
        """Start a peer on the directory of this name. Return once the peer has joined a living peer.

        Raises OverError if all others ended before that.
        """
        bootstrap = [argument for peer in self.living if peer.address for argument in ("--bootstrap", peer.address)]
        if not bootstrap:
            raise OverError
        peer = await self._start(name, ["join", *bootstrap, "--exit-when-done", *self._listening(name)])
        try:
            await peer.ready()
        except RuntimeError:
            if any(other.living for other in self.processes):
                raise
            peer.exit_expected = peer.process.returncode or 0
            raise OverError from None
        return peer

    async def enter_pod(self, name: str) -> PeerProcess:
        """Start the peer of this name again as its container does: by the entry script, and variables.

        Returns once the peer is in. Raises OverError if all others ended before that.
        """
        bootstrap = " ".join(peer.address for peer in self.living if peer.address)
        if not bootstrap:
            raise OverError
        number = int(name.rpartition("-")[2]) - 1
        variables = {"POD_NAME": f"kadcrawl-{number}", "KADCRAWL_BOOTSTRAP": bootstrap}
        arguments = ["--exit-when-done", *self._listening(name)]
        peer = await self._start(name, arguments, ("/bin/sh", str(ENTRY)), variables)
        await peer.ready()
        return peer

    async def until(self, share: float) -> None:
        """Wait until this share of the pages has been asked for, or until the end."""
        while self.share < share and self.living:  # noqa: ASYNC110 -- the processes tell nobody
            await asyncio.sleep(PROCESS_POLL_S)

    async def stop(self) -> None:
        """Stop the whole swarm once all pages stand in page logs. A page that is only asked for has no line yet."""
        while not self.logged and self.living:  # noqa: ASYNC110 -- the processes tell nobody
            await asyncio.sleep(PROCESS_POLL_S)
        self.note("kadcrawl stop")
        if self.living:
            await self.living[0].command("stop")

    async def end(self, within_s: float) -> list[str]:
        """Wait until every process has ended. Kill the others after `within_s` seconds, and return their names."""
        waiting = [asyncio.create_task(peer.process.wait(), name=peer.name) for peer in self.processes]
        _, late = await asyncio.wait(waiting, timeout=within_s)
        for peer in self.processes:
            if peer.process.returncode is None:
                peer.process.send_signal(signal.SIGKILL)
        await asyncio.gather(*waiting)
        return sorted(task.get_name() for task in late)

    def chosen(self, random: Random, count: int = 1) -> list[PeerProcess]:
        """Choose peers as victims of a fault. Raises OverError if the crawl is about to end."""
        if self.share > LATE:
            raise OverError
        return random.sample(self.living, count)

    # --- what can happen to a peer -------------------------------------------------------------------------------

    async def kill(self, peers: Sequence[PeerProcess]) -> None:
        """Kill these at one instant."""
        self.note("SIGKILL", *(peer.name for peer in peers))
        self.kills.append(asyncio.get_running_loop().time())
        for peer in peers:
            peer.exit_expected = -signal.SIGKILL
            peer.process.kill()
        await asyncio.gather(*(peer.process.wait() for peer in peers))

    async def freeze(self, peer: PeerProcess, seconds: float) -> None:
        """Stop a peer in mid-instruction, and let it go on after so long."""
        self.note(f"SIGSTOP {seconds:g} s", peer.name)
        peer.process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            peer.process.send_signal(signal.SIGCONT)
        self.note("SIGCONT", peer.name)

    def delete_disk(self, peer: PeerProcess) -> None:
        """Delete a dead peer's directory, but keep its page log for the judge."""
        aside = self.directory / "deleted" / peer.name
        aside.mkdir(parents=True)
        for log in peer.directory.glob("pages*.json*"):  # With its parts and their index.
            shutil.copy(log, aside)
        shutil.rmtree(peer.directory)

    async def leave(self, peer: PeerProcess) -> None:
        """Tell a peer to hand its range over and go."""
        self.note("kadcrawl leave", peer.name)
        self.left.append(peer)
        await peer.command("leave")

    def terminate(self, peer: PeerProcess) -> None:
        """Do as an administrator does."""
        self.note("SIGTERM", peer.name)
        self.left.append(peer)
        peer.exit_expected = 11
        peer.process.terminate()

    async def part(self, few: Sequence[PeerProcess], seconds: float, *, one_way: bool = False) -> None:
        """Cut some peers off from all other peers for so long, though not from the web. `one_way`: only their own
        packets."""
        machines = self._web.machines
        assert isinstance(machines, OnHub), "nothing is cut on loopback"
        inside = {peer.machine.address for peer in few}
        outside = {peer.machine.address for peer in self.processes} - inside
        names = [peer.name for peer in few]
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.note(f"{'what they send is cut' if one_way else 'cut off'} for {seconds:g} s:", *names)
        machines.faults.cut(inside, outside)
        if not one_way:
            machines.faults.cut(outside, inside)
        try:
            await asyncio.sleep(seconds)
        finally:
            machines.faults.heal()
            self.parting = NetworkSplit(frozenset(inside), began, loop.time())
        self.note("healed:", *names)

    # --- inside --------------------------------------------------------------------------------------------------

    def _listening(self, name: str) -> list[str]:
        return ["--listen", f"{self._web.machines.peer(name).address}:0"]

    async def _start(
        self,
        name: str,
        arguments: Sequence[str],
        program: Sequence[str] = (KADCRAWL,),
        variables: Mapping[str, str] | None = None,
    ) -> PeerProcess:
        directory = self.directory / name
        machine = self._web.machines.peer(name)
        said = self.directory / f"{name}.{sum(peer.name == name for peer in self.processes) + 1}.said"
        options = ["--data", str(directory), "--allow-network", self._web.machines.network]
        with said.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *machine.prefix,
                *program,
                *arguments,
                *options,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                env={name: value for name, value in os.environ.items() if not name.startswith("KADCRAWL_")}
                | {
                    "KADCRAWL_KEY": self._key,
                    "PATH": os.pathsep.join([str(Path(KADCRAWL).parent), *os.get_exec_path()]),
                }
                | dict(variables or {}),
            )
        peer = PeerProcess(name, machine, directory, said, process)
        self.processes.append(peer)
        return peer
