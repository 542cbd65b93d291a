"""The delivery of one directory's logs to one sink, batch by batch. The sink keeps the offsets.

`step` reads each log once. It raises every failure to its caller (`delivery`), which calls again later. Then the sink
is opened again and reports its real offsets.

Tests: tests/sinks/test_delivery.py, tests/sinks/test_sinks.py
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from kadcrawl.sinks.batch import LOGS
from kadcrawl.sinks.log_reader import LogReader
from kadcrawl.sinks.sink import Sink
from kadcrawl.sinks.sink_names import SinkName
from kadcrawl.store.log_parts import LogPart
from kadcrawl.system.plural import counted

log = logging.getLogger(__name__)


class _Skipped(NamedTuple):
    """Parts of a log that were moved away before a sink had all of their lines."""

    parts: Sequence[LogPart]
    bytes: int
    """Bytes that the sink lacks."""
    is_begun: bool
    """True if the sink has the first lines of the first part."""

    @property
    def files(self) -> str:
        """The names of the first and the last part."""
        first, last = self.parts[0].file, self.parts[-1].file
        return first if first == last else f"{first} to {last}"

    @property
    def lines(self) -> int | None:
        """Number of lines that the sink lacks, or None if it is not known."""
        counts = [part.lines for part in self.parts if part.lines is not None]
        return None if self.is_begun or len(counts) < len(self.parts) else sum(counts)


class _Followed:
    """One log, and the sink's offset in it."""

    def __init__(self, reader: LogReader) -> None:
        self.reader = reader
        self.offset = 0
        """Offset up to which the sink has the log, in bytes."""
        self.is_asked = False
        """True if the sink has reported the offset since it was opened."""
        self.waits_since: float | None = None
        """Loop second at which undelivered lines were first seen, or None."""

    @property
    def lag(self) -> int:
        """Number of bytes that are not delivered."""
        return max(0, self.reader.size() - self.reader.next_here(self.offset))

    @property
    def lacking(self) -> str:
        """The number of undelivered lines for a person, or empty."""
        table = self.reader.table
        try:
            count = self.reader.lines_after(self.offset)
        except OSError:  # A part is damaged. The step that came to it has the reason.
            return f"an unknown number of {table}"
        return counted(count, table.removesuffix("s"), table) if count else ""

    def learn_offset(self, offset: int) -> None:
        """Take the offset that the sink reports."""
        self.offset, self.is_asked = offset, True

    def forget_offset(self) -> None:
        """Ask the sink again, because it was closed."""
        self.is_asked = False

    def see_lag(self, now: float) -> float:
        """Return the second since which undelivered lines wait, which is `now` if they are new."""
        if self.waits_since is None:
            self.waits_since = now
        return self.waits_since

    def skip_elsewhere(self) -> _Skipped | None:
        """Pass over parts that are elsewhere. Return what was passed over, or None if there was no such part."""
        offset = self.reader.next_here(self.offset)
        if offset == self.offset:
            return None
        parts = self.reader.parts_between(self.offset, offset)
        skipped = _Skipped(parts, offset - self.offset, is_begun=parts[0].begin < self.offset)
        self.offset = offset
        return skipped

    def advance(self, offset: int) -> None:
        """Note that the sink has the log up to this offset."""
        self.offset, self.waits_since = offset, None


class LogWork:
    """The `Work` that delivers the logs of one directory to one sink."""

    def __init__(self, directory: Path, name: SinkName, sink: Sink, now: Callable[[], float]) -> None:
        """`now` returns seconds from any origin."""
        self.name = name
        self.moved = 0
        self.refused = 0
        self._lines = 0
        self._skipped: list[_Skipped] = []
        self._sink = sink
        self._now = now
        self._open = False
        self._logs = [_Followed(LogReader(table, directory / file)) for table, file in LOGS.items()]

    @property
    def lag(self) -> int:
        """Number of bytes of the logs that are not delivered."""
        return sum(each.lag for each in self._logs)

    @property
    def lacking(self) -> str:
        """The numbers of undelivered lines for a person, or empty."""
        return " and ".join(said for each in self._logs if (said := each.lacking))

    @property
    def done(self) -> str:
        """The number of delivered lines, for a person."""
        refused = f", {self.refused} of them refused (see the log)" if self.refused else ""
        known = [each.lines for each in self._skipped if each.lines is not None]
        lines = counted(sum(known), "line") if len(known) == len(self._skipped) else "lines"
        without = f", without {lines} of parts that are not here (see the log)" if self._skipped else ""
        return f"{counted(self._lines, 'line')}{refused}{without}"

    async def step(self, hurry: bool) -> bool:
        """Deliver a batch of each log with enough lines, and return whether there was any.

        In a `hurry`, one line is enough.
        """
        if not self._open:
            await self._sink.open()
            self._open = True
        logs = [each for each in self._logs if each.reader.source() is not None]
        for each in logs:
            if not each.is_asked:
                each.learn_offset(await self._offset_of(each.reader))
        return any([await self._step(each, hurry) for each in logs])

    async def close(self) -> None:
        """Close the sink, and forget its offsets."""
        self._open = False
        for each in self._logs:
            each.forget_offset()
            each.reader.close()
        await self._sink.close()

    async def _step(self, each: _Followed, hurry: bool) -> bool:
        if not each.lag:
            return False
        skipped = each.skip_elsewhere()
        if skipped is not None and skipped not in self._skipped:  # It is again after a failure of the sink.
            self._skipped.append(skipped)
            lines = "unknown" if skipped.lines is None else skipped.lines
            log.warning(
                "sink.part_elsewhere sink=%s log=%s parts=%s lines=%s bytes=%d",
                *(self.name.shown, each.reader.path, skipped.files, lines, skipped.bytes),
            )
        now = self._now()
        waits_since = each.see_lag(now)
        size = self._sink.size
        if not hurry and each.lag < size.bytes_max and now < waits_since + size.wait_s:
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
        each.advance(batch.end)
        return True

    async def _offset_of(self, reader: LogReader) -> int:
        source = reader.source()
        assert source is not None, "a log with lines has a source"
        offset = await self._sink.offset(reader.table, source)
        if offset <= reader.size() and reader.begins_line(offset):
            return offset
        log.warning("sink.offset_invalid sink=%s log=%s offset=%d", self.name.shown, reader.path, offset)
        return 0  # The log was changed, so all of it is delivered again, and overwrites.
