"""The link between peers of one process: requests and datagrams go from one to the other without a socket.

They need no TLS and no seal.
The message is packed and unpacked as on any link, and its handler runs in a task of its own, to its end, although the
asker may have gone. Each peer is what its credentials say: the same keys decide who is let in, and the same ID is named
as the sender. Two peers of other processes talk over TCP as ever, also with these.

Tests: tests/link/test_process_links.py
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Protocol

from aiohttp import WSCloseCode

from kadcrawl.link.client_connection import IN_FLIGHT_MAX, PATIENT_MAX, BrokenError
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.sealing import Sealing

Address = tuple[str, int]

ENDED = "cannot be reached: its peer of this process has ended"
OTHER_KEY = "does not let us in: it goes by another swarm's key"


class AnsweringEnd(Protocol):
    """The answering end of a peer of this process."""

    def begin_inside(self, asker: Credentials | None, question: bytes) -> asyncio.Task[bytes]:
        """Return the task that makes the packed answer to a packed request. Nobody but this end cancels it. Raises
        BrokenError."""

    def id_inside(self, asker: Credentials | None) -> bytes | None:
        """Return the ID that this peer proves to an asker. Raises BrokenError unless the asker is let in."""


class DatagramEnd(Protocol):
    """The datagrams of a peer of this process."""

    context: Context
    """The context of this peer's tasks."""

    def receive_inside(self, data: bytes, source: Address, sender: Sealing | None) -> None:
        """Take a datagram of another peer of this process, which was not sealed. `sender` is what would seal it."""


class ProcessLinks:
    """The answering ends and the datagrams of the peers of one process, by their addresses."""

    def __init__(self) -> None:
        self._ends: dict[Address, AnsweringEnd] = {}
        self._datagrams: dict[Address, DatagramEnd] = {}

    def add(self, address: Address, end: AnsweringEnd) -> None:
        """Let the peers of this process ask this one at its address without a socket."""
        self._ends[address] = end

    def remove(self, address: Address) -> None:
        """The peer at this address answers no more."""
        self._ends.pop(address, None)

    def at(self, address: Address) -> AnsweringEnd | None:
        """Return the peer of this process that listens at an address, or None."""
        return self._ends.get(address)

    def add_datagrams(self, address: Address, end: DatagramEnd) -> None:
        """Let the peers of this process send datagrams to this address without a socket."""
        self._datagrams[address] = end

    def remove_datagrams(self, address: Address) -> None:
        """The peer at this address takes no more datagrams."""
        self._datagrams.pop(address, None)

    def datagrams_at(self, address: Address) -> DatagramEnd | None:
        """Return where the datagrams of a peer of this process go, or None for other addresses."""
        return self._datagrams.get(address)


class InsideConnection:
    """The requests of one peer to another of its process. It lasts while a request is under way, and costs nothing
    then."""

    def __init__(
        self,
        end: AnsweringEnd,
        expected: bytes | None,
        credentials: Credentials | None,
        gone: Callable[["InsideConnection"], None],
    ) -> None:
        """`expected` is the ID of the peer that must be there, if it is known and can be proven.

        `gone` is called when no request is under way.
        """
        self._end = end
        self._expected = expected
        self._credentials = credentials
        self._gone = gone
        self._places = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._patient = asyncio.Semaphore(PATIENT_MAX)
        self._asking = 0
        self._dropped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._why = ""

    async def ask(self, question: bytes) -> bytes:
        """Return the answer of the other peer. Raises BrokenError. May be cancelled at any moment."""
        self._asking += 1
        try:
            async with self._places:
                self._check()
                answering = self._end.begin_inside(self._credentials, question)
                await asyncio.wait((answering, self._dropped), return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    raise BrokenError(self._why)
                if answering.cancelled():
                    raise BrokenError(f"has closed the connection (code {WSCloseCode.GOING_AWAY:d})")
                return answering.result()
        finally:
            self._asking -= 1
            if not self._asking:
                self._gone(self)

    async def ask_patiently(self, question: bytes) -> bytes:
        """Send a request that waits at the other end for the effects of other requests."""
        async with self._patient:
            return await self.ask(question)

    def silent_since(self, asked_at: float) -> None:
        """Note that a deadline has passed. Nothing can be lost between two peers of one process."""

    def drop(self, why: str) -> None:
        """Waiting callers get `why` as the reason."""
        self._why = why
        if not self._dropped.done():
            self._dropped.set_result(None)
        self._gone(self)

    def _check(self) -> None:
        """Raise BrokenError unless the peer at the other end is the expected peer, and lets this peer in."""
        if self._dropped.done():
            raise BrokenError(self._why)
        there = self._end.id_inside(self._credentials)
        if self._credentials is not None:
            if self._expected is None and there == self._credentials.peer_key.id:
                raise BrokenError("is this very peer")
            if self._expected not in (None, there):
                raise BrokenError("is another peer than the one that was to be asked")
