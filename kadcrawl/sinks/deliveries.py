"""All sinks of one directory: a peer runs them in the background, and `kadcrawl export` runs them by hand.

Tests: tests/sinks/test_delivery.py
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from kadcrawl.sinks.delivery import DELIVERY_STALL_S, Delivery, Work
from kadcrawl.sinks.destinations import destination_of
from kadcrawl.sinks.log_work import LogWork
from kadcrawl.sinks.part_files import PartSink, json_lines
from kadcrawl.sinks.plug_ins import plug_in
from kadcrawl.sinks.sink import OneCall, Sink, Threaded
from kadcrawl.sinks.sink_names import SinkName, check, parse
from kadcrawl.sinks.warc_work import WarcWork


class Deliveries:
    """The deliveries of one directory."""

    def __init__(self, directory: Path, names: Sequence[str], executor: Executor, now: Callable[[], float]) -> None:
        """Make a delivery for each of `names`, as `sink_names.parse` takes them.

        `executor` runs blocking calls, and nothing waits for its threads at the exit. `now` returns seconds. Raises
        ConfigError for an invalid name, and for a sink whose package is not installed.
        """
        parsed = [parse(name) for name in dict.fromkeys(names)]
        for name in parsed:
            check(name)
        self.each = [Delivery(_work(directory, name, executor, now)) for name in parsed]

    @property
    def lag(self) -> int:
        """Number of bytes that are not delivered, over all sinks."""
        return sum(delivery.work.lag for delivery in self.each)

    @property
    def shortfalls(self) -> list[str]:
        """A sentence for each incomplete sink, with the missing items and the reason."""
        return [said for delivery in self.each if (said := delivery.shortfall) is not None]

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with asyncio.TaskGroup() as group:
            for delivery in self.each:
                group.create_task(delivery.run(), name=f"sink {delivery.work.name.shown}")

    async def finish(self, patience_s: float = DELIVERY_STALL_S) -> None:
        """Return when each sink has all lines of now, or makes no progress for `patience_s` seconds."""
        await asyncio.gather(*(delivery.finish(patience_s) for delivery in self.each))


def _work(directory: Path, name: SinkName, executor: Executor, now: Callable[[], float]) -> Work:
    if name.kind in ("warc", "warc-move"):
        return WarcWork(directory, name, destination_of(name), OneCall(executor))
    return LogWork(directory, name, _sink(name, executor), now)


def _sink(name: SinkName, executor: Executor) -> Sink:
    if name.is_plug_in:
        return Threaded(plug_in(name.kind, name.target), executor)
    # Imported where needed: a database's library takes longer to load than a peer.
    if name.kind == "sqlite":
        from kadcrawl.sinks.sqlite import SqliteSink

        return Threaded(SqliteSink(Path(name.target)), executor)
    if name.kind == "parquet":
        from kadcrawl.sinks.parquet import parquet

        return Threaded(PartSink(destination_of(name), "parquet", parquet), executor)
    if name.kind == "csv":
        from kadcrawl.sinks.csv_rows import csv_file

        return Threaded(PartSink(destination_of(name), "csv", csv_file), executor)
    if name.kind == "jsonl":
        return Threaded(PartSink(destination_of(name), "jsonl", json_lines), executor)
    from kadcrawl.sinks.mongo import MongoSink

    return MongoSink(name.target)
