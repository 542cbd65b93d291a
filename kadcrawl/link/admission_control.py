"""What members have a peer do at a time, by all their connections, living and dead: bytes, and the loop's time.

Each has bounds of its own, but IDs cost a member nothing, so there are some over all of them together. Of all questions
that wait, a few begin in each round of the loop: of whoever had a turn longest ago, so that who asks seldom goes before
who asks always. Nobody has more bytes of questions handled than are free beside them, so that there is room for one
more, however many share the rest. Of what waits, questions that have not come in full or have no room, and answers that
are not read, who has had most for longest loses it with its connections when all of it is too much: an honest member
has much only for a moment.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count as numbers
from math import inf

PEER_BYTES_MAX = 32 * 1024 * 1024
"""Of all questions of one peer that are being handled: some of the largest, and what honest peers ask is far below."""
QUESTIONS_BYTES_MAX = 256 * 1024 * 1024
"""Of those of all peers: fifty of the largest. A hundred honest peers that offer links have a tenth of it."""
SMALL_BYTES = 4096
"""As which a smaller question counts, as there is a task for each; with that its answer is counted, if it is no larger.
"""
QUESTIONS_PER_ROUND_MAX = 4
"""Questions, of all peers, that begin in one round of the loop: the dearest take ten milliseconds each."""
UNSENT_BYTES_MAX = 8 * 1024 * 1024
"""Of answers to one peer that wait to be sent, before another of its questions begins; those of what has begun come on
top."""
WAITING_BYTES_MAX = 256 * 1024 * 1024
"""Of questions that were read, or begun to be, and have no room, and of answers that wait to be sent, of all peers: of
thirty that read nothing. Honest ones have some kilobytes each."""


class AdmissionControl:
    """All members."""

    def __init__(self, disconnect: Callable[["PeerQuota"], None]) -> None:
        """`part` ends the connections of one."""
        self._disconnect = disconnect
        self._loop = asyncio.get_running_loop()
        self._numbers = numbers()
        self._turns: list[tuple[int, PeerQuota]] = []
        """Who waits for a turn, as a heap."""
        self._begins = 0
        """Questions that begin in this round of the loop."""
        self._looks_soon = False
        self._bytes = 0
        """Of questions."""
        self._outside: dict[PeerQuota, None] = {}
        """Who waits for room."""
        self._waits = 0
        """Bytes of all that waits."""
        self._whose: dict[PeerQuota, None] = {}
        """Of whom anything does."""

    # --- turns ---------------------------------------------------------------------------------------------------

    def next_number(self) -> int:
        """Return that of whoever comes now."""
        return next(self._numbers)

    def has_turns(self) -> bool:
        """Return whether another question may begin in this round."""
        return self._begins < QUESTIONS_PER_ROUND_MAX

    def may_begin(self) -> bool:
        """Return whether a question may begin that has just come: so it may if nobody waits for a turn."""
        return not self._turns and self._begins < QUESTIONS_PER_ROUND_MAX

    def begins(self) -> int:
        """A question begins in this round; return the number of its turn."""
        self._begins += 1
        self._look_soon()
        return next(self._numbers)

    def queue(self, quota: "PeerQuota") -> None:
        """Give one that is not in the queue a turn, when it comes to it."""
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
        """Return whether so many bytes are free; for one question alone there always is room."""
        return not self._bytes or needed <= QUESTIONS_BYTES_MAX - self._bytes

    def keep_outside(self, quota: "PeerQuota") -> None:
        """Let its questions in when there is room for them."""
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
        """So many bytes more wait, or fewer."""
        self._waits += more
        if quota.waits:
            self._whose[quota] = None
        else:
            self._whose.pop(quota, None)
        if more > 0 and self._waits > WAITING_BYTES_MAX:
            now = self._loop.time()
            self._disconnect(max(self._whose, key=lambda one: (one.waits * (now - one.waits_since), one.waits)))


class PeerQuota:
    """That of one member."""

    def __init__(self, admission_control: AdmissionControl) -> None:
        self._admission_control = admission_control
        self._loop = asyncio.get_running_loop()
        self._bytes = 0
        """Of questions."""
        self._outside: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Questions there is no room for, and their bytes, in their order."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Questions that have not begun, in their order."""
        self._is_queued = False
        self.waits = 0
        """Bytes of all that waits, ..."""
        self.waits_since = 0.0
        """... and at which second of the loop that began."""
        self._unsent = 0
        """Of these, of answers."""
        self.turn_at = admission_control.next_number()
        """The number of its last turn; at first of its coming, so that nobody is sooner under a new ID."""

    # --- bytes of questions --------------------------------------------------------------------------------------

    async def add(self, count: int) -> None:
        """Wait until there is room for a question of so many bytes; there always is for one alone."""
        if not self._outside and self._admission_control.has_room(self._needed_for(count)):
            self._enter(count)
            return
        one = self._loop.create_future()
        self._outside.append((count, one))
        self._admission_control.keep_outside(self)
        try:
            await one
        except asyncio.CancelledError:
            if not one.cancelled():
                self.drop(count)
            raise

    def drop(self, count: int) -> None:
        self._bytes -= count
        self._admission_control.drop(count)

    def needed(self) -> float:
        """Return how many bytes must be free for the next question; none if nobody waits for it any more."""
        count, one = self._outside[0]
        return 0 if one.done() else self._needed_for(count)

    def let_in(self) -> bool:
        """Let the next question in; return whether another waits."""
        count, one = self._outside.popleft()
        if not one.done():
            self._enter(count)
            one.set_result(None)
        return bool(self._outside)

    def _needed_for(self, count: int) -> float:
        if self._bytes and self._bytes + count > PEER_BYTES_MAX:
            return inf
        return count + self._bytes + count  # As much as it has by then is to be free still.

    def _enter(self, count: int) -> None:
        self._bytes += count
        self._admission_control.add(count)

    # --- turns ---------------------------------------------------------------------------------------------------

    async def turn(self) -> None:
        """Wait until a question may begin, which it does at once then; most need not wait."""
        if self._waiting or self._is_unread() or not self._admission_control.may_begin():
            one = self._loop.create_future()
            self._waiting.append(one)
            self._queue()
            await one
        else:
            self.turn_at = self._admission_control.begins()

    def take_turn(self) -> None:
        """Let its next questions begin, as many as may: together they cost less than in turns with those of others."""
        self._is_queued = False
        while self._waiting and not self._is_unread() and self._admission_control.has_turns():
            one = self._waiting.popleft()
            if not one.done():
                one.set_result(None)
                self.turn_at = (
                    self._admission_control.begins()
                )  # After it: it has begun when the next one is looked for.
        self._queue()

    def _queue(self) -> None:
        if self._waiting and not self._is_queued and not self._is_unread():
            self._is_queued = True
            self._admission_control.queue(self)

    # --- bytes that wait -----------------------------------------------------------------------------------------

    def hold(self, more: int) -> None:
        """So many bytes more, or fewer, of questions were read and not let in."""
        if not self.waits:
            self.waits_since = self._loop.time()
        self.waits += more
        self._admission_control.hold(self, more)

    def hold_answer(self, count: int) -> None:
        """An answer of so many bytes is to be sent."""
        self._unsent += count
        self.hold(count)

    def release_answer(self, count: int) -> None:
        """It was sent, or never will be."""
        self._unsent -= count
        self.hold(-count)
        self._queue()

    def _is_unread(self) -> bool:
        return self._unsent > UNSENT_BYTES_MAX
