"""`LiveDocument` turns what was gathered into the events that viewers get: the whole document, or a change of it.

It adds what only two looks can tell: rates, curves, the estimated end, and the peers that no longer answer. An event
has the number of the change in its id, and the run of the peer, so a browser that comes back is told only what it has
missed. A decision: times are given by the caller.
"""

from typing import Any

import msgspec

from kadcrawl.web.merge_patch import Json, merge_patch, without_none
from kadcrawl.web.patch_ring import PatchRing
from kadcrawl.web.rate_series import RateSeries, SmoothRate

LOST_SHOWN_S = 600.0
"""Time for which a peer is shown that does not answer any more."""
LOST_MAX = 200
"""Peers that are shown although they do not answer."""
FOUND_SHARE_MAX = 0.2
"""New URLs found for each URL done, above which the end of a crawl is not known."""
END_MOST_S = 30 * 86_400.0
"""The longest time left that is told."""
LAST_ID_CHARS_MAX = 100
"""Characters of the id of the last event that a browser names. Those of the dashboard are shorter."""


class LiveDocument:
    """The document of one run of a peer."""

    def __init__(self, run: str) -> None:
        """`run` is a name that no other run of a peer has."""
        self._run = run
        self._ring = PatchRing()
        self._series = RateSeries()
        self._document: Json = {}
        self._step_s = 1.0
        self._rates: dict[str, SmoothRate] = {}
        self._found, self._done = SmoothRate(), SmoothRate()
        self._heard: dict[str, float] = {}
        """Peer -> second of its last answer."""

    @property
    def is_empty(self) -> bool:
        """True before the first look."""
        return not self._document

    @property
    def last(self) -> int:
        """The number of the last change."""
        return self._ring.last

    @property
    def peers(self) -> int:
        """Peers in the document."""
        return len(self._document.get("peers", ()))

    def take(self, gathered: Json, now: float, step_s: float) -> None:
        """Take what was gathered at this second. `step_s` is the time to the next look."""
        document = {**without_none(gathered), "version": 1, "now": round(now, 1), "run": self._run}
        self._step_s = step_s
        self._add_lost(document, now)
        self._add_rates(document, now)
        crawl = document["crawl"]
        rates = {name: peer["pages_per_s"] for name, peer in document["peers"].items() if peer["alive"]}
        point = self._series.note(now, crawl["found"], crawl["done"], rates)
        patch = merge_patch(self._document, document) | {"series_tail": point.as_json()}
        was_empty, self._document = self.is_empty, document
        if not was_empty:
            self._ring.append(self._event("change", self._ring.last + 1, patch))

    def state_event(self) -> bytes:
        """Return the event with the whole document."""
        whole = self._document | {"series": self._series.as_json(self._step_s)}
        return self._event("state", self._ring.last, whole)

    def events_after(self, number: int) -> list[bytes]:
        """Return the events that a viewer lacks who has the change of this number, or all there is in one event."""
        missed = self._ring.since(number)
        return [self.state_event()] if missed is None else missed

    def number_in(self, last_event_id: str | None) -> int:
        """Return the number of the change that an event id names, or -1 if it is of another run or no id of ours."""
        if last_event_id is None or len(last_event_id) > LAST_ID_CHARS_MAX:
            return -1
        run, _, number = last_event_id.rpartition("-")
        return int(number) if run == self._run and number.isascii() and number.isdigit() else -1

    def _event(self, name: str, number: int, data: Json) -> bytes:
        return b"id: %s-%d\nevent: %s\ndata: %s\n\n" % (
            self._run.encode(),
            number,
            name.encode(),
            msgspec.json.encode(data),
        )

    def _add_lost(self, document: Json, now: float) -> None:
        """Keep the peers that have answered before and do not answer now, for some time."""
        peers: dict[str, Json] = document["peers"]
        self._heard.update(dict.fromkeys((name for name, peer in peers.items() if peer["alive"]), now))
        lost = {
            name: peer
            for name, peer in self._document.get("peers", {}).items()
            if name not in peers and name in self._heard and now - self._heard[name] < LOST_SHOWN_S
        }
        for name in sorted(lost, key=lambda name: -self._heard[name])[:LOST_MAX]:
            # Figures of a peer that is away are of the past, and are not said anew in each change.
            heard_s = round(now - self._heard[name])
            peers[name] = lost[name] | {"alive": False, "heard_s": heard_s, "pages_per_s": 0.0, "state": "no answer"}
        self._heard = {name: at for name, at in self._heard.items() if name in peers}

    def _add_rates(self, document: Json, now: float) -> None:
        peers: dict[str, Any] = document["peers"]
        self._rates = {name: self._rates.get(name) or SmoothRate() for name in peers}
        for name, peer in peers.items():
            if peer["alive"]:
                peer["pages_per_s"] = round(self._rates[name].note(peer["pages"], now), 2)
        crawl = document["crawl"]
        crawl["pages_per_s"] = round(sum(peer["pages_per_s"] for peer in peers.values()), 2)
        found, done = self._found.note(crawl["found"], now), self._done.note(crawl["done"], now)
        if (left_s := end_in_s(crawl["pending"], found, done)) is not None:
            crawl["end_in_s"] = left_s


def end_in_s(pending: int, found_per_s: float, done_per_s: float) -> float | None:
    """Return the seconds until all pending URLs are done, or None while that would be a guess."""
    if not pending or done_per_s <= 0 or found_per_s > FOUND_SHARE_MAX * done_per_s:
        return None
    left_s = pending / (done_per_s - found_per_s)
    return float(round(left_s)) if left_s <= END_MOST_S else None
