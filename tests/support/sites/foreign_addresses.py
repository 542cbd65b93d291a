"""The addresses of hostile sites: the names that lead to them, and who connects."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult

from scripts.kadcrawl_run import LoggedPage

ALLOWED = "127.0.0.2"
"""Where the hostile server is, which stands for the public internet: the only address that a crawl here may use."""


class Names(AbstractResolver):
    """Gives every name these addresses; if there are several answers, one after the other, and then the last again."""

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
    """Counts who connects to a port of this machine, whatever the address."""

    port: int = 0
    connections: int = 0


CrawlSeeds = Callable[..., Awaitable[dict[str, LoggedPage]]]
