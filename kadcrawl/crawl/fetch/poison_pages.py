"""Pages that crash the process are detected, and blocked after two crashes.

A C library may have a fault, or a page may take more memory than there is. Then the process is gone, the next owner
reads the same page, and so on around the swarm, again after each restart. So the URL of each page that is being read is
noted in a file that outlives the process, and crossed out afterwards. At its start a peer finds there the pages that
may have crashed it. A note alone proves nothing, as the process may have been killed at that moment, or by another
page. So a suspect page is fetched once more, but read while no other page is read, and a page that was being read in
two crashes is not fetched again.

Only work over bytes of a site is noted: undoing content codings and parsing. Between note and cross-out the peer waits
for nothing but turns, least of all for a memory slot (memory_slots.py), as the holder of a slot may wait for its turn
here. The file need not survive the machine: only one process writes to it, in place, and a fault of the file costs only
this protection.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import blake2b
from pathlib import Path

from kadcrawl.system.event import Event

KILLED_PEER = "killed_peer"
"""The reason of failure of a blocked page."""
CRASHES_MAX = 2
"""Crashes during one page before the page is blocked."""
READING_MAX = 256
"""Pages noted at a time. Few pages take more than one turn, and pages beyond the limit are read all the same."""
SUSPECTS_MAX = 256
"""Suspect pages remembered, the latest first. With the notes they are 9 KB, written at each start."""
FILE = "reading"

_NAME_BYTES = 16
_ENTRY_BYTES = _NAME_BYTES + 1
"""Bytes of one entry: a count byte, 0 for a free entry, else 1 or the number of crashes, and the URL's hash."""
_FREE = bytes(_ENTRY_BYTES)


class PoisonPages:
    """The pages that may have crashed one peer."""

    def __init__(self, directory: Path | None) -> None:
        """Read the notes of the process before. Without a directory, or without a readable file, nothing is noted or
        known."""
        self._crashes: dict[bytes, int] = {}
        self._unused = iter(range(READING_MAX))
        """The places that no page has had yet."""
        self._places: list[int] = []
        """The places that pages had and left."""
        self._count = 0
        """Pages that are being read."""
        self._alone = asyncio.Lock()
        """The lock of the one suspect that is about to be read, ..."""
        self._is_quiet = Event()
        """... which waits until no other page is: so nothing else is blamed for it, nor it for others."""
        self._file: int | None = None
        if directory is not None:
            try:
                self._file = os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._take_over(os.pread(self._file, _ENTRY_BYTES * (READING_MAX + SUSPECTS_MAX), 0))
            except OSError:
                self.close()

    def close(self) -> None:
        """Note nothing from now on."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def is_poison(self, url: str) -> bool:
        """Return whether the answer of this URL is to be left alone."""
        return bool(self._crashes) and self._crashes.get(_name(url), 0) >= CRASHES_MAX

    def reading(self, url: str) -> AbstractAsyncContextManager[None]:
        """Note that the answer of a URL is being read, until the context ends. A suspect waits for its turn first."""
        name = b"" if self._file is None else _name(url)
        if not name or (name not in self._crashes and not self._alone.locked()):
            return _Noted(self, name)
        return self._in_turn(name)

    @asynccontextmanager
    async def _in_turn(self, name: bytes) -> AsyncIterator[None]:
        """Note a page that is a suspect, or that has to wait until a suspect is read."""
        if name not in self._crashes:
            while self._alone.locked():
                async with self._alone:
                    pass  # One after the other may be a suspect.
            async with _Noted(self, name):
                yield
            return
        async with self._alone:
            while self._count:
                self._is_quiet.clear()
                await self._is_quiet.wait()
            async with _Noted(self, name):
                yield

    def begin(self, name: bytes) -> int | None:
        """Note that a page is being read, and return its place in the file, if there is one left."""
        self._count += 1
        place = self._places.pop() if self._places else next(self._unused, None)
        if place is not None:
            self._write(place, b"\1" + name)
        return place

    def end(self, place: int | None) -> None:
        """Note that the page of `begin` is no longer being read."""
        self._count -= 1
        if not self._count:
            self._is_quiet.set()
        if place is not None:
            self._write(place, _FREE)
            self._places.append(place)

    def was_read(self, url: str) -> None:
        """Note that the answer of this URL was read to its end: earlier crashes had another cause."""
        if self._crashes and self._crashes.pop(_name(url), None) is not None:
            self._write(READING_MAX, self._suspects())

    def _take_over(self, found: bytes) -> None:
        """Count the pages that were being read when the process before this one ended."""
        entries = [found[at : at + _ENTRY_BYTES] for at in range(0, len(found), _ENTRY_BYTES)]
        entries = [entry if len(entry) == _ENTRY_BYTES else _FREE for entry in entries]
        self._crashes = {entry[1:]: entry[0] for entry in entries[READING_MAX:] if entry[0]}
        for name in {entry[1:]: None for entry in entries[:READING_MAX] if entry[0]}:
            self._crashes[name] = self._crashes.pop(name, 0) + 1  # To the end, as the latest.
        while len(self._crashes) > SUSPECTS_MAX:
            del self._crashes[next(iter(self._crashes))]
        self._write(0, _FREE * READING_MAX + self._suspects())

    def _suspects(self) -> bytes:
        entries = [bytes((min(deaths, CRASHES_MAX),)) + name for name, deaths in self._crashes.items()]
        return b"".join(entries).ljust(SUSPECTS_MAX * _ENTRY_BYTES, b"\0")

    def _write(self, place: int, entries: bytes) -> None:
        if self._file is not None:
            try:
                os.pwrite(self._file, entries, place * _ENTRY_BYTES)
            except OSError:
                self.close()


class _Noted(AbstractAsyncContextManager[None]):
    """The time in which a page is noted. Without a name nothing is noted. It waits for nothing."""

    __slots__ = ("_name", "_pages", "_place")

    def __init__(self, pages: PoisonPages, name: bytes) -> None:
        self._pages = pages
        self._name = name
        self._place: int | None = None

    async def __aenter__(self) -> None:
        if self._name:
            self._place = self._pages.begin(self._name)

    async def __aexit__(self, *_: object) -> None:
        if self._name:
            self._pages.end(self._place)


def _name(url: str) -> bytes:
    return blake2b(url.encode(errors="surrogatepass"), digest_size=_NAME_BYTES).digest()
