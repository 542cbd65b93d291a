"""A swarm of real peers in a simulated world, for experiments: without faults and judges."""

import asyncio
import gc
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from kadcrawl.peer import Peer
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits

from ..loop import SimLoop, world
from ..machines import Machine, Machines, memory_directory
from ..synthetic_web import SyntheticResponse
from ..trial import WEB_ADDRESS
from ..web_server import WebServer

SWARM_POLL_S = 0.05
COLLECTED_APART_S = 30.0
"""Virtual seconds between two collections of garbage, which in a world are ours to make (see `sim.big`)."""

Found = TypeVar("Found")


class AddressedWeb(Protocol):
    """Interface of a web that a simulated swarm can crawl."""

    def address(self, host: str) -> str | None:
        """Return the IP of a host name, or None if there is no such host."""

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target` that was asked for `asked` times before."""
        ...


class NoWeb:
    """There is nothing to crawl."""

    def address(self, host: str) -> str | None:
        """Return that no host is known."""
        return None

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return that there is no such host."""
        return SyntheticResponse(421)


class Swarm:
    """Machines, the web they crawl, and their loop."""

    def __init__(self, loop: SimLoop, machines: Machines, server: WebServer) -> None:
        self.loop = loop
        self.machines = machines
        self.server = server
        self._collected_at = 0.0

    def run(self, story: Coroutine[Any, Any, Found]) -> Found:
        """Let the world go on until the story is over. Raises RuntimeError for what no peer should ever let happen."""
        self.loop.run_until_complete(self._serve())
        found = self.loop.run_until_complete(story)
        if self.machines.errors:
            raise RuntimeError("\n".join(self.machines.errors))
        return found

    async def _serve(self) -> None:
        listens = self.loop.create_server(self.server.connect, WEB_ADDRESS, 80)
        await self.loop.network.host(WEB_ADDRESS).spawn(listens)

    @property
    def peers(self) -> list[Peer]:
        """The peers that are part of the swarm."""
        return [machine.peer for machine in self.machines.live if machine.peer is not None and entered(machine)]

    async def begin(self) -> None:
        """Start the first machine."""
        self.machines.start(0)
        await self.until(lambda: entered(self.machines.machines[0]))

    async def grow(self, peers: int, apart_s: float | None = None) -> None:
        """Let machines join until there are so many, and wait until all have entered.

        They come `apart_s` seconds apart; None for each when the one before has entered.
        """
        for number in range(len(self.machines.machines), peers):
            self.machines.join(number)
            if apart_s is None:
                await self.until(partial(entered, self.machines.machines[number]))
            else:
                await asyncio.sleep(apart_s)
        await self.until(lambda: all(entered(machine) for machine in self.machines.live))

    async def until(self, condition: Callable[[], object]) -> None:
        """Return when it holds."""
        while not condition():  # noqa: ASYNC110 -- it is looked at from outside
            await asyncio.sleep(SWARM_POLL_S)

    async def wait(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.loop.time() + seconds
        while (left := end - self.loop.time()) > 0:
            await asyncio.sleep(min(left, COLLECTED_APART_S))
            if self.loop.time() >= self._collected_at + COLLECTED_APART_S:
                self._collected_at = self.loop.time()
                gc.collect()


def entered(machine: Machine) -> bool:
    """Return whether the machine's peer is of the swarm."""
    peer = machine.peer
    return peer is not None and peer.begun and not peer.joining


@contextmanager
def simulated(
    seed: int,
    web: AddressedWeb,
    *,
    job: Job,
    limits: Limits | None = None,
    work_area: int | Mapping[int, int] | None = None,
    server: WebServer | None = None,
) -> Iterator[Swarm]:
    """Yield a swarm that has not begun. It is switched off at the end.

    `work_area` is that of each peer, or of single machines by number. `server` serves the web in place of a
    `WebServer`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="kadcrawl-papers-", dir=memory_directory()) as directory,
        world(seed) as loop,
    ):
        machines = Machines(
            loop,
            web,
            job=job,
            limits=limits or Limits(),
            work_area=work_area,
            seed=seed,
            directory=Path(directory),
        )
        with machines:
            yield Swarm(loop, machines, server or WebServer(web))
        loop.set_exception_handler(lambda *_: None)  # What they leave open is no fault of theirs.
        loop.network.hosts.clear()
