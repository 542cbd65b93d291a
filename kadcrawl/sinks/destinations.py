"""The destinations of a sink's files: a directory, or any fsspec URL. A file appears there whole or not at all.

In a directory, the file is written under another name, synced, and renamed. By fsspec, the file is written within a
transaction, which each file system commits in its own way: object stores complete an upload, others rename.

Tests: tests/sinks/test_sinks.py, tests/sinks/test_warc_work.py
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from kadcrawl.sinks.sink_names import SinkName

Chunks = Callable[[], Iterable[bytes]]
"""A function that returns the contents of a file from the beginning, each time it is called."""
UNFINISHED = ".unfinished"
"""Suffix of a file that is being written."""


class Destination(Protocol):
    """A folder tree for the files of a sink. Every call may raise any exception."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file in a folder, by name, or nothing without that folder."""
        ...

    def read(self, name: str, begin: int, end: int) -> bytes:
        """Return the bytes of a file, folder/file, from `begin` to `end`. Raises FileNotFoundError without the file."""
        ...

    def write(self, name: str, chunks: Chunks) -> None:
        """Write a file of this name, folder/file, and replace an earlier file."""
        ...


def destination_of(name: SinkName) -> Destination:
    """Return the destination of a sink."""
    return RemoteDestination(name.target) if name.is_remote else DirectoryDestination(Path(name.target))


class DirectoryDestination:
    """A destination in a directory of this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def sizes(self, folder: str) -> dict[str, int]:
        try:
            with os.scandir(self._path / folder) as entries:
                return {
                    entry.name: entry.stat().st_size
                    for entry in entries
                    if entry.is_file() and not entry.name.endswith(UNFINISHED)
                }
        except FileNotFoundError:
            return {}

    def read(self, name: str, begin: int, end: int) -> bytes:
        with (self._path / name).open("rb") as file:
            file.seek(begin)
            return file.read(end - begin)

    def write(self, name: str, chunks: Chunks) -> None:
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + UNFINISHED)
        with unfinished.open("wb") as file:
            for chunk in chunks():
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


class RemoteDestination:
    """A destination at a URL. The first call connects, with a file system instance of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connected: tuple[Any, str] | None = None

    def sizes(self, folder: str) -> dict[str, int]:
        system, root = self._system()
        system.invalidate_cache()
        try:
            found = system.ls(f"{root}/{folder}".rstrip("/"), detail=True)
        except FileNotFoundError:
            return {}
        return {entry["name"].rpartition("/")[2]: int(entry["size"]) for entry in found if entry["type"] == "file"}

    def read(self, name: str, begin: int, end: int) -> bytes:
        system, root = self._system()
        return bytes(system.cat_file(f"{root}/{name}", start=begin, end=end))

    def write(self, name: str, chunks: Chunks) -> None:
        system, root = self._system()
        path = f"{root}/{name}"
        try:
            self._write(system, path, chunks)
        except FileNotFoundError:  # Object stores need no folders, and may refuse to make them.
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._write(system, path, chunks)

    def _write(self, system: Any, path: str, chunks: Chunks) -> None:
        with system.transaction, system.open(path, "wb") as file:
            for chunk in chunks():
                file.write(chunk)

    def _system(self) -> tuple[Any, str]:
        if self._connected is None:
            from fsspec.core import url_to_fs

            system, root = url_to_fs(self._url, skip_instance_cache=True)  # Transactions belong to an instance.
            self._connected = system, str(root).rstrip("/")
        return self._connected
