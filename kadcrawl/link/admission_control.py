"""Admission control: bounds on the bytes and the turns of all members' requests, over all their connections.

Each member has bounds of its own, but IDs cost nothing, so further bounds hold for all members together. They count
requests on ended connections too. Turns: of all waiting requests, a few begin in each round of the loop, first those of
the member whose last turn is longest ago, so that a member that asks seldom goes before one that always asks. Bytes: no
member has more bytes of requests handled than are free beside them, so that there is room for one more, however many
members share the rest. Waiting bytes: requests not received in full or without room, and answers not read. When all of
it is too much, the member that has had most for longest loses it with its connections. An honest member has much only
for a moment.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count as numbers
from math import inf

PEER_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of one peer's requests that are handled at a time: a few of the largest. Honest peers have far less."""
QUESTIONS_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of all peers' requests that are handled at a time: fifty of the largest. A hundred honest peers that offer
links have a tenth of it.
"""
SMALL_BYTES = 4096
"""The least size that a request counts as, as each has a task. It covers the answer too, if that is no larger."""
QUESTIONS_PER_ROUND_MAX = 4
"""Requests of all peers that begin in one round of the loop: the most expensive take ten milliseconds each."""
UNSENT_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of unsent answers to one peer at which no further request of it begins. Answers to requests under way are
added.
"""
WAITING_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of all peers that wait: requests read at least in part and without room, and answers to be sent. They suffice
for thirty peers that read nothing. Honest peers have some kilobytes each.
"""


class AdmissionControl:
    """The bounds over all members."""

    def __init__(self, disconnect: Callable[["PeerQuota"], None]) -> None:
        """The callback `disconnect` ends the connections of one member."""
        self._disconnect = disconnect
        self._loop = asyncio.get_running_loop()
        self._numbers = numbers()
        self._turns: list[tuple[int, PeerQuota]] = []
        """The members that wait for a turn, as a heap."""
        self._begins = 0
        """Requests that begin in this round of the loop."""
        self._looks_soon = False
        self._bytes = 0
        """Bytes of the requests that are handled."""
        self._outside: dict[PeerQuota, None] = {}
        """The members that wait for room."""
        self._waits = 0
        """Waiting bytes of all members."""
        self._whose: dict[PeerQuota, None] = {}
        """The members that have waiting bytes."""

    # --- turns ---------------------------------------------------------------------------------------------------

    def next_number(self) -> int:
        """Return the number for a member that has just come."""
        return next(self._numbers)

    def has_turns(self) -> bool:
        """Return whether another request may begin in this round."""
        return self._begins < QUESTIONS_PER_ROUND_MAX

    def may_begin(self) -> bool:
        """Return whether a request that has just come may begin at once: true if no member waits for a turn."""
        return not self._turns and self._begins < QUESTIONS_PER_ROUND_MAX

    def begins(self) -> int:
        """Count a request that begins in this round. Return the number of its turn."""
        self._begins += 1
        self._look_soon()
        return next(self._numbers)

    def queue(self, quota: "PeerQuota") -> None:
        """Give a turn to a member that is not in the queue, in its order."""
        heappush(self._turns, (quota.turn_at, quota))
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._looks_soon:
            self._looks_soon = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._looks_soon = False
        self._begins = 0
        while self._turns and self.has_turns():
            heappop(self._turns)[1].take_turn()

    # --- bytes of questions --------------------------------------------------------------------------------------

    def has_room(self, needed: float) -> bool:
        """Return whether so many bytes are free. A single request always has room."""
        return not self._bytes or needed <= QUESTIONS_BYTES_MAX - self._bytes

    def keep_outside(self, quota: "PeerQuota") -> None:
        """Admit the member's requests when there is room for them."""
        self._outside[quota] = None

    def add(self, count: int) -> None:
        self._bytes += count

    def drop(self, count: int) -> None:
        self._bytes -= count
        while self._outside:
            least = min(self._outside, key=PeerQuota.needed)
            if not self.has_room(least.needed()):
                return
            if not least.let_in():
                del self._outside[least]

    # --- bytes that wait -----------------------------------------------------------------------------------------

    def hold(self, quota: "PeerQuota", more: int) -> None:
        """Add `more` waiting bytes (or fewer, if negative) of a member."""
        self._waits += more
        if quota.waits:
            self._whose[quota] = None
        else:
            self._whose.pop(quota, None)
        if more > 0 and self._waits > WAITING_BYTES_MAX:
            now = self._loop.time()
            self._disconnect(max(self._whose, key=lambda quota: (quota.waits * (now - quota.waits_since), quota.waits)))


class PeerQuota:
    """The bytes and turns of one member."""

    def __init__(self, admission_control: AdmissionControl) -> None:
        self._admission_control = admission_control
        self._loop = asyncio.get_running_loop()
        self._bytes = 0
        """Bytes of the requests that are handled."""
        # Most connections never have either, and an empty deque takes 600 bytes.
        self._outside: deque[tuple[int, asyncio.Future[None]]] | None = None
        """Requests without room, with their bytes, in order."""
        self._waiting: deque[asyncio.Future[None]] | None = None
        """Requests that have not begun, in order."""
        self._is_queued = False
        self.waits = 0
        """Waiting bytes ..."""
        self.waits_since = 0.0
        """... and the second of the loop at which they were last zero."""
        self._unsent = 0
        """Waiting bytes of answers."""
        self.turn_at = admission_control.next_number()
        """The number of the last turn. At first it is the number of its coming, so that a new ID brings no earlier
        turn.
        """

    # --- bytes of questions --------------------------------------------------------------------------------------

    async def add(self, count: int) -> None:
        """Wait until there is room for a request of so many bytes. A single request always has room."""
        if not self._outside and self._admission_control.has_room(self._needed_for(count)):
            self._enter(count)
            return
        admitted = self._loop.create_future()
        if self._outside is None:
            self._outside = deque()
        self._outside.append((count, admitted))
        self._admission_control.keep_outside(self)
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self.drop(count)
            raise

    def drop(self, count: int) -> None:
        self._bytes -= count
        self._admission_control.drop(count)

    def needed(self) -> float:
        """Return the bytes that must be free for the next request, or 0 if its caller has gone."""
        assert self._outside, "it waits outside"
        count, admitted = self._outside[0]
        return 0 if admitted.done() else self._needed_for(count)

    def let_in(self) -> bool:
        """Admit the next request. Return whether another waits."""
        assert self._outside, "it waits outside"
        count, admitted = self._outside.popleft()
        if not admitted.done():
            self._enter(count)
            admitted.set_result(None)
        return bool(self._outside)

    def _needed_for(self, count: int) -> float:
        if self._bytes and self._bytes + count > PEER_BYTES_MAX:
            return inf
        return count + self._bytes + count  # As many bytes as the peer then has must stay free.

    def _enter(self, count: int) -> None:
        self._bytes += count
        self._admission_control.add(count)

    # --- turns ---------------------------------------------------------------------------------------------------

    async def turn(self) -> None:
        """Wait until a request may begin, which it then does at once. Most need not wait."""
        if self._waiting or self._is_unread() or not self._admission_control.may_begin():
            turn = self._loop.create_future()
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append(turn)
            self._queue()
            await turn
        else:
            self.turn_at = self._admission_control.begins()

    def take_turn(self) -> None:
        """Let the member's next requests begin, as many as may.

        Together they cost less than alternating with those of others.
        """
        self._is_queued = False
        while self._waiting and not self._is_unread() and self._admission_control.has_turns():
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self.turn_at = (
                    self._admission_control.begins()
                )  # After the result: the request has begun when the next is selected.
        self._queue()

    def _queue(self) -> None:
        if self._waiting and not self._is_queued and not self._is_unread():
            self._is_queued = True
            self._admission_control.queue(self)

    # --- bytes that wait -----------------------------------------------------------------------------------------

    def hold(self, more: int) -> None:
        """Add `more` bytes (or fewer, if negative) of requests that were read and not admitted."""
        if not self.waits:
            self.waits_since = self._loop.time()
        self.waits += more
        self._admission_control.hold(self, more)

    def hold_answer(self, count: int) -> None:
        """Add the bytes of an answer that is to be sent."""
        self._unsent += count
        self.hold(count)

    def release_answer(self, count: int) -> None:
        """Subtract the bytes of an answer that was sent, or never will be."""
        self._unsent -= count
        self.hold(-count)
        self._queue()

    def _is_unread(self) -> bool:
        return self._unsent > UNSENT_BYTES_MAX
