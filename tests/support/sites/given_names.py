"""A resolver of given names, for hosts that only a test knows."""

import socket
from collections.abc import Mapping, Sequence

from aiohttp.abc import AbstractResolver, ResolveResult


class GivenNames(AbstractResolver):
    """Finds the addresses of the names in a mapping, which may change."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._names = names

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if host not in self._names:
            raise OSError(None, f"no such host: {host}")
        return [
            ResolveResult(hostname=host, host=ip, port=port, family=socket.AF_INET, proto=0, flags=0)
            for ip in self._names[host]
        ]

    async def close(self) -> None:
        """Do nothing: no connection is open."""
