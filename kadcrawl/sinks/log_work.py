"""Handing the lines of one directory's logs to one sink, batch by batch; the marks are the sink's.

`step` does one look at each log. Every failure is raised to whoever calls it (`delivery`), who calls again later: the
sink is then opened anew and asked how far it really has come.

Tests: tests/sinks/test_delivery.py, tests/sinks/test_sinks.py
"""

import logging
from collections.abc import Callable
from pathlib import Path

from kadcrawl.sinks.batch import LOGS
from kadcrawl.sinks.log_reader import LogReader
from kadcrawl.sinks.names import SinkName
from kadcrawl.sinks.sink import Sink

log = logging.getLogger(__name__)


class _Followed:
    """One log, and how far the sink has come in it."""

    def __init__(self, reader: LogReader) -> None:
        self.reader = reader
        self.offset = 0
        """As the sink last said."""
        self.is_asked = False
        """The sink has said it since it was opened."""
        self.waits_since: float | None = None
        """Loop second at which more was first seen than is delivered."""

    @property
    def lag(self) -> int:
        return max(0, self.reader.size() - self.offset)


class LogWork:
    """A `Work`: what one sink is to do for one directory."""

    def __init__(self, directory: Path, name: SinkName, sink: Sink, now: Callable[[], float]) -> None:
        """`now` in seconds from any beginning."""
        self.name = name
        self.moved = 0
        self.refused = 0
        self._lines = 0
        self._sink = sink
        self._now = now
        self._open = False
        self._logs = [_Followed(LogReader(table, directory / file)) for table, file in LOGS.items()]

    @property
    def lag(self) -> int:
        """Bytes of the logs that are not delivered."""
        return sum(each.lag for each in self._logs)

    @property
    def lacking(self) -> str:
        """What is not delivered, for a person; empty if nothing is."""
        counts = ((each.reader.table, each.reader.lines_after(each.offset)) for each in self._logs)
        return " and ".join(f"{count} {table}" for table, count in counts if count)

    @property
    def done(self) -> str:
        """What went to the sink, for a person."""
        refused = f", {self.refused} of them refused (see the log)" if self.refused else ""
        return f"{self._lines} lines{refused}"

    async def step(self, hurry: bool) -> bool:
        """Deliver a batch of each log that has one, any that has a line in a `hurry`; return whether there was one."""
        if not self._open:
            await self._sink.open()
            self._open = True
        logs = [each for each in self._logs if each.reader.source() is not None]
        for each in logs:
            if not each.is_asked:
                each.offset, each.is_asked = await self._offset_of(each.reader), True
        return any([await self._step(each, hurry) for each in logs])

    async def close(self) -> None:
        """Forget what is believed of the sink."""
        self._open = False
        for each in self._logs:
            each.is_asked = False
        await self._sink.close()

    async def _step(self, each: _Followed, hurry: bool) -> bool:
        if not each.lag:
            return False
        if each.waits_since is None:
            each.waits_since = self._now()
        size = self._sink.size
        if not hurry and each.lag < size.bytes_max and self._now() < each.waits_since + size.wait_s:
            return False
        batch = each.reader.read(each.offset, size)
        if batch is None:
            return False
        refused = await self._sink.put(batch)
        for why in refused:
            log.warning("sink.refused sink=%s why=%s", self.name.shown, self.name.clean(why))
        self.refused += len(refused)
        self._lines += len(batch.lines)
        self.moved += batch.end - batch.first
        each.offset, each.waits_since = batch.end, None
        return True

    async def _offset_of(self, reader: LogReader) -> int:
        source = reader.source()
        assert source is not None, "a log with lines has a source"
        mark = await self._sink.offset(reader.table, source)
        if mark <= reader.size() and reader.begins_line(mark):
            return mark
        log.warning("sink.mark_unfit sink=%s log=%s mark=%d", self.name.shown, reader.path, mark)
        return 0  # Somebody changed the log: all of it goes again, and overwrites.
