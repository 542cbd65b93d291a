"""The rolling of a peer's logs: a log that has reached a size is closed as a part, and a thread describes the part.

A log whose file a person has removed or moved meanwhile goes on in a new file.

Tests: tests/store/test_log_parts.py
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kadcrawl.store.line_log import LineLog
from kadcrawl.store.log_parts import (
    LogPart,
    PartIndex,
    completed,
    decoded_index,
    described,
    encoded_index,
    part_file,
    part_path,
    source_of,
    stored_index,
)
from kadcrawl.store.lost_files import LostFiles

PARTS_OF = "parts of "
"""Begin of the names under which the journal keeps the indexes, before the name of the log."""


def known_index(path: Path, journaled: bytes | None) -> PartIndex:
    """Return the closed parts of a log at the start of a peer. Raises OSError.

    The journal's copy counts, and the index file for parts that the last commit did not reach.
    """
    index, stored = decoded_index(path, journaled), stored_index(path)
    if index is None or (stored is not None and _goes_on(stored, index)):
        index = stored or index or PartIndex(source_of(part_path(path, 1)))
    return completed(path, index)


def _goes_on(index: PartIndex, earlier: PartIndex) -> bool:
    """Return whether an index has all the parts of an earlier one."""
    places = [[(part.begin, part.bytes) for part in each.parts] for each in (index, earlier)]
    return places[0][: len(places[1])] == places[1]


class LogRoller:
    """The logs of one peer, with the part that is being described."""

    def __init__(
        self, logs: Iterable[LineLog], bytes_max: int, sync: Callable[[Iterable[int]], None], lost: LostFiles
    ) -> None:
        """`sync` makes the files of the given descriptors durable."""
        self._logs = list(logs)
        self._bytes_max = bytes_max
        self._sync = sync
        self._lost = lost
        self._described: tuple[LineLog, asyncio.Future[LogPart | None]] | None = None
        self._unreadable: set[str] = set()
        """Parts that went away before they were described."""
        self._is_stopped = False
        self._is_begun = False

    def step(self) -> Iterator[tuple[str, bytes]]:
        """Close each log that is full, and yield the name and value of each index to journal. Raises OSError.

        Call before each commit, in the loop's thread.
        """
        for each in self._logs:
            before = each.index
            if not self._is_begun:
                each.mend_index(self._sync)
            if each.is_lost():
                each.begin_anew(self._sync)
                self._lost.note(each.path, each.path)
            if each.present_bytes >= self._bytes_max:
                each.roll(self._sync)
            self._take_described(each)
            if each.index is not before or (not self._is_begun and each.index.parts):
                yield PARTS_OF + each.path.name, encoded_index(each.index)
            self._describe_next(each)
        self._is_begun = True

    def stop(self) -> None:
        """Stop the thread that describes a part. The next run begins the part anew."""
        self._is_stopped = True

    def _take_described(self, each: LineLog) -> None:
        if self._described is None or self._described[0] is not each or not self._described[1].done():
            return
        done, self._described = self._described[1], None
        part = None if done.cancelled() or done.exception() is not None else done.result()
        if part is None:
            self._unreadable.update(old.file for old in each.index.parts if old.lines is None)
            return
        each.close_lost_part(part.file)
        parts = tuple(part if old.file == part.file else old for old in each.index.parts)
        each.write_index(PartIndex(each.index.source, parts), self._sync)

    def _describe_next(self, each: LineLog) -> None:
        if self._described is not None:
            return
        for number, part in enumerate(each.index.parts, 1):
            if part.lines is not None or part.file in self._unreadable:
                continue
            if file := part_file(each.path, number) or each.lost_part(part.file):
                loop = asyncio.get_running_loop()
                future = loop.run_in_executor(None, described, file, part, lambda: self._is_stopped)
                self._described = each, future
                return
