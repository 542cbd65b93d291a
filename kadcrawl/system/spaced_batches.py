"""`SpacedBatches` gathers what goes to the same receiver, so that it travels in few messages.

The first batch to a receiver after a pause leaves at once. Later batches leave `BUSY_S` apart, or `hurried_s` apart if
somebody waits for them who has nothing else to do. A busy peer of a swarm that crawls by URL finds links for each other
peer many times a second: without company each would be a message.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

BUSY_S = 0.5
"""Least seconds between two batches to one receiver that do not hurry."""

Receiver = TypeVar("Receiver")
Item = TypeVar("Item")


@dataclass(slots=True)
class Gathered(Generic[Item]):
    """The items for one receiver that has had a batch lately."""

    timer: asyncio.TimerHandle
    hurried_at: float
    """Second from which a batch that hurries may leave."""
    is_hurried: bool = False
    items: list[Item] = field(default_factory=list)


class SpacedBatches(Generic[Receiver, Item]):
    """The batches of one sender, by receiver."""

    def __init__(self, hurried_s: float, send: Callable[[Receiver, list[Item]], None]) -> None:
        """`send` begins to send a batch, and returns at once."""
        self._hurried_s = hurried_s
        self._send = send
        self._gathered: dict[Receiver, Gathered[Item]] = {}

    def put(self, receiver: Receiver, items: list[Item], *, hurries: bool) -> None:
        """Send items now, or with the next batch to this receiver."""
        gathered = self._gathered.get(receiver)
        if gathered is None:
            self._leave(receiver, items)
            return
        gathered.items += items
        if hurries and not gathered.is_hurried:
            gathered.is_hurried = True
            gathered.timer.cancel()
            gathered.timer = asyncio.get_running_loop().call_at(gathered.hurried_at, self._due, receiver)

    def close(self) -> None:
        """Send nothing more."""
        for gathered in self._gathered.values():
            gathered.timer.cancel()
        self._gathered.clear()

    def _due(self, receiver: Receiver) -> None:
        gathered = self._gathered.pop(receiver)
        if gathered.items:
            self._leave(receiver, gathered.items)

    def _leave(self, receiver: Receiver, items: list[Item]) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        timer = loop.call_at(now + max(BUSY_S, self._hurried_s), self._due, receiver)
        self._gathered[receiver] = Gathered(timer, now + self._hurried_s)
        self._send(receiver, items)
