"""Where files of a sink stand: a directory, or any fsspec URL. A file appears there whole or not at all.

In a directory it is written under another name, synced, and renamed; by fsspec it is written within a transaction,
which each of its file systems commits as it can (object stores complete an upload, others rename).

Tests: tests/sinks/test_sinks.py, tests/sinks/test_warc_work.py
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from kadcrawl.sinks.names import SinkName

Chunks = Callable[[], Iterable[bytes]]
"""Gives the contents of a file from the beginning, each time it is called."""
UNFINISHED = ".unfinished"


class Place(Protocol):
    def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of each file in this folder, by name; none if there is no such folder."""
        ...

    def write(self, name: str, chunks: Chunks) -> None:
        """Make a file of this name, folder/file, over what stood there."""
        ...


def place_of(name: SinkName) -> Place:
    """Return the place that a sink is at."""
    return RemotePlace(name.target) if name.is_remote else DirectoryPlace(Path(name.target))


class DirectoryPlace:
    """A place on this machine's file systems."""

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


class RemotePlace:
    """A place known by a URL. Its file system is connected by the first call, and has its own instance of it."""

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

    def write(self, name: str, chunks: Chunks) -> None:
        system, root = self._system()
        path = f"{root}/{name}"
        try:
            self._write(system, path, chunks)
        except FileNotFoundError:  # Object stores need no folders, and may permit none to be made.
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
