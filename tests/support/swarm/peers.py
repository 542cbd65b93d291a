"""Peers for tests: on loopback, in a directory of their own, closed at the end, on a loop where waiting is brisk."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kadcrawl import Config, Job, Limits, Peer
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer.environment import Environment
from kadcrawl.settings.secrets import Secrets
from scripts.kadcrawl_run import LoggedPage, page_lines
from tests.support.output_schemas import departing_lines
from tests.support.sites.given_names import GivenNames
from tests.support.swarm.brisk_loop import BriskLoop

QUICK = Limits(retry_base_s=0.01, robots_retry_s=0.01, back_off_s=0.01, commit_spacing_s=0.01, batch_spacing_s=0.01)
JOB = Job(delay_s=0.0, scope="any")

MakePeer = Callable[..., Awaitable[Peer]]

WEIGHED = ("test_balance.py", "test_drain_policy.py", "test_level_policy.py", "test_lending_peers.py")
"""Waiting is not to be shorter beside work in these."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give the tests of this directory their loop: but those the usual one that weigh how much work takes."""
    return {"usual": asyncio.SelectorEventLoop} if item.path.name in WEIGHED else {"brisk": BriskLoop}


async def swarm(make_peer: MakePeer, names: str, **job: object) -> list[Peer]:
    """Return a peer for each letter, all with the same `limits`. The first peer began the swarm."""
    own = {"limits": job["limits"]} if "limits" in job else {}
    first = await make_peer(names[0], **job)
    return [first, *[await make_peer(name, join=first, **own) for name in names[1:]]]


async def finish(peers: Sequence[Peer]) -> None:
    """Return when the crawl is over, as each of these peers knows, and everything is on disk."""
    async with asyncio.timeout(60):
        for peer in peers:
            await peer.wait_done()
    await asyncio.gather(*(peer.drain() for peer in peers))


@pytest.fixture
async def make_peer(tmp_path: Path) -> AsyncIterator[MakePeer]:
    """Return a coroutine function: make_peer(directory, join=peer, limits=..., key=..., networks=..., **fields).

    The fields are those of the job; `hosts` has the addresses of names, `hooks` are allowed here; without a
    key, `random` makes the peer's ID. At the end, the lines that the peers wrote are compared with their documented
    schemas.
    """
    async with AsyncExitStack() as stack:

        async def make(
            directory: str = "one",
            *,
            join: Peer | None = None,
            limits: Limits = QUICK,
            key: SwarmKey | None = None,
            random: Random | None = None,
            secrets: Mapping[str, str] | None = None,
            networks: Sequence[str] = ("127.0.0.0/8",),
            hosts: Mapping[str, Sequence[str]] | None = None,
            hooks: Sequence[str] = (),
            network: Path | None = None,
            powers: Mapping[str, float] | None = None,
            metrics: tuple[str, int] | None = None,
            web: tuple[str, int] | None = None,
            web_control: bool = False,
            traces: str | None = None,
            sinks: Sequence[str] = (),
            **job: Any,
        ) -> Peer:
            config = Config(
                data=tmp_path / directory,
                port=0,
                allow_networks=tuple(networks),
                limits=limits,
                swarm_key=key,
                secrets=Secrets(secrets),
                hooks=tuple(hooks),
                network=network,
                powers=tuple((powers or {}).items()),
                metrics=metrics,
                web=web,
                web_control=web_control,
                traces=traces,
                trace_share=1.0,
                sinks=tuple(sinks),
            )
            loop = asyncio.get_running_loop()
            world = Environment(random=random, wall=loop.wall() if isinstance(loop, BriskLoop) else None)
            if hosts is not None:
                world = replace(world, resolver=lambda: GivenNames(hosts))
            peer = await stack.enter_async_context(Peer(config, None if join else replace(JOB, **job), world))
            if join is not None:
                await peer.join([join.contact.address])
            else:
                await peer.begin()
            return peer

        yield make
    assert [] == departing_lines(tmp_path)


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[], dict[str, LoggedPage]]:
    """Return a function that reads all peers' page lines by URL, and fails if a URL has two."""

    def read() -> dict[str, LoggedPage]:
        every = list(page_lines(tmp_path))
        by_url = {line.url: line for line in every}
        assert len(by_url) == len(every)
        return by_url

    return read
