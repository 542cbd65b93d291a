"""URLs whose answers kill whoever reads them: a peer dies of one twice at most, and then leaves it alone.

A library in C may have a fault, or a page may take more memory than there is. Then the process is gone, the next owner
reads the same page, and so on around the swarm, again after each restart. So what is being read is noted in a file
that outlives the process, and crossed out afterwards. What a peer finds there when it starts is what it may have died
of. That alone proves nothing, as it may have been killed just then, or by another page; so such a page is asked for
once more, but read while no other is, and whatever a peer has died of twice is not asked for again.

Noted is only what runs over bytes of a site: undoing their coding, and reading what they are. Nothing is waited for in
between but turns, least of all a place (memory_slots.py), as whoever has that may wait for its turn here. The file
need not survive the machine: nobody writes to it but one process, in place, and a fault of it costs only this.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path

KILLED_PEER = "killed_peer"
"""Why such a page counts as failed."""
CRASHES_MAX = 2
"""While it read one page."""
READING_MAX = 256
"""Pages noted at a time; few take more than one turn, and what is not noted is read all the same."""
SUSPECTS_MAX = 256
"""Pages remembered of which it may have died, the latest: with the others 9 KB that are written at each start."""
FILE = "reading"

_NAME_BYTES = 16
_ENTRY_BYTES = _NAME_BYTES + 1
"""A byte that is 0 if the place is free, else 1 or how many deaths; and the URL's hash."""
_FREE = bytes(_ENTRY_BYTES)


class PoisonPages:
    """What one peer may have died of."""

    def __init__(self, directory: Path | None) -> None:
        """Without a directory nothing is noted, and nothing known. A file that cannot be opened counts as none."""
        self._crashes: dict[bytes, int] = {}
        self._places = list(reversed(range(READING_MAX)))
        self._count = 0
        """Pages that are being read."""
        self._alone = asyncio.Lock()
        """Held by the one suspect that is to be read, ..."""
        self._is_quiet = asyncio.Event()
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

    @asynccontextmanager
    async def reading(self, url: str) -> AsyncIterator[None]:
        """Note that the answer of a URL is being read, until the context ends; a suspect waits for its turn first."""
        if self._file is None:
            yield
            return
        name = _name(url)
        if name not in self._crashes:
            while self._alone.locked():
                async with self._alone:
                    pass  # One after the other may be a suspect.
            async with self._noted(name):
                yield
            return
        async with self._alone:
            while self._count:
                self._is_quiet.clear()
                await self._is_quiet.wait()
            async with self._noted(name):
                yield

    @asynccontextmanager
    async def _noted(self, name: bytes) -> AsyncIterator[None]:
        self._count += 1
        place = self._places.pop() if self._places else None
        if place is not None:
            self._write(place, b"\1" + name)
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._is_quiet.set()
            if place is not None:
                self._write(place, _FREE)
                self._places.append(place)

    def was_read(self, url: str) -> None:
        """The answer of this URL was read to its end: whatever a peer died of before was something else."""
        if self._crashes and self._crashes.pop(_name(url), None) is not None:
            self._write(READING_MAX, self._suspects())

    def _take_over(self, found: bytes) -> None:
        """Count what was being read when the process before this one ended."""
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


def _name(url: str) -> bytes:
    return blake2b(url.encode(errors="surrogatepass"), digest_size=_NAME_BYTES).digest()
