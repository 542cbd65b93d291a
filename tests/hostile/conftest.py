"""A crawl of one peer among hostile servers, and a listener that nobody is to connect to."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kadcrawl import Config, Limits, Peer
from kadcrawl.peer.environment import Environment
from scripts.kadcrawl_run import LoggedPage, page_lines
from tests.support.sites.foreign_addresses import ALLOWED, CrawlSeeds, Listener, Names
from tests.support.swarm.brisk_loop import BriskLoop
from tests.support.swarm.peers import JOB, QUICK, finish

WAITING = ("test_addresses.py", "test_members.py", "test_servers.py", "test_sites.py")
"""Peers and servers in the process wait for each other in these, and for nobody outside."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give the tests of this directory their loop: those that mostly wait the one where that is brisk."""
    return {"brisk": BriskLoop} if item.path.name in WAITING else {"usual": asyncio.SelectorEventLoop}


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    listening = Listener()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listening.connections += 1
        writer.close()

    bound = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    async with await asyncio.start_server(connected, sock=bound):
        listening.port = bound.getsockname()[1]
        yield listening


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlSeeds:
    """Return a coroutine function that crawls seeds to the end and returns the page lines: one for each URL."""

    async def run(
        *seeds: str,
        allowed: str = ALLOWED,
        names: Names | None = None,
        limits: Limits = QUICK,
        sinks: tuple[str, ...] = (),
        **job: Any,
    ) -> dict[str, LoggedPage]:
        config = Config(data=tmp_path / "peer", port=0, allow_networks=(f"{allowed}/32",), limits=limits, sinks=sinks)
        world = Environment(resolver=lambda: names or Names([allowed]))
        async with Peer(config, replace(JOB, **job), world) as peer:
            await peer.begin()
            await peer.crawl(list(seeds))
            await finish([peer])
        lines = list(page_lines(tmp_path / "peer"))
        assert len({line.url for line in lines}) == len(lines)
        return {line.url: line for line in lines}

    return run
