"""The documents in a sink of each kind."""

import csv
import json
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient

from kadcrawl.sinks.tables import TABLES
from tests.support.sinks.peer_directory import Documents


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


def in_csv(path: Path) -> tuple[Documents, Counter[str]]:
    found: Documents = {"pages": {}, "records": {}}
    counts: Counter[str] = Counter()
    for table, documents in found.items():
        integers = {column.name for column in TABLES[table] if column.kind == "integer"}
        for part in sorted((path / table).glob("*.csv")):
            with part.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    values = {name: (int(text) if name in integers else text) for name, text in row.items() if text}
                    documents[row["key"]] = from_row({"more": None} | values)
                    counts[row["key"]] += 1
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


Read = Callable[[], Awaitable[tuple[Documents, Counter[str]]]]
