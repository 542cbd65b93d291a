"""`SharedClock`: one shared clock as a peer sees it that asks sites on it.

The peer makes requests only while it has the lease of the clock. The sites that wait are asked in turn: the first in
the order has a *promise* for a moment, since it may have nothing to ask any more. With a delay one request is under way
at a time, and the next begins a delay after the server surely had the last. Without a delay several requests may be
under way. A lease is given back when no site waits for the clock, or when the clock rests beyond its end.

The clock of a host without a delay is shared out to several peers, each with some of the host's connections. A peer
tells once that the host has several, as soon as it has read robots.txt, and asks for more while sites wait. A site with
a delay needs the clock for itself, so the peer exchanges its lease. A decision: times are seconds of the loop.
"""

from collections.abc import Hashable
from math import inf
from typing import NamedTuple

from kadcrawl.crawl.clocks.clock_names import AHEAD_S, LEASE_S, is_of_host
from kadcrawl.link.wire.clock_messages import ALL_CONNECTIONS, ClockQuestion, ClockTurn
from kadcrawl.urls import origin_of

IDLE_S = 0.3
"""Seconds for which a free clock is kept without a site that waits: the next page of a site may be found just then."""
SHARED_IDLE_S = 2.0
"""The same for the share of a clock, which keeps no other peer from the clock while there are shares to spare."""
EARLY_IDLE_S = 0.75
"""The same for a share that is given back in a message which is sent anyway."""
EARLY_S = LEASE_S / 4
"""Seconds before its time from which a lease is renewed in such a message."""
MORE_S = 0.5
"""Seconds before a holder asks for more connections, or again."""
PROMISE_S = 0.25
"""Seconds for which the next site in turn has the clock to itself."""
UNHEARD_FIRST_S, UNHEARD_MOST_S = 0.5, 5.0
"""The first and the longest wait before an owner that did not answer is asked again."""
REDIRECT_WAIT_S = 0.05
"""Seconds before the peer is asked that another peer named as the owner."""
KNOWN_S = 60.0
"""Seconds after which the rules of an origin are asked for again, if pages still lack them: they may be too old."""
WAIT_MAX_S = 86_400.0
"""The longest wait or delay in a message."""


class Pace(NamedTuple):
    """The pace of one site."""

    delay_s: float
    """Seconds between two requests."""
    connections: int
    """Requests that may be under way at a time without a delay."""
    is_known: bool = False
    """The robots.txt of the site has been read, so its delay is known."""
    page: str = ""
    """A URL of the site whose robots.txt the owner of the clock may read, or empty."""

    @property
    def most(self) -> int:
        """Requests that may be under way at a time."""
        return 1 if self.delay_s > 0 else self.connections


class SharedClock:
    """One clock."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._number = 0
        """Number of the lease, or 0 without one."""
        self._until = -inf
        """Second at which the lease ends."""
        self._renew_at = inf
        self._leased_at = -inf
        """Second at which the lease began here, or was last renewed."""
        self._next_at = -inf
        """Second before which no request may begin."""
        self._ask_at = -inf
        """Second before which no question is asked for a new lease."""
        self._has_place = False
        """The owner has put this peer off, and keeps it a place among the peers that wait."""
        self._gives_up = False
        """The owner is to hear that this peer does not want the clock any more."""
        self._unheard_s = 0.0
        self._asked: ClockQuestion | None = None
        """The question under way."""
        self._connections = 0
        """Requests that may be under way by the lease."""
        self._is_alone = True
        """No other peer has a lease of the clock."""
        self._known_most = 0
        """Requests that the sites asked in this lease let be under way, as far as is known for sure, or 0."""
        self._told_most = 0
        """The same as the owner of the clock was told."""
        self._more_at = -inf
        """Second from which more connections may be asked for."""
        self._in_flight = 0
        self._most = 0
        """Requests that may be under way beside each other, by those that are."""
        self._waiting: dict[Hashable, Pace] = {}
        """Site that waits -> its pace."""
        self._promised: Hashable | None = None
        self._promised_until = -inf
        self._delay_s = 0.0
        """The longest delay of the sites asked in this lease."""
        self._origin_known = ""
        """The origin whose rules the owner of the clock told last. They are not asked for again for `KNOWN_S`."""
        self._known_until = -inf

    # --- requests --------------------------------------------------------------------------------------------------

    def may_begin(self, site: Hashable, pace: Pace, now: float) -> bool:
        """Return whether a request to a site with this pace may begin now, without passing over other sites."""
        if not self._admits(pace, now):
            return False
        if self._promised is not None and self._promised_until > now:
            return self._promised == site
        return not self._waiting or next(iter(self._waiting)) == site

    def begin(self, site: Hashable, pace: Pace) -> bool:
        """Count a request that begins, and return whether its site waited, which it does no more."""
        self._most = min(self._most, pace.most) if self._in_flight else pace.most
        self._in_flight += 1
        self._learn(pace)
        if self._promised == site:
            self._promised = None
        return self._waiting.pop(site, None) is not None

    def may_send(self, now: float) -> bool:
        """Return whether a request that has begun may be sent: the lease goes on."""
        return now < self._until

    def end(self, free_at: float) -> None:
        """Count the end of a request, after which the clock rests until `free_at`."""
        self._in_flight -= 1
        self.rest(free_at)

    def rest(self, free_at: float) -> None:
        """Let the clock rest until `free_at`, unless it already rests for longer."""
        self._next_at = max(self._next_at, free_at)

    def wait(self, site: Hashable, pace: Pace) -> None:
        """Let a site wait for its turn. A site that had its turn and could not use it is the first again."""
        if self._promised == site:
            self._promised = None
            self._waiting = {site: pace, **self._waiting}
        else:
            self._waiting[site] = pace
        self._learn(pace)

    @property
    def first_waiting(self) -> Hashable | None:
        """The site that waits and is the next in turn, or None."""
        return next(iter(self._waiting), None)

    def leave(self, site: Hashable) -> None:
        """Let a site wait no more."""
        del self._waiting[site]

    def next_site(self, now: float) -> Hashable | None:
        """Return the site whose turn is now, if it waits, and promise it the clock for a moment."""
        if not self._waiting or (self._promised is not None and self._promised_until > now):
            return None
        site, pace = next(iter(self._waiting.items()))
        if not self._admits(pace, now):
            return None
        del self._waiting[site]
        self._promised, self._promised_until = site, now + PROMISE_S
        return site

    def _admits(self, pace: Pace, now: float) -> bool:
        if not self._number or now >= self._until or now < self._next_at:
            return False
        if self._asked is not None and self._asked.ends:
            return False  # The lease is on its way back.
        if self._needs_it_alone(pace) or self._in_flight >= self._connections:
            return False
        return not self._in_flight or self._in_flight < min(self._most, pace.most)

    def _needs_it_alone(self, pace: Pace) -> bool:
        """Return whether a site may not be asked while other peers ask on this clock."""
        return not self._is_alone and pace.most == 1

    def _learn(self, pace: Pace) -> None:
        self._delay_s = max(self._delay_s, pace.delay_s)
        if pace.is_known or pace.most == 1:  # No robots.txt lets more be under way than the delay.
            self._known_most = min(self._known_most or pace.most, pace.most)

    # --- the lease -------------------------------------------------------------------------------------------------

    def question(self, now: float) -> ClockQuestion | None:
        """Return the question to ask the owner of the clock now, or None. `heard` or `unheard` follows."""
        if self._asked is not None:
            return None
        wants = bool(self._waiting) and self._next_at <= now + AHEAD_S
        if self._gives_up:
            return self._ask(now, wants=wants)
        if not self._number:
            return self._ask(now, wants=True) if wants and now >= self._ask_at else None
        if not self._in_flight and self._ends_at(now) <= now:
            return self._ask(now, wants=wants, ends=True)
        return self._ask(now, wants=True) if now >= min(self._renew_at, self._tells_at()) else None

    def early_question(self, now: float) -> ClockQuestion | None:
        """Return a question that is not due yet, for a message that is sent to the owner anyway, or None."""
        if self._asked is not None or not self._number or self._is_alone:
            return None
        if self._in_flight or self._waiting:
            return self._ask(now, wants=True) if now >= self._renew_at - EARLY_S else None
        is_idle = self._ends_at(now) - SHARED_IDLE_S + EARLY_IDLE_S <= now
        return self._ask(now, wants=False, ends=True) if is_idle else None

    def heard(self, turn: ClockTurn, sent_at: float, now: float) -> None:
        """Take the answer to the last question, which was sent at `sent_at`."""
        asked, self._asked = self._asked, None
        assert asked is not None, "an answer follows a question"
        self._unheard_s, self._gives_up = 0.0, False
        self._has_place = asked.wants and not turn.lease and turn.owner is None
        if turn.robots is not None:
            self._origin_known, self._known_until = turn.robots.origin, now + KNOWN_S
        if asked.ends:
            self._drop_lease()
        if turn.lease:
            self._number, self._until, self._renew_at = turn.lease, sent_at + LEASE_S, sent_at + LEASE_S / 2
            self._leased_at, self._more_at = now, now + MORE_S
            self._connections, self._is_alone = turn.connections, turn.connections == ALL_CONNECTIONS
            self._next_at = max(self._next_at, now + turn.wait_s)
        elif self._number:
            # Others wait. The lease goes on to its end, and longer only if a request is under way then.
            self._renew_at = self._until if now < self._until else now + turn.wait_s
            self._more_at = self._renew_at
        else:
            self._ask_at = now + (REDIRECT_WAIT_S if turn.owner is not None else turn.wait_s)

    def unheard(self, now: float) -> None:
        """Note that the owner did not answer the last question."""
        asked, self._asked, self._gives_up = self._asked, None, False
        if asked is not None and asked.ends:
            self._drop_lease()
        self._unheard_s = min(max(UNHEARD_FIRST_S, 2 * self._unheard_s), UNHEARD_MOST_S)
        self._ask_at = now + self._unheard_s
        self._renew_at = now + self._unheard_s if self._number else inf
        self._more_at = now + self._unheard_s

    def is_free_now(self, now: float) -> None:
        """Ask at once, as the owner says that the clock is free. Without a site that waits, leave it to the next peer.

        Otherwise the owner would keep the clock for this peer for a while.
        """
        self._ask_at = min(self._ask_at, now)
        self._gives_up = self._has_place and not self._number and not self._waiting

    def due(self, now: float) -> float:
        """Return the second at which `question` or `next_site` is to be called again, or infinity."""
        question_at = turn_at = inf
        if self._number:
            question_at = min(self._renew_at, self._tells_at())
            if not self._in_flight:
                question_at = min(self._ends_at(now), question_at)
        elif self._gives_up:
            question_at = now
        elif self._waiting:
            question_at = max(self._ask_at, self._next_at - AHEAD_S)
        if self._asked is not None:
            question_at = inf
        if self._waiting and self._number:
            first = next(iter(self._waiting.values()))
            at = max(now, self._next_at, self._promised_until if self._promised is not None else -inf)
            if self._admits(first, at):
                turn_at = at
        return min(question_at, turn_at)

    def is_idle(self, now: float) -> bool:
        """Return whether nothing of the clock must be remembered."""
        is_used = self._number or self._in_flight or self._waiting or self._asked is not None
        return not is_used and self._next_at <= now

    @property
    def is_leased(self) -> bool:
        """True if this peer has the lease of the clock, or a share of it."""
        return self._number > 0

    def is_waiting(self, site: Hashable) -> bool:
        """Return whether a site waits for this clock."""
        return site in self._waiting

    def _ends_at(self, now: float) -> float:
        """Return the second at which a lease without a request under way is given back."""
        if self._next_at >= self._until or not self._connections:
            return now
        if self._waiting and self._needs_it_alone(next(iter(self._waiting.values()))):
            return now
        if self._waiting:
            return self._until
        promised_until = self._promised_until if self._promised is not None else -inf
        idle_s = IDLE_S if self._is_alone else SHARED_IDLE_S
        return min(self._until, max(self._next_at, self._leased_at, promised_until) + idle_s)

    def _tells_at(self) -> float:
        """Return the second from which the owner is to hear more than at the next renewal.

        The host has several connections, so other peers may have some, or sites wait for more connections.
        """
        if self._is_alone:
            is_news = is_of_host(self.name) and self._known_most > 1 and self._told_most != self._known_most
            return self._leased_at if is_news else inf
        if not self._waiting or not 0 < self._connections <= self._in_flight:
            return inf
        return self._more_at if next(iter(self._waiting.values())).most > self._connections else inf

    def _ask(self, now: float, *, wants: bool, ends: bool = False) -> ClockQuestion:
        wait_s = min(max(0.0, self._next_at - now), WAIT_MAX_S)
        delay_s = min(self._delay_s, WAIT_MAX_S)
        # What the peer does not need it gives back. From now on it has no more.
        needs = self._in_flight + len(self._waiting) + (self._promised is not None and self._promised_until > now)
        needs = min(needs, self._most_of_all() or needs)
        self._connections = max(self._in_flight, min(self._connections, needs))
        self._told_most = self._known_most
        self._asked = ClockQuestion(
            *(self.name, self._number, wants, ends, self._in_flight, needs, self._known_most),
            *(wait_s, delay_s, self._unread_page(now) if wants and not self._number else ""),
        )
        return self._asked

    def _unread_page(self, now: float) -> str:
        """Return a URL of the first site that waits, if its robots.txt is to be told with a lease, or an empty text."""
        page = next((pace.page for pace in self._waiting.values()), "")
        is_told = bool(page) and now < self._known_until and origin_of(page) == self._origin_known
        return "" if is_told else page

    def _most_of_all(self) -> int:
        """Return the most requests that the sites which wait, or are asked, let be under way, or 0 without any."""
        return max([pace.most for pace in self._waiting.values()] + [self._most] * (self._in_flight > 0), default=0)

    def _drop_lease(self) -> None:
        self._number, self._until, self._renew_at = 0, -inf, inf
        self._connections, self._is_alone, self._told_most = 0, True, 0
        self._delay_s, self._known_most = 0.0, 0
        for pace in self._waiting.values():
            self._learn(pace)
