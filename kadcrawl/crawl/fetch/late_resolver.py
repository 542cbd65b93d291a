"""`LateResolver` loads the resolver of host names when it is asked for the first name.

The resolver has a thread and a library of its own, which a peer that fetches nothing does without.

Tests: tests/crawl/fetch/test_late_resolver.py
"""

import socket
from importlib import import_module
from typing import Final

from aiohttp import resolver as resolvers
from aiohttp.abc import AbstractResolver, ResolveResult

DNS_TRY_S: Final = 3.0
"""Seconds for one DNS query. The next name server or try gets as long again, within ``connect_timeout_s``."""
DNS_TRIES: Final = 2


class LateResolver(AbstractResolver):
    """A resolver that asks the name servers of this machine, and its hosts file first."""

    def __init__(self) -> None:
        self._resolver: AbstractResolver | None = None
        self._is_closed = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if self._is_closed:
            raise OSError("the resolver is closed")
        if self._resolver is None:
            self._resolver = self._load()
        return await self._resolver.resolve(host, port, family)

    async def close(self) -> None:
        self._is_closed = True
        if self._resolver is not None:
            await self._resolver.close()

    def _load(self) -> AbstractResolver:
        if getattr(resolvers, "aiodns", None) is None:  # As after `import_lean`.
            vars(resolvers)["aiodns"] = import_module("aiodns")
        return resolvers.AsyncResolver(timeout=DNS_TRY_S, tries=DNS_TRIES)
