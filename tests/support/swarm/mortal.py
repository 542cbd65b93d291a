"""A peer in a process of its own that some answers kill: python -m tests.support.swarm.mortal DIRECTORY SEED.

Those are bodies in the coding `deflate`, pages that begin with `KILLS`, and such files of robots.txt.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kadcrawl import Config, Peer
from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.fetch.content_encoding import decoding
from kadcrawl.crawl.robots.rules import judging
from tests.support.swarm.brisk_loop import BriskLoop
from tests.support.swarm.peers import JOB, QUICK

KILLS = b"# kills whoever reads it"


def mortal(read: Callable[..., Any], is_deadly: Callable[..., bool]) -> Callable[..., Any]:
    """Return the function, which of some arguments kills the process."""

    def reads(*arguments: Any, **named: Any) -> Any:
        if is_deadly(*arguments):
            os.kill(os.getpid(), signal.SIGKILL)
        return read(*arguments, **named)

    return reads


async def crawl(directory: Path, seed: str) -> None:
    async with Peer(Config(data=directory, port=0, allow_networks=("127.0.0.0/8",), limits=QUICK), JOB) as peer:
        await peer.crawl([seed])
        await peer.wait_done()


if __name__ == "__main__":
    undone = mortal(decoding, lambda body, coding, bytes_max: coding == "deflate")
    found = mortal(LinkExtractor.reading, lambda extractor, content, *rest: content.startswith(KILLS))
    judged = mortal(judging, lambda status, content, agent: content.startswith(KILLS))
    with (
        patch("kadcrawl.crawl.fetch.fetcher.decoding", undone),
        patch("kadcrawl.crawl.content.html_links.LinkExtractor.reading", found),
        patch("kadcrawl.crawl.robots_fetch.judging", judged),
        asyncio.Runner(loop_factory=BriskLoop) as runner,
    ):
        runner.run(crawl(Path(sys.argv[1]), sys.argv[2]))
