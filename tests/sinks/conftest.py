"""Fixtures of a growing peer's directory, and of sinks of every kind over the directory."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.sinks.mongo_server import MongoServer
from tests.support.sinks.peer_directory import Directory, Documents
from tests.support.sinks.readers import Read, in_csv, in_json_lines, in_mongodb, in_parquet, in_sqlite


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


@pytest.fixture(params=["sqlite", "jsonl", "csv", "parquet", "mongodb"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Read]:
    """Give the name of a sink of each kind, and a function that reads the sink."""
    if request.param == "mongodb":
        uri = request.getfixturevalue("mongo").uri
        return uri, lambda: in_mongodb(uri)
    path = tmp_path / "out" / "results"
    readers = {"sqlite": in_sqlite, "jsonl": in_json_lines, "csv": in_csv, "parquet": in_parquet}

    async def read() -> tuple[Documents, Counter[str]]:
        return readers[request.param](path)

    return f"{request.param}:{path}", read
