"""MongoDB, by pymongo's async client: collections `pages` and `records`, with one document per key, its _id.

A batch is one bulk of upserts by replacement. The batch's offset, in the collection `kadcrawl_marks`, moves after the
bulk was acknowledged. A kill in between repeats the batch, which replaces the documents by equal ones. Unless the
connection string says otherwise, a write counts when it is in the journals of a majority.

Tests: tests/sinks/test_sinks.py
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import bson
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument
from pymongo import AsyncMongoClient, ReplaceOne
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import BulkWriteError
from pymongo.write_concern import WriteConcern

from kadcrawl.sinks.batch import BatchSize, Document, DocumentBatch
from kadcrawl.sinks.sink import SinkError

DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
"""MongoDB's own limit on a document."""
TIMEOUTS_MS = {"serverSelectionTimeoutMS": 10_000, "connectTimeoutMS": 10_000, "socketTimeoutMS": 30_000}
"""Default time-outs, which the connection string may override."""
OFFSETS = "kadcrawl_marks"
"""Collection with the offsets of all logs."""


_BAD_DOCUMENT = frozenset({2, 9, 14, 22, 52, 56, 57, 121, 10334, 17280, 17419})
"""Codes of errors that a retry cannot mend.

BadValue, FailedToParse, TypeMismatch, InvalidBSON, three about field names, DocumentValidationFailure, too large."""


class MongoSink:
    """A `Sink` that writes to a MongoDB database."""

    size = BatchSize(lines_max=500, bytes_max=4 * 1024 * 1024, wait_s=1.0)

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._said = {name.lower() for name, _ in parse_qsl(urlsplit(uri).query)}
        self._client: AsyncMongoClient[Any] | None = None
        self._db: AsyncDatabase[Any] | None = None

    async def open(self) -> None:
        timeouts: dict[str, Any] = {
            name: value for name, value in TIMEOUTS_MS.items() if name.lower() not in self._said
        }
        self._client = AsyncMongoClient(self._uri, appname="kadcrawl", **timeouts)
        concern = None if self._said & {"w", "journal"} else WriteConcern(w="majority", j=True)
        self._db = self._client.get_default_database(write_concern=concern)

    async def offset(self, table: str, source: str) -> int:
        found = await self._open[OFFSETS].find_one({"_id": f"{table}:{source}"})
        return int(found["mark"]) if found else 0

    async def put(self, batch: DocumentBatch) -> Sequence[str]:
        documents, refused = batch.documents()
        writes: list[ReplaceOne[Any]] = []
        keys = []
        for key, document in documents.items():
            try:
                writes.append(ReplaceOne({"_id": key}, _encoded(key, document), upsert=True))
                keys.append(key)
            except (BSONError, OverflowError, RecursionError) as error:
                refused.append(f"{batch.table} {key}: {error}")
        if writes:
            refused += [f"{batch.table} {keys[number]}: {why}" for number, why in await self._write(batch, writes)]
        await self._keep_offset(batch)
        return refused

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    @property
    def _open(self) -> AsyncDatabase[Any]:
        assert self._db is not None, "the sink is open"
        return self._db

    async def _write(self, batch: DocumentBatch, writes: Sequence[ReplaceOne[Any]]) -> list[tuple[int, str]]:
        """Write all documents, and return (number, reason) of those that the server will never take.

        Raises SinkError for other failures.
        """
        try:
            await self._open[batch.table].bulk_write(writes, ordered=False)
        except BulkWriteError as error:
            details = error.details or {}
            errors = details.get("writeErrors", [])
            if details.get("writeConcernErrors") or not errors or _may_pass(errors):
                raise SinkError(f"MongoDB did not take a batch: {str(details)[:500]}") from None
            return [(each["index"], str(each.get("errmsg"))[:500]) for each in errors]
        return []

    async def _keep_offset(self, batch: DocumentBatch) -> None:
        name = f"{batch.table}:{batch.source}"
        await self._open[OFFSETS].replace_one({"_id": name}, {"_id": name, "mark": batch.end}, upsert=True)


def _may_pass(errors: Sequence[dict[str, Any]]) -> bool:
    """Return whether a retry may help, as when two peers insert the same page."""
    return not all(each.get("code") in _BAD_DOCUMENT for each in errors)


def _encoded(key: str, document: Document) -> RawBSONDocument:
    rest = {name: value for name, value in document.items() if name not in ("key", "_id")}
    encoded = bson.encode({"_id": key, **rest})
    if len(encoded) > DOCUMENT_BYTES_MAX:
        raise OverflowError(f"{len(encoded)} bytes are too many, as MongoDB takes at most {DOCUMENT_BYTES_MAX}")
    return RawBSONDocument(encoded)
