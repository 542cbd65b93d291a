"""A server of MongoDB's wire protocol that is not of our making: BriskDB's listener, in this process.

It can be closed and opened again on its port, with what it holds. It keeps a subset of MongoDB: no durable write
concern, so the URI asks for a plain one. KADCRAWL_MONGODB lets the tests ask another server instead.
"""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import briskdb


class MongoServer:
    """Run the server as a context manager. `uri` names a database of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._database: Any = None
        self._server: Any = None
        self.address = "127.0.0.1:0"
        self.can_close = True
        self._uri: str | None = None

    @classmethod
    def elsewhere(cls, uri: str) -> Self:
        """Return the server of this URI, which others run."""
        server = cls(Path())
        server._uri, server.can_close = uri, False
        return server

    @property
    def uri(self) -> str:
        return self._uri or f"mongodb://{self.address}/crawl?w=1&serverSelectionTimeoutMS=300"

    def open(self) -> None:
        self._directory.mkdir(exist_ok=True)
        self._database = briskdb.Database(str(self._directory), documents=True, shards=2)
        self._database.__enter__()
        self._server = self._database.serve(mongo=self.address)
        self._server.__enter__()
        self.address = self._server.mongo_address

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._database.__exit__(None, None, None)
            self._server = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
