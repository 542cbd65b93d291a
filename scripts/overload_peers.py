"""Some peers in one process crawl one web to the end, and tell how it went: the subject of `bench_overload`.

    python -m scripts.overload_peers --peers 10 --partition url --seconds 90 SEED DIRECTORY

prints one JSON object. Python looks for garbage as rarely as in the processes of `kadcrawl`.

Tests: tests/scripts/test_bench_overload.py
"""

import argparse
import asyncio
import gc
import json
import logging
import resource
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

from kadcrawl import Config, Job, Peer
from kadcrawl.settings.job import History
from kadcrawl.system.garbage import GARBAGE_THRESHOLD
from kadcrawl.urls import Partition

TICK_S: Final = 0.05
"""Time between two looks of the stall watch."""


class StallWatch:
    """Watches how late the event loop runs a task that is due."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.stalled_s = 0.0
        """Sum of all delays above 0.2 s."""

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(TICK_S)
            late_s = time.monotonic() - began - TICK_S
            self.longest_s = max(self.longest_s, late_s)
            if late_s > 0.2:
                self.stalled_s += late_s


async def crawl(
    peers: int,
    partition: Partition,
    seed: str,
    directory: Path,
    seconds: float,
    history: History = "exact",
    delay_s: float = 0.0,
) -> dict[str, Any]:
    """Let so many peers of this process crawl, for so many seconds at most, and return what became of it."""
    job = Job(partition=partition, scope="any", delay_s=delay_s, contact="you@example.org", history=history)
    networks = ("127.0.0.0/8",)
    watch = StallWatch()
    watching = asyncio.create_task(watch.run())
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(
            Peer(Config(data=directory / "0", port=0, allow_networks=networks), job)
        )
        await first.begin()
        all_peers = [first]
        for number in range(1, peers):
            peer = await stack.enter_async_context(
                Peer(Config(data=directory / str(number), port=0, allow_networks=networks), job)
            )
            await peer.join([first.contact.address])
            all_peers.append(peer)
        began, cpu = time.monotonic(), time.process_time()
        await first.crawl([seed])
        ended = False
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for peer in all_peers:
                    await peer.wait_done()
                ended = True
        wall_s, cpu_s = time.monotonic() - began, time.process_time() - cpu
        done = sum(peer.counters.pages for peer in all_peers)
        evictions = sum(peer.overlay.evictions for peer in all_peers)
        syncs = sum(peer.cells.sync.syncs for peer in all_peers)
        watching.cancel()
    return {
        "ended": ended,
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "done": done,
        "evictions": evictions,
        "syncs": syncs,
        "longest_stall_s": round(watch.longest_s, 2),
        "stalled_s": round(watch.stalled_s, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Crawl with some peers in one process.")
    parser.add_argument("--peers", type=int, default=10)
    parser.add_argument("--partition", default="host")
    parser.add_argument("--history", default="exact")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--log", default="WARNING")
    parser.add_argument("seed")
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=options.log, format="%(relativeCreated)d %(name)s %(message)s")
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    print(
        json.dumps(
            asyncio.run(
                crawl(
                    options.peers,
                    options.partition,
                    options.seed,
                    options.directory,
                    options.seconds,
                    options.history,
                    options.delay,
                )
            )
        )
    )


if __name__ == "__main__":
    main()
