"""`SpacedBatches` gathers what goes to the same receiver, so that it travels in few messages.

The first batch to a receiver after a pause leaves at once. Later batches leave `BUSY_S` apart, `LADEN_S` apart if the
sender has work for seconds, or `hurried_s` apart if somebody waits for them who has nothing else to do. A busy peer of
a swarm that crawls by URL finds links for each other peer many times a second: without company each would be a message.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

BUSY_S = 0.5
"""Least seconds between two batches to one receiver that do not hurry."""
LADEN_S = 1.25
"""Least seconds between two such batches of a sender with much to do. With 2 s, a kill would repeat more pages."""
UNANSWERED_S = 3.0
"""Most seconds that a batch which does not hurry waits for the answer to the batch before. An overloaded receiver gets
fewer and fuller batches, and a silent one holds up nothing for longer."""

Receiver = TypeVar("Receiver")
Item = TypeVar("Item")


def _never() -> bool:
    return False


@dataclass(slots=True)
class Gathered(Generic[Item]):
    """The items for one receiver that has had a batch lately."""

    timer: asyncio.TimerHandle
    hurried_at: float
    """Second from which a batch that hurries may leave."""
    answer_until: float
    """Second until which the next batch waits for the answer to the last batch, unless it hurries."""
    is_hurried: bool = False
    is_due: bool = False
    """The next batch waits only for the answer to the last batch."""
    items: list[Item] = field(default_factory=list)


class SpacedBatches(Generic[Receiver, Item]):
    """The batches of one sender, by receiver."""

    def __init__(
        self,
        hurried_s: float,
        send: Callable[[Receiver, list[Item]], None],
        is_laden: Callable[[], bool] = _never,
        *,
        with_answers: bool = False,
    ) -> None:
        """`send` begins to send a batch, and returns at once. `is_laden` returns whether the sender has much to do.

        `with_answers`: a call of `answered` follows each batch, and the next batch waits for it for a while.
        """
        self._hurried_s = hurried_s
        self._answer_s = UNANSWERED_S if with_answers else 0.0
        self._is_laden = is_laden
        self._send = send
        self._is_hurried = False
        self._gathered: dict[Receiver, Gathered[Item]] = {}

    def put(self, receiver: Receiver, items: list[Item], *, hurries: bool) -> None:
        """Send items now, or with the next batch to this receiver."""
        gathered = self._gathered.get(receiver)
        if gathered is None:
            self._leave(receiver, items)
            return
        gathered.items += items
        if hurries or self._is_hurried:
            self._hurry(receiver, gathered)

    def hurry(self) -> None:
        """Let all items hurry from now on, as the sender comes to its end."""
        self._is_hurried = True
        for receiver, gathered in self._gathered.items():
            self._hurry(receiver, gathered)

    def answered(self, receiver: Receiver) -> None:
        """Let the next batch to this receiver leave when it is due, as the last batch is answered."""
        gathered = self._gathered.get(receiver)
        if gathered is not None:
            gathered.answer_until = 0.0
            if gathered.is_due:
                gathered.timer.cancel()
                self._due(receiver)

    def close(self) -> None:
        """Send nothing more."""
        for gathered in self._gathered.values():
            gathered.timer.cancel()
        self._gathered.clear()

    def _hurry(self, receiver: Receiver, gathered: Gathered[Item]) -> None:
        if not gathered.is_hurried:
            gathered.is_hurried = True
            gathered.timer.cancel()
            gathered.timer = asyncio.get_running_loop().call_at(gathered.hurried_at, self._due, receiver)

    def _due(self, receiver: Receiver) -> None:
        loop, gathered = asyncio.get_running_loop(), self._gathered[receiver]
        if not gathered.is_hurried and loop.time() < gathered.answer_until:
            gathered.is_due = True
            gathered.timer = loop.call_at(gathered.answer_until, self._due, receiver)
            return
        del self._gathered[receiver]
        if gathered.items:
            self._leave(receiver, gathered.items)

    def _leave(self, receiver: Receiver, items: list[Item]) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        spacing_s = LADEN_S if self._is_laden() else BUSY_S
        timer = loop.call_at(now + max(spacing_s, self._hurried_s), self._due, receiver)
        self._gathered[receiver] = Gathered(timer, now + self._hurried_s, now + self._answer_s)
        self._send(receiver, items)
