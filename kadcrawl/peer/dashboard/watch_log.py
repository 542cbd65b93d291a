"""`WatchLog` is the memory of one dashboard for what peers have told: the last events, moves and failed URLs, numbered.

Peers tell the last seconds at each look, so the same thing comes several times, and counts once. Who has come and who
answers no more is told by the rows of two looks. A decision: times are given by the caller.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.peer_state import GONE
from kadcrawl.link.wire.watch_messages import SAMPLES_OF_REASON_MAX, Watched, WatchedMove
from kadcrawl.peer.dashboard.facts import NAME_DIGITS

EVENTS_SHOWN_MAX = 200
"""Events in the document, the latest."""
MOVES_SHOWN_MAX = 100
"""Moves in the document, the latest."""
KNOWN_MAX = 2_000
"""Things told that are remembered, so that they count once."""
ABSENT_LOOKS = 2
"""Looks in a row without a row of a peer, after which it is said to be silent. A wave may pass over a peer."""
REASONS_KEPT_MAX = 100
"""Reasons whose failed URLs are kept."""


class WatchLog:
    """The memory of one dashboard."""

    def __init__(self) -> None:
        self._events: deque[tuple[int, dict[str, Any]]] = deque(maxlen=EVENTS_SHOWN_MAX)
        self._moves: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}
        self._failed: dict[str, deque[str]] = {}
        self._number = 0
        self._known: dict[tuple[Any, ...], None] = {}
        self._absent: dict[str, int] | None = None
        """Peer -> looks in a row without its row. None before the first look."""

    def note_rows(self, rows: Iterable[PeerRow], now: float) -> None:
        """Note who is there, and say who has come, left, or answers no more."""
        rows = list(rows)
        there = {row.contact.id.hex(): row for row in rows if row.state not in GONE}
        gone = {row.contact.id.hex() for row in rows if row.state in GONE}
        first = self._absent is None
        absent = {} if self._absent is None else dict(self._absent)
        for peer, row in there.items():
            if peer not in absent and not first:
                kind = "leaf" if row.hosted_leaf else "peer"
                self._add(now, f"{kind}.joined", f"{_name(peer)} at {row.contact.host}:{row.contact.port}")
            absent[peer] = 0
        for peer in [peer for peer in absent if peer not in there]:
            absent[peer] += 1
            if peer in gone:
                self._add(now, "peer.left", f"{_name(peer)} has left")
                del absent[peer]
            elif absent[peer] == ABSENT_LOOKS:
                self._add(now, "peer.silent", f"{_name(peer)} does not answer")
                del absent[peer]
        self._absent = absent

    def note(self, told: Watched, now: float) -> None:
        """Note what peers tell at this look. Times ahead of this peer's clock count as now."""
        for event in told.events:
            if self._is_news("event", event.at, event.peer, event.kind, event.text):
                self._add(min(event.at, now), event.kind, f"{_name(event.peer.hex())}: {event.text}")
        for move in told.moves:
            self._note_move(move, now)
        for failed in told.failed:
            if failed.reason in self._failed or len(self._failed) < REASONS_KEPT_MAX:
                urls = self._failed.setdefault(failed.reason, deque(maxlen=SAMPLES_OF_REASON_MAX))
                if failed.url not in urls:
                    urls.append(failed.url)

    def members(self) -> dict[str, Any]:
        """Return the events and moves, as the document has them."""
        return {
            "events": {str(number): event for number, event in self._events},
            "moves": {str(number): move for number, move in self._moves.values()},
        }

    def samples(self, reason: str) -> list[str]:
        """Return some URLs that failed for this reason."""
        return list(self._failed.get(reason, ()))

    def _note_move(self, move: WatchedMove, now: float) -> None:
        key = move.at, move.kind, move.giver, move.taker
        shown = {
            "at": round(min(move.at, now), 1),
            "kind": move.kind,
            "from": move.giver.hex(),
            "to": move.taker.hex(),
            "count": move.count,
            "cells": list(move.cells),
        }
        known = self._moves.get(key)
        if known is not None:
            self._moves[key] = known[0], shown  # More of it has moved meanwhile.
            return
        if not self._is_news("move", *key):
            return
        self._number += 1
        self._moves[key] = self._number, shown
        while len(self._moves) > MOVES_SHOWN_MAX:
            del self._moves[next(iter(self._moves))]
        unit = "cells" if move.kind == "cells" else "URLs lent"
        ways = f"from {_name(move.giver.hex())} to {_name(move.taker.hex())}"
        self._add(min(move.at, now), f"{move.kind}.moved", f"{move.count} {unit} {ways}")

    def _add(self, at: float, kind: str, text: str) -> None:
        self._number += 1
        self._events.append((self._number, {"at": round(at, 1), "kind": kind, "text": text}))

    def _is_news(self, *key: Any) -> bool:
        if key in self._known:
            return False
        self._known[key] = None
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        return True


def _name(peer: str) -> str:
    return peer[:NAME_DIGITS]
