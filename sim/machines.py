"""Machines that run the unmodified `kadcrawl.Peer` in a simulated world, and the faults that can happen to them.

A machine keeps its number, address and disk through its incarnations. Each boot makes a new host and a new `Peer`. A
`Machines` object owns all machines, gives them their `Environment`, and collects unhandled exceptions and error logs
(`errors`). While it is open, aiohttp takes its time and chance from the world too, and resolves names by the web.
"""

import asyncio
import contextlib
import logging
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from email.utils import formatdate
from functools import lru_cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Protocol, Self
from unittest import mock

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http_websocket import WebSocketWriter

from kadcrawl import Leaf, Peer
from kadcrawl.balance.training_data import save_network
from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.errors import DiskFullError, RemoteError, StartError
from kadcrawl.overlay import OverlaySettings
from kadcrawl.peer.dashboard.event_watch import TAPS
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.swarm.seeds import each, stream_seeds
from kadcrawl.settings.config import PORT_DEFAULT, Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.system.peer_name import peer_name

from .disk import Disk, DiskState
from .job_rules import SECRETS
from .loop import SimLoop
from .machine_powers import NETWORK, profile_of
from .network import HOST, Host

WEB_NETWORKS = ("198.18.0.0/15",)
"""The addresses of the simulated web (RFC 2544: for tests only)."""
EPOCH = 1_767_225_600.0
"""The world's time at the beginning, in seconds since 1970: 2026-01-01."""
BOOTSTRAPS = 3
"""The number of addresses that a joiner gets."""
REJOIN_S = 1.0
"""Seconds before a machine whose peer could not join starts it again."""
JOURNAL_PAGE_BYTES = 1024
"""Size of a page of the simulated journals. They are small, and each of their tables takes a page in memory and on a
disk in memory."""
MEMORY_BYTES = 50_000_000
"""The memory that each machine tells dashboards. That of this process would not be the same in each run."""
RESOLVE_S = 0.005
STREAM_AFTER_S = 1.0
"""Seconds after which the first machine streams seeds: some of the others have joined by then."""


class Names(Protocol):
    """Interface of a simulated web that resolves its host names."""

    def address(self, host: str) -> str | None:
        """Return the IP of a host name, or None if there is no such host."""


class WebResolver(AbstractResolver):
    """Finds the addresses of the simulated web."""

    def __init__(self, web: Names) -> None:
        self._web = web

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        await asyncio.sleep(RESOLVE_S)
        ip = self._web.address(host)
        if ip is None:
            raise OSError(None, f"no such host: {host}")
        return [ResolveResult(hostname=host, host=ip, port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """Do nothing: the resolver keeps no connection open."""


class Machine:
    """One machine: its disk, its clock, and the peer it runs."""

    def __init__(self, number: int, host: Host, disk: Disk) -> None:
        self.number = number
        self.host = host
        self.disk = disk
        self.peer: Peer | None = None
        """The running peer, or the last peer."""
        self.is_leaf = False
        """The machine is behind a NAT and runs a leaf in place of a peer."""
        self.leaf: Leaf | None = None
        """The running leaf of a machine behind a NAT."""
        self.alive = False
        self.founds = False
        """The machine starts the swarm, because no other machine is there to join."""
        self.leaves = False
        self.incarnations = 0
        self.clock_s = 0.0
        """Seconds by which the machine's wall clock is ahead of the world's."""
        self.end: str | None = None
        """The end of its last peer: "killed", "done", "left", or the repr of an error."""

    def __repr__(self) -> str:
        return f"<Machine {self.number} alive={self.alive} frozen={self.frozen} end={self.end} {self.peer!r}>"

    @property
    def frozen(self) -> bool:
        return self.host.frozen

    @property
    def begun(self) -> bool:
        """The peer is part of the swarm, or about to start the swarm."""
        return self.alive and (self.founds or (self.peer is not None and self.peer.begun))

    def lines(self) -> list[dict[str, Any]]:
        """Return every page line that was ever on its disks."""
        return self.disk.lines()


class Machines:
    """All machines of one world. A context manager: on exit all are switched off and their disks destroyed.

    What remains is `errors`, and each machine's `lines`.
    """

    def __init__(
        self,
        loop: SimLoop,
        web: Names,
        *,
        job: Job,
        limits: Limits,
        work_area: int | Mapping[int, int] | None = None,
        overlay: OverlaySettings | None = None,
        seed: int = 0,
        directory: Path,
        exit_when_done: bool = False,
        streamed: Sequence[str] = (),
        begins_at: float = EPOCH,
    ) -> None:
        """The world begins at the wall-clock second `begins_at`.

        The first machine streams the seeds `streamed` beside those of the job, before anything is fetched. `work_area`
        is that of each peer, or of single machines by number. `directory` is where the disks are made: best in memory,
        e.g. below /dev/shm.
        """
        self.loop = loop
        self.machines: dict[int, Machine] = {}
        self.errors: list[str] = []
        """Unhandled exceptions and log records of level ERROR. No peer should ever cause either."""
        self._web = web
        self._job = job
        self._begins_at = begins_at
        self._streamed = streamed
        self._streamer: int | None = None
        """The machine that streams seeds, until the crawl goes on."""
        self._limits = limits
        self._work_area = work_area
        self._overlay = overlay
        self._seed = seed
        self._random = Random(f"machines {seed}")
        self._directory = directory
        self._exit_when_done = exit_when_done
        self._network: Path | None = None
        if job.lends_by == "predictive":
            self._network = directory / "network.json"
            save_network(NETWORK, self._network)
        self._closed = False
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        handler = _ErrorRecords(self._note)
        logging.getLogger().addHandler(handler)
        self._stack.callback(logging.getLogger().removeHandler, handler)
        self._stack.enter_context(
            mock.patch.multiple(
                "aiohttp.connector",
                monotonic=self.loop.time,
                random=Random(f"aiohttp {self._seed}"),
                DefaultResolver=lambda loop=None: WebResolver(self._web),
            )
        )
        self._stack.enter_context(
            mock.patch.multiple(
                "aiohttp.web_response",
                rfc822_formatted_time=lambda: _http_date(int(self.wall)),
                SERVER_SOFTWARE="aiohttp",  # The real one names the version of Python.
            )
        )
        self._stack.enter_context(mock.patch("kadcrawl.store.journal.PAGE_BYTES", JOURNAL_PAGE_BYTES))
        memory = mock.patch("kadcrawl.peer.dashboard.own_details.resident_bytes", return_value=MEMORY_BYTES)
        self._stack.enter_context(memory)
        self._stack.callback(TAPS.clear)  # Machines that are killed in the world close nothing.
        self._stack.enter_context(mock.patch.object(Guard, "permits", _permits(Guard.permits)))
        chance = Random(f"websockets {self._seed}")
        self._stack.enter_context(mock.patch("aiohttp.client.os", SimpleNamespace(urandom=chance.randbytes)))
        # The masks of frames come from the default of this argument.
        self._stack.enter_context(mock.patch.dict(WebSocketWriter.__init__.__kwdefaults__, random=chance))
        return self

    def __exit__(self, *exception: object) -> None:
        self._closed = True
        for machine in [*self.live, *self.leaves]:
            machine.alive, machine.end = False, "killed"
            machine.host.cease()  # Its tasks end with the loop, which searches all tasks once, not for each machine.
        for machine in self.machines.values():
            machine.disk.destroy()
            machine.peer = machine.leaf = None
        self._stack.close()

    @property
    def live(self) -> list[Machine]:
        """The machines that are switched on, by number, less the leaves."""
        return [machine for machine in self._switched_on if not machine.is_leaf]

    @property
    def leaves(self) -> list[Machine]:
        """The leaves that are switched on, by number."""
        return [machine for machine in self._switched_on if machine.is_leaf]

    @property
    def _switched_on(self) -> list[Machine]:
        return [machine for number in sorted(self.machines) if (machine := self.machines[number]).alive]

    @property
    def disk_bytes(self) -> int:
        """The bytes that the files of all disks take. Reading this visits each file."""
        return sum(path.stat().st_blocks * 512 for path in self._directory.rglob("*"))

    @property
    def begins_at(self) -> float:
        """The wall-clock second at which the world begins."""
        return self._begins_at

    @property
    def wall(self) -> float:
        """The world's time, in seconds since 1970."""
        return self._begins_at + self.loop.time()

    # --- faults and other events

    def start(self, number: int) -> None:
        """Boot a machine that begins the swarm with the job and its seeds."""
        self._boot(number, "none", founds=True)

    def join(self, number: int, disk: DiskState = "none") -> None:
        """Boot a machine, for the first time or again. It joins by live machines and retries until it is in the swarm.

        If no machine is left to join, this one starts the swarm again, with the content of its disk and the seeds.
        """
        self._boot(number, disk, founds=False)

    def hang(self, number: int) -> None:
        """Boot a machine behind a NAT that becomes a leaf of live machines. Every later boot makes it a leaf again."""
        self._boot(number, "none", founds=False, is_leaf=True)

    def kill(self, number: int) -> None:
        """End the peer between two of its steps. Its disk loses a part of the unsynced bytes."""
        machine = self.machines[number]
        self._stop(machine, "killed")
        machine.disk.crash()

    def freeze(self, number: int) -> None:
        """Stop the machine for now, as SIGSTOP does."""
        self.loop.freeze(self.machines[number].host)

    def thaw(self, number: int) -> None:
        """Let a frozen machine go on."""
        self.loop.thaw(self.machines[number].host)

    def leave(self, number: int) -> None:
        """Ask the peer to leave the swarm. The peer ends by itself."""
        machine = self.machines[number]
        machine.leaves = True
        if machine.leaf is not None:
            machine.leaf.leave_soon()
        if machine.peer is not None and machine.peer.begun:
            machine.host.context.copy().run(machine.peer.leave_soon)

    def full(self, number: int, full: bool) -> None:
        """Fill the machine's disk, or make room."""
        self.machines[number].disk.full = full

    def snapshot(self, number: int) -> None:
        """Keep the machine's disk as it is now for a later `join(number, "old")`."""
        assert self.machines[number].alive, f"machine {number} is switched off"
        self.machines[number].disk.snapshot()

    def jump(self, number: int, seconds: float) -> None:
        """Move the machine's wall clock. The next peer of the machine uses the new time."""
        self.machines[number].clock_s += seconds

    # --- a machine's life

    def _boot(self, number: int, state: DiskState, *, founds: bool, is_leaf: bool = False) -> None:
        host = self.loop.network.host(f"10.{number // 62_500}.{number // 250 % 250}.{number % 250 + 1}")
        machine = self.machines.get(number)
        if machine is None:
            disk = Disk(self._directory / str(number), Random(f"disk {self._seed} {number}"))
            machine = self.machines[number] = Machine(number, host, disk)
            machine.is_leaf = is_leaf
        assert not machine.alive, f"machine {number} is switched on already"
        machine.host, machine.peer, machine.leaf, machine.end = host, None, None, None
        host.hidden = machine.is_leaf
        host.context.run(peer_name.set, f"machine {number}")
        machine.alive, machine.founds, machine.leaves = True, founds, False
        machine.incarnations += 1
        machine.disk.boot(state)
        host.spawn(self._live(machine), name=f"machine {number}")

    def _stop(self, machine: Machine, end: str) -> None:
        assert machine.alive, f"machine {machine.number} is switched off already"
        machine.alive, machine.end = False, end
        self.loop.kill(machine.host)
        if machine.number == self._streamer:
            self._stream_elsewhere()

    async def _live(self, machine: Machine) -> None:
        """Run peers until the end of a peer is final."""
        host = machine.host
        end = None
        while end is None:
            try:
                end = await (self._run_leaf(machine) if machine.is_leaf else self._run_peer(machine))
            except StartError as error:
                if machine.peer is None and machine.leaf is None and not machine.disk.full:
                    # It asked no other peer yet, so no fault of the network is the reason, and it would fail for ever.
                    self._note(f"machine {machine.number} cannot begin: {error}")
                machine.peer = machine.leaf = None
                await asyncio.sleep(REJOIN_S)
            except DiskFullError:
                machine.peer, machine.leaf, machine.founds = None, None, False
                if machine.number == self._streamer:
                    self._stream_elsewhere()
                while machine.disk.full:  # noqa: ASYNC110 -- as a person would check
                    await asyncio.sleep(REJOIN_S)
            except Exception as error:
                end = repr(error)
                self._note(f"machine {machine.number} ended", error)
        if host.alive:
            self._stop(machine, end)
            machine.disk.close()

    async def _run_peer(self, machine: Machine) -> str:
        """Run a peer and return how it ended. Raises StartError, StorageError."""
        others = self._others(machine)
        machine.founds = machine.founds or not others
        config, world = self._config(machine), self._environment(machine)
        async with Peer(config, replace(self._job, seeds=()), world) as peer:
            machine.peer = peer
            if machine.founds:
                await self._found(machine, peer)
            else:
                await peer.join(self._known_of(others))
            if machine.leaves:
                peer.leave_soon()
            await peer.wait_stopped()
            await peer.finish()
        return "left" if peer.leaving else "done"

    async def _found(self, machine: Machine, peer: Peer) -> None:
        """Begin the swarm, and stream further seeds into it before it fetches anything."""
        if not self._streamed:
            await peer.crawl(self._job.seeds)
            return
        await peer.begin(paused=True)
        self._streamer = machine.number
        await peer.crawl(self._job.seeds)
        await asyncio.sleep(STREAM_AFTER_S)
        await self._stream(peer)

    async def _stream(self, peer: Peer) -> None:
        """Stream the further seeds by a peer, and let the swarm begin to fetch."""
        await stream_seeds(peer.runtime, each(self._streamed), len(self._job.seeds))
        while peer.paused:
            with contextlib.suppress(RemoteError):  # A part of the swarm is just coming or going.
                await peer.state_gossip.order("resume")
        self._streamer = None

    def _stream_elsewhere(self) -> None:
        """Have another machine stream the seeds from the beginning, as a person would who gives the command again."""
        self._streamer = None
        for machine in self.live:
            if machine.peer is not None and machine.peer.begun and not machine.peer.leaving:
                self._streamer = machine.number
                machine.host.spawn(self._stream(machine.peer))
                return

    async def _run_leaf(self, machine: Machine) -> str:
        """Run a leaf and return how it ended. Raises StartError, StorageError."""
        async with Leaf(self._config(machine), self._environment(machine)) as leaf:
            machine.leaf = leaf
            await leaf.join(self._known_of(self._others(machine)))
            if machine.leaves:
                leaf.leave_soon()
            await leaf.wait_stopped()
            await leaf.finish()
        return "left" if machine.leaves else "done"

    def _others(self, machine: Machine) -> list[str]:
        """Return the IPs of the machines that are there to join."""
        return [other.host.ip for other in self.live if other.begun and other is not machine]

    def _known_of(self, others: list[str]) -> list[tuple[str, int]]:
        """Return the addresses that a joiner gets: a sample of these IPs."""
        return [(ip, PORT_DEFAULT) for ip in self._random.sample(others, min(BOOTSTRAPS, len(others)))]

    def _config(self, machine: Machine) -> Config:
        return Config(
            data=machine.disk.directory,
            host=machine.host.ip,
            allow_networks=WEB_NETWORKS,
            exit_when_done=self._exit_when_done,
            work_area=None if machine.is_leaf else self._work_area_of(machine.number),
            limits=self._limits,
            network=self._network,
            secrets=SECRETS,
        )

    def _work_area_of(self, number: int) -> int | None:
        return self._work_area.get(number) if isinstance(self._work_area, Mapping) else self._work_area

    def _environment(self, machine: Machine) -> Environment:
        return Environment(
            random=Random(f"peer {self._seed} {machine.number} {machine.incarnations} {self.loop.time()}"),
            wall=self.wall + machine.clock_s,
            overlay=self._overlay,
            trusted_network=True,
            sync=machine.disk.sync,
            resolver=lambda: WebResolver(self._web),
            free_bytes=lambda _: 1 << 40,
            poison_pages=lambda _: PoisonPages(None),  # No page crashes a peer here.
            machine_profile=lambda _, declared: profile_of(machine.number, declared),
        )

    # --- errors

    def _note(self, what: str, error: BaseException | None = None) -> None:
        host = HOST.get(None)
        if not self._closed and (host is None or host.alive):
            trace = ["\n", *traceback.format_exception(error)] if error is not None else []
            self.errors.append(f"{self.loop.time():.3f} s, {host.ip if host else 'the world'}: {what}{''.join(trace)}")


def _permits(permits: Callable[[Guard, str], bool]) -> Callable[[Guard, str], bool]:
    """Return the guard's judgment of an address, on a host that may not ask the web: there nothing is permitted."""

    def permits_here(guard: Guard, address: str) -> bool:
        host = HOST.get(None)
        return permits(guard, address) and (host is None or host.web_fault != "forbidden")

    return permits_here


class _ErrorRecords(logging.Handler):
    """A logging handler that passes records of level ERROR on."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        self._note(self.format(record))


@lru_cache(maxsize=1)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)


def memory_directory() -> str | None:
    """Return a directory in memory, or None if the machine has none."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
