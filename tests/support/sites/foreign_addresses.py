"""The addresses of hostile sites, the names that lead to them, and a counter of connections."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult

from scripts.kadcrawl_run import LoggedPage

ALLOWED = "127.0.0.2"
"""The address of the hostile server, which stands for the public internet.

A crawl in these tests may use no other address.
"""


class Names(AbstractResolver):
    """Resolve every name to these addresses.

    Several answers come one after the other; the last answer then repeats.
    """

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        self.asked.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in answer
        ]

    async def close(self) -> None:
        """There is nothing to close."""


@dataclass
class Listener:
    """Count the connections to a port of this machine, at any address."""

    port: int = 0
    connections: int = 0


CrawlSeeds = Callable[..., Awaitable[dict[str, LoggedPage]]]
