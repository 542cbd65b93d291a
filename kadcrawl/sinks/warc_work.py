"""Uploading one directory's WARC files to a place, under their own names; perhaps removing them here.

A file is uploaded once the peer has begun the next one and its journal knows that; the one it is writing, as far as it
is journaled, when there is a `hurry`: at the end of the crawl, or by hand. What stands there in the same length is
delivered; a crash in between, or a file that has grown since, is uploaded again over what is there. So this needs no
mark, and looks at nothing but the directory.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from kadcrawl.crawl.output.outputs import WARC_DIRECTORY
from kadcrawl.sinks.names import SinkName
from kadcrawl.sinks.places import Place
from kadcrawl.sinks.sink import OneCall, SinkError
from kadcrawl.system.file_names import JOURNAL

CHUNK_BYTES = 1024 * 1024
SUFFIX = ".warc.gz"


class _File(NamedTuple):
    path: Path
    length: int
    """Bytes that count: what stands behind them a crash has left, or is being written."""
    is_finished: bool
    """Nothing will be added to it."""


class WarcWork:
    """A `Work`: the WARC files of one directory, and the place they are to be at."""

    def __init__(self, directory: Path, name: SinkName, place: Place, call: OneCall) -> None:
        self.name = name
        self.moved = 0
        self.refused = 0
        self._files_done = 0
        self._directory = directory
        self._place = place
        self._call = call
        self._there: dict[str, int] | None = None
        """Files at the place, and their lengths; None if it is to be asked."""
        self._left: list[_File] = []

    @property
    def lag(self) -> int:
        """Bytes of files that are to be uploaded, as of the last step."""
        return sum(file.length for file in self._left)

    @property
    def lacking(self) -> str:
        """What is not there, for a person; empty if nothing is."""
        count = len(self._left)
        return f"{count} WARC file{'s' if count > 1 else ''}" if count else ""

    @property
    def done(self) -> str:
        """What went there, for a person."""
        return f"{self._files_done} WARC files"

    async def step(self, hurry: bool) -> bool:
        """Upload the first file that is not there, of the finished ones or in a `hurry` of all; return if one was."""
        return await self._call(self._step, hurry)

    async def close(self) -> None:
        """Forget what is believed of the place."""
        self._there = None

    def _step(self, hurry: bool) -> bool:
        files = [file for file in self._files() if file.is_finished or hurry]
        self._left = files if self._there is None else self._not_in(self._there, files)
        if not files:
            return False
        there = self._there = self._place.sizes("") if self._there is None else self._there
        self._left = self._not_in(there, files)
        for file in files:
            if file not in self._left:
                self._remove(file)
        if not self._left:
            return False
        file = self._left[0]
        self._place.write(file.path.name, lambda: self._chunks(file))
        there.update(self._place.sizes(""))
        if there.get(file.path.name) != file.length:
            raise SinkError(f"{file.path.name} did not arrive whole: {there.get(file.path.name)} bytes")
        self._files_done += 1
        self._remove(file)
        self._left = self._left[1:]
        return True

    def _not_in(self, there: dict[str, int], files: list[_File]) -> list[_File]:
        return [file for file in files if there.get(file.path.name) != file.length]

    def _remove(self, file: _File) -> None:
        """Remove a file that has arrived, if that is wanted; the last one stays, as a later run goes on in it."""
        if self.name.kind == "warc-move" and file.is_finished:
            file.path.unlink(missing_ok=True)

    def _files(self) -> list[_File]:
        """Return what is worth uploading, in order."""
        journaled = self._journaled()
        directory = self._directory / WARC_DIRECTORY
        files = []
        for path in sorted(directory.glob(f"*{SUFFIX}")):
            if journaled is None:
                files.append(_File(path, path.stat().st_size, is_finished=False))
            elif path.name == journaled[0]:
                files.append(_File(path, journaled[1], is_finished=False))
            elif _order(path.name) < _order(journaled[0]) or not _is_sibling(path.name, journaled[0]):
                files.append(_File(path, path.stat().st_size, is_finished=True))
        return files

    def _journaled(self) -> tuple[str, int] | None:
        """Return the file being written and its length, as last committed; None without a journal."""
        path = self._directory / JOURNAL
        if not path.exists():
            return None
        # Nobody has it open if it has no WAL, and then the directory may be one that cannot be written to.
        mode = "mode=ro" if path.with_name(f"{JOURNAL}-wal").exists() else "immutable=1"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as journal:
            row = journal.execute("SELECT value FROM meta WHERE name='warc'").fetchone()
        return msgspec.json.decode(row[0], type=tuple[str, int]) if row else None

    def _chunks(self, file: _File) -> Iterator[bytes]:
        left = file.length
        with file.path.open("rb") as warc:
            while left:
                chunk = warc.read(min(CHUNK_BYTES, left))
                if not chunk:
                    raise SinkError(f"{file.path.name} is shorter than its journal says")
                left -= len(chunk)
                self.moved += len(chunk)
                yield chunk


def _split(name: str) -> tuple[str, str]:
    stem, _, number = name.removesuffix(SUFFIX).rpartition("-")
    return stem, number


def _is_sibling(name: str, other: str) -> bool:
    """Return whether both are of one series: NAME-00001.warc.gz, NAME-00002.warc.gz, ..."""
    return _split(name)[0] == _split(other)[0]


def _order(name: str) -> tuple[int, str]:
    """Return what sorts the files of a series: more digits come later."""
    number = _split(name)[1]
    return len(number), number
