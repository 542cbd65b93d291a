"""The upload of one directory's WARC files to a destination, under their own names, perhaps with removal here.

A file is uploaded once the peer has begun the next file and the journal says so. In a `hurry`, at the end of the crawl
or by hand, the file being written is uploaded too, up to its journaled length. A file of the same length and contents
at the destination counts as delivered. When a file has grown, it is uploaded again. So the upload needs no stored
offset, and reads only the two directories.

Invariant: an upload never replaces a file that is not a beginning of the new one. A file of the same name is there if a
peer has begun anew with the key of an earlier peer, or goes on from a backup. Such a file is refused, and others go on.
The beginning and the end of the bytes in common are compared, as each record has an ID of its own there.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from kadcrawl.crawl.output.cdxj import is_indexed, write_index
from kadcrawl.crawl.output.outputs import WARC_DIRECTORY
from kadcrawl.sinks.destinations import Destination
from kadcrawl.sinks.sink import OneCall, SinkError
from kadcrawl.sinks.sink_names import SinkName
from kadcrawl.system.file_names import JOURNAL
from kadcrawl.system.plural import counted

CHUNK_BYTES = 1024 * 1024
"""Bytes that are read at a time."""
COMPARED_BYTES = 64 * 1024
"""Bytes that are compared at the beginning and at the end of a file that is already at the destination."""
SUFFIX = ".warc.gz"


class _File(NamedTuple):
    path: Path
    length: int
    """Number of valid bytes. Bytes behind them are the rest of a crash, or are being written."""
    is_finished: bool
    """True if the file will not grow any more."""


class WarcWork:
    """The `Work` that uploads the WARC files of one directory to a destination."""

    def __init__(self, directory: Path, name: SinkName, destination: Destination, call: OneCall) -> None:
        self.name = name
        self.moved = 0
        self.refused = 0
        self._files_done = 0
        self._directory = directory
        self._destination = destination
        self._call = call
        self._uploaded: dict[str, int] | None = None
        """The lengths of the files at the destination by name, or None before they are listed."""
        self._left: list[_File] = []
        self._alike: dict[str, int] = {}
        """The lengths of the files there that are beginnings of the files here, or were uploaded just now."""

    @property
    def lag(self) -> int:
        """Number of bytes to upload, as of the last step."""
        return sum(file.length for file in self._left)

    @property
    def lacking(self) -> str:
        """The number of missing files for a person, or empty."""
        count = len(self._left)
        return counted(count, "WARC file") if count else ""

    @property
    def done(self) -> str:
        """The number of uploaded files, for a person."""
        return counted(self._files_done, "WARC file")

    async def step(self, hurry: bool) -> bool:
        """Upload the first missing file, and return whether there was any. In a `hurry`, unfinished files count too."""
        return await self._call(self._step, hurry)

    async def close(self) -> None:
        """Forget the list of files at the destination."""
        self._uploaded = None

    def _step(self, hurry: bool) -> bool:
        files = [file for file in self._files() if file.is_finished or hurry]
        self._left = files if self._uploaded is None else self._not_in(self._uploaded, files)
        if not files:
            return False
        there = self._uploaded = self._destination.sizes("") if self._uploaded is None else self._uploaded
        self._left = self._not_in(there, files)
        others = {file for file in files if not self._is_alike(file, there.get(file.path.name))}
        missing = [file for file in self._left if file not in others]
        left = others.union(missing)
        for file in files:
            if file not in left:
                self._remove(file)
        self._left = [file for file in files if file in left]
        if not self._left:
            return False
        if not missing:
            raise SinkError(self._refusal([file.path.name for file in self._left]))
        file = missing[0]
        self._destination.write(file.path.name, lambda: self._chunks(file))
        there.update(self._destination.sizes(""))
        arrived = there.get(file.path.name)
        if arrived is not None:
            self._alike[file.path.name] = arrived
        if arrived != file.length:
            raise SinkError(f"{file.path.name} did not arrive whole: {arrived} bytes")
        self._files_done += 1
        self._remove(file)
        self._left.remove(file)
        return True

    def _not_in(self, there: dict[str, int], files: list[_File]) -> list[_File]:
        return [file for file in files if there.get(file.path.name) != file.length]

    def _is_alike(self, file: _File, size: int | None) -> bool:
        """Return whether the destination has nothing under the name of a file but a beginning of the file."""
        name = file.path.name
        if size is None:
            return True
        if size > file.length:
            return False
        if self._alike.get(name) != size:
            with file.path.open("rb") as warc:
                for begin in {0, max(0, size - COMPARED_BYTES)}:
                    end = min(begin + COMPARED_BYTES, size)
                    warc.seek(begin)
                    if warc.read(end - begin) != self._destination.read(name, begin, end):
                        return False
            self._alike[name] = size
        return True

    def _refusal(self, names: list[str]) -> str:
        more = f" and {counted(len(names) - 1, 'more file')}" if names[1:] else ""
        verb = "are" if names[1:] else "is"
        return (
            f"{names[0]}{more} {verb} there already, longer or with other contents, and {verb} not overwritten: move "
            f"{'them' if names[1:] else 'it'} away from there, or name another place"
        )

    def _remove(self, file: _File) -> None:
        """Remove an uploaded file of `warc-move`, once it has an index here.

        The last file stays, as a later run continues it.
        """
        if self.name.kind == "warc-move" and file.is_finished:
            if file.path.exists() and not is_indexed(file.path):
                for _ in write_index(file.path):  # It cannot be made later.
                    pass
            file.path.unlink(missing_ok=True)

    def _files(self) -> list[_File]:
        """Return the files to upload, in order."""
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
        """Return the (name, committed length) of the file being written, or None without a journal."""
        path = self._directory / JOURNAL
        if not path.exists():
            return None
        # Without a WAL no process has the journal open, and the directory may be read-only.
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
    """Return whether both files are of one series: NAME-00001.warc.gz, NAME-00002.warc.gz, ..."""
    return _split(name)[0] == _split(other)[0]


def _order(name: str) -> tuple[int, str]:
    """Return the sort key of a file in its series: names with more digits come later."""
    number = _split(name)[1]
    return len(number), number
