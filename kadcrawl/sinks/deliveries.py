"""All sinks of one directory, as a peer runs them in the background and `kadcrawl export` by hand.

Tests: tests/sinks/test_delivery.py
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from kadcrawl.sinks.delivery import DELIVERY_STALL_S, Delivery, Work
from kadcrawl.sinks.log_work import LogWork
from kadcrawl.sinks.names import SinkName, check, parse
from kadcrawl.sinks.parts import PartSink, json_lines
from kadcrawl.sinks.places import place_of
from kadcrawl.sinks.sink import OneCall, Sink, Threaded
from kadcrawl.sinks.warc_work import WarcWork


class Deliveries:
    """The deliveries of one directory."""

    def __init__(self, directory: Path, names: Sequence[str], executor: Executor, now: Callable[[], float]) -> None:
        """`names` as in `names.parse`; `executor` runs what blocks and is waited for by nobody; `now` in seconds.

        Raises ConfigError for a name that is none, and for a sink that needs what is not installed.
        """
        parsed = [parse(name) for name in dict.fromkeys(names)]
        for name in parsed:
            check(name)
        self.each = [Delivery(_work(directory, name, executor, now)) for name in parsed]

    @property
    def lag(self) -> int:
        """Bytes that are not delivered, of all sinks together."""
        return sum(delivery.work.lag for delivery in self.each)

    @property
    def shortfalls(self) -> list[str]:
        """What each sink lacks and why, for those that lack something."""
        return [said for delivery in self.each if (said := delivery.shortfall) is not None]

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with asyncio.TaskGroup() as group:
            for delivery in self.each:
                group.create_task(delivery.run(), name=f"sink {delivery.work.name.shown}")

    async def finish(self, patience_s: float = DELIVERY_STALL_S) -> None:
        """Return when each sink has all there is now, or does not get on."""
        await asyncio.gather(*(delivery.finish(patience_s) for delivery in self.each))


def _work(directory: Path, name: SinkName, executor: Executor, now: Callable[[], float]) -> Work:
    if name.kind in ("warc", "warc-move"):
        return WarcWork(directory, name, place_of(name), OneCall(executor))
    return LogWork(directory, name, _sink(name, executor), now)


def _sink(name: SinkName, executor: Executor) -> Sink:
    # Imported where needed: a database's library takes longer to load than a peer.
    if name.kind == "sqlite":
        from kadcrawl.sinks.sqlite import SqliteSink

        return Threaded(SqliteSink(Path(name.target)), executor)
    if name.kind == "parquet":
        from kadcrawl.sinks.parquet import parquet

        return Threaded(PartSink(place_of(name), "parquet", parquet), executor)
    if name.kind == "jsonl":
        return Threaded(PartSink(place_of(name), "jsonl", json_lines), executor)
    from kadcrawl.sinks.mongo import MongoSink

    return MongoSink(name.target)
