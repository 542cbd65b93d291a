"""`EventWatch` keeps the last events, moves and failed URLs of one peer while somebody watches, out of its log.

It listens from the first look of a dashboard on, and stops when no look has come for a while. Fields of a record are
read by the names in its format. A decision over records: `now` is given.
"""

import logging
import re
from collections import deque
from collections.abc import Callable
from typing import Any

from kadcrawl.crawl.output.counters import counted_as
from kadcrawl.link.wire.basics import LONG_S_MAX, REASONS_MAX, Contact
from kadcrawl.link.wire.watch_messages import (
    CELLS_NAMED_MAX,
    SAMPLES_OF_REASON_MAX,
    TEXT_CHARS_MAX,
    FailedUrl,
    Watched,
    WatchedEvent,
    WatchedMove,
)
from kadcrawl.system.log_taps import LogTaps
from kadcrawl.system.peer_name import peer_name

UNWATCHED_S = 60.0
"""Time without a look after which the watch ends."""
EVENTS_KEPT_MAX = 40
"""Events that one peer keeps, the latest."""
MOVES_KEPT_MAX = 40
"""Moves that one peer keeps, the latest."""
MOVE_JOINED_S = 1.0
"""Moves between the same two peers within this time are one."""
AREAS = frozenset({"peer", "swarm", "order", "disk", "sink", "network", "proxy", "loan", "balance", "retry", "seeds"})
"""The areas of events that are shown, by the first word of the event."""
SHOWN_TOO = frozenset({"crawl.limit_reached", "crawl.seed_left_scope", "crawl.bug", "link.bug", "sync.bug"})
"""Events of other areas that are shown."""
TAPS = LogTaps(["kadcrawl.replication.holder_side", "kadcrawl.lending.lender"])
"""The listeners of this process. Both modules log moves at level debug."""
_FIELD = re.compile(r"(\w+)=%")


class EventWatch:
    """The last events of one peer."""

    def __init__(self, me: Callable[[], bytes], now: Callable[[], float]) -> None:
        """`me` returns the ID of the peer, `now` its second."""
        self._me = me
        self._now = now
        self._name = peer_name.get()
        self._asked_at = now()
        self._is_on = False
        self._events: deque[WatchedEvent] = deque(maxlen=EVENTS_KEPT_MAX)
        self._moves: deque[WatchedMove] = deque(maxlen=MOVES_KEPT_MAX)
        self._failed: dict[str, deque[str]] = {}

    def told(self, since_s: float) -> Watched:
        """Return what happened in the last `since_s` seconds, and go on to watch."""
        now = self._now()
        self._asked_at = now
        if not self._is_on:
            self._is_on = True
            TAPS.add(self._note)
        return Watched(
            [event for event in self._events if event.at >= now - since_s],
            [move for move in self._moves if move.at >= now - since_s],
            [FailedUrl(reason, url) for reason, urls in self._failed.items() for url in urls],
        )

    def close(self) -> None:
        """Watch no more, and forget all."""
        TAPS.remove(self._note)
        self._is_on = False
        for kept in (self._events, self._moves, self._failed):
            kept.clear()

    def _note(self, record: logging.LogRecord) -> None:
        if peer_name.get() != self._name:
            return  # It is of another peer of this process.
        now = self._now()
        if now > self._asked_at + UNWATCHED_S:
            self.close()
            return
        kind, _, form = str(record.msg).partition(" ")
        match kind:
            case "cell.released" | "cell.lost":  # To an owner that claims it, or behind this peer's back.
                fields = _fields(form, record)
                self._move("cells", fields.get("to"), 1, fields.get("cell"), now)
            case "loan.given":
                fields = _fields(form, record)
                self._move("loan", fields.get("to"), fields.get("urls"), None, now)
            case "crawl.failed":
                fields = _fields(form, record)
                self._fail(str(fields.get("why", "")), str(fields.get("url", "")))
            case _ if record.levelno >= logging.INFO:
                self._event(record, now)

    def _event(self, record: logging.LogRecord, now: float) -> None:
        kind, _, text = record.getMessage().partition(" ")
        if kind in SHOWN_TOO or kind.partition(".")[0] in AREAS:
            self._events.append(WatchedEvent(min(now, LONG_S_MAX), self._me(), kind[:40], plain(text)))

    def _move(self, kind: Any, taker: Any, count: Any, cell: Any, now: float) -> None:
        if not isinstance(taker, Contact) or not isinstance(count, int):
            return
        cells = [cell] if isinstance(cell, int) else []
        last = self._moves[-1] if self._moves else None
        if last is not None and (last.kind, last.taker) == (kind, taker.id) and now < last.at + MOVE_JOINED_S:
            self._moves.pop()
            now, count, cells = last.at, last.count + count, [*last.cells, *cells][:CELLS_NAMED_MAX]
        self._moves.append(WatchedMove(min(now, LONG_S_MAX), kind, self._me(), taker.id, count, cells))

    def _fail(self, why: str, url: str) -> None:
        reason = counted_as(why)[:40]
        if reason not in self._failed and len(self._failed) >= REASONS_MAX:
            return
        self._failed.setdefault(reason, deque(maxlen=SAMPLES_OF_REASON_MAX)).append(plain(url))


def _fields(form: str, record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record as they were given, before they became text."""
    return dict(zip(_FIELD.findall(form), record.args if isinstance(record.args, tuple) else (), strict=False))


def plain(text: str) -> str:
    """Return a text as the wire takes it: ASCII that controls no terminal, cut to its limit."""
    return "".join(char if " " <= char <= "~" else "?" for char in text[:TEXT_CHARS_MAX])
