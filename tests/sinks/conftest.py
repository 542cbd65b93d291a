"""A peer's directory as it grows, sinks of every kind over it, and what stands in them."""

import asyncio
import json
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymongo import AsyncMongoClient

from kadcrawl.sinks.deliveries import Deliveries
from kadcrawl.system.daemon_threads import DaemonThreadExecutor
from tests.support.mongo_server import MongoServer

Documents = dict[str, dict[str, dict[str, Any]]]
"""Table -> key -> document."""


class Directory:
    """A peer's directory, written by nobody but the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.expected: Documents = {"pages": {}, "records": {}}
        self._number = 0
        path.mkdir()

    def write(self, pages: int, records: int = 0) -> None:
        """Add so many lines to each log."""
        for _ in range(pages):
            self._number += 1
            key = f"{self._number:040x}"
            self.add("pages", {"key": key, "url": f"https://example.org/{self._number}", "status": 200, "links": 3})
        for number in range(records):
            record = {"title": "Ä", "prices": [1, 2.5], "page": {"n": self._number}}
            key = f"{self._number:040x}:{number}"
            self.add("records", {"key": key, "url": "https://example.org/", "rule": "r", "record": record})

    def add(self, table: str, document: dict[str, Any]) -> None:
        self.expected[table][document["key"]] = document
        self.append(table, json.dumps(document).encode() + b"\n")

    def append(self, table: str, data: bytes) -> None:
        with (self.path / f"{table}.jsonl").open("ab") as log:
            log.write(data)


@asynccontextmanager
async def delivering(directory: Path, *sinks: str) -> AsyncIterator[Deliveries]:
    """Deliver in the background, as a peer does."""
    deliveries = Deliveries(directory, sinks, DaemonThreadExecutor(), asyncio.get_running_loop().time)
    running = asyncio.create_task(deliveries.run())
    try:
        yield deliveries
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def deliver(directory: Path, *sinks: str) -> Deliveries:
    """Deliver all there is."""
    async with delivering(directory, *sinks) as deliveries:
        await deliveries.finish()
    return deliveries


def in_sqlite(path: Path) -> tuple[Documents, Counter[str]]:
    """Return the documents, and how many there are of each key."""
    found: Documents = {"pages": {}, "records": {}}
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        for table, documents in found.items():
            for row in db.execute(f"SELECT * FROM {table}"):
                documents[row["key"]] = from_row(dict(row))
    return found, Counter(key for documents in found.values() for key in documents)


def from_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the document that `tables.row` made this of."""
    more = row.pop("more")
    document = {name: value for name, value in row.items() if value is not None}
    if "record" in document:
        document["record"] = json.loads(document["record"])
    return document | (json.loads(more) if more else {})


def in_json_lines(path: Path) -> tuple[Documents, Counter[str]]:
    found: Documents = {"pages": {}, "records": {}}
    counts: Counter[str] = Counter()
    for table, documents in found.items():
        for part in sorted((path / table).glob("*.jsonl")):
            for line in part.read_text().splitlines():
                document = json.loads(line)
                documents[document["key"]] = document
                counts[document["key"]] += 1
    return found, counts


def in_parquet(path: Path) -> tuple[Documents, Counter[str]]:
    import pyarrow.parquet as pq

    found: Documents = {"pages": {}, "records": {}}
    counts: Counter[str] = Counter()
    for table, documents in found.items():
        for part in sorted((path / table).glob("*.parquet")):
            for row in pq.ParquetFile(part).read().to_pylist():
                documents[row["key"]] = from_row(row)
                counts[row["key"]] += 1
    return found, counts


async def in_mongodb(uri: str) -> tuple[Documents, Counter[str]]:
    found: Documents = {"pages": {}, "records": {}}
    counts: Counter[str] = Counter()
    async with AsyncMongoClient[dict[str, Any]](uri) as client:
        for table, documents in found.items():
            async for document in client.get_default_database()[table].find():
                key = document.pop("_id")
                documents[key] = {"key": key, **document}
                counts[key] += 1
    return found, counts


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "peer-1")


@pytest.fixture
def mongo(tmp_path: Path) -> Iterator[MongoServer]:
    """A server that speaks MongoDB's protocol: KADCRAWL_MONGODB, a URI without a database, or else one of our own."""
    if uri := os.environ.get("KADCRAWL_MONGODB"):
        yield MongoServer.elsewhere(f"{uri.rstrip('/')}/kadcrawl_{uuid4().hex[:12]}")
        return
    with MongoServer(tmp_path / "mongo") as server:
        yield server


Read = Callable[[], Awaitable[tuple[Documents, Counter[str]]]]


@pytest.fixture(params=["sqlite", "jsonl", "parquet", "mongodb"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Read]:
    """A sink of each kind: its name, and what reads it."""
    if request.param == "mongodb":
        uri = request.getfixturevalue("mongo").uri
        return uri, lambda: in_mongodb(uri)
    path = tmp_path / "out" / "results"
    readers = {"sqlite": in_sqlite, "jsonl": in_json_lines, "parquet": in_parquet}

    async def read() -> tuple[Documents, Counter[str]]:
        return readers[request.param](path)

    return f"{request.param}:{path}", read
