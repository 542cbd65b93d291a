"""`Mailbox`: a queue without a bound between two tasks, which is mostly empty and then takes little memory.

A queue of the standard library has four deques, each with room for 64 entries: 3 kB. In a process with 200 peers there
are 600 such queues.

Tests: tests/system/test_mailbox.py
"""

from typing import Generic, TypeVar

from kadcrawl.system.event import Event

Letter = TypeVar("Letter")


class Mailbox(Generic[Letter]):
    """A queue in the order of arrival."""

    __slots__ = ("_filled", "_letters")

    def __init__(self) -> None:
        self._letters: list[Letter] = []
        self._filled = Event()

    def __len__(self) -> int:
        return len(self._letters)

    def put(self, letter: Letter) -> None:
        """Add an entry."""
        self._letters.append(letter)
        self._filled.set()

    async def get(self) -> Letter:
        """Wait for the next entry, and take it out."""
        while not self._letters:
            self._filled.clear()
            await self._filled.wait()
        return self._letters.pop(0)
