"""One sentence: the crawl is done, or exactly why it is not done yet, as far as one peer knows of the whole swarm.

The verdict of the peer itself (monitoring/verdict.py) decides where it is about the swarm. Where it is about the work
of the peer alone, the work of all peers decides. A decision.
"""

from collections import Counter
from typing import NamedTuple

from kadcrawl.link.wire.peer_state import BLOCKED, GONE, state_text
from kadcrawl.peer.dashboard.swarm_view import SwarmView
from kadcrawl.peer.monitoring.verdict import CrawlVerdict
from kadcrawl.settings.durations import roughly

OF_THE_SWARM = frozenset(
    {
        CrawlVerdict.DONE,
        CrawlVerdict.RESTING,
        CrawlVerdict.LIMIT_REACHED,
        CrawlVerdict.STARTING,
        CrawlVerdict.JOINING,
        CrawlVerdict.ENDING,
        CrawlVerdict.PAUSED,
        CrawlVerdict.NO_SEEDS,
    }
)
"""Verdicts of one peer that no work of other peers changes."""
FINISHED = frozenset({CrawlVerdict.DONE, CrawlVerdict.LIMIT_REACHED})


class SwarmVerdict(NamedTuple):
    """The verdict about the swarm."""

    word: CrawlVerdict
    sentence: str

    @property
    def done(self) -> bool:
        """True if nothing is fetched any more."""
        return self.word in FINISHED


def swarm_verdict(view: SwarmView, own: CrawlVerdict) -> SwarmVerdict:
    """Return the verdict about this swarm, given that of the peer that asked."""
    word = _word(view, own)
    sentence = _sentence(view, word)
    if view.missing:
        sentence += f" {_count(view.missing, 'part')} of the swarm did not answer."
    return SwarmVerdict(word, sentence)


def _word(view: SwarmView, own: CrawlVerdict) -> CrawlVerdict:
    if own in OF_THE_SWARM or not view.rows:
        return own
    there = [row for row in view.rows if row.state not in GONE]
    if any(row.in_flight for row in there):
        return CrawlVerdict.FETCHING
    if there and all(row.state in BLOCKED for row in there):
        return CrawlVerdict.BLOCKED
    if any(row.pending for row in there):
        return own if own in (CrawlVerdict.LENT, CrawlVerdict.FETCHING) else CrawlVerdict.WAITING_FOR_SITES
    if own in (CrawlVerdict.FETCHING, CrawlVerdict.WAITING_FOR_SITES, CrawlVerdict.LENT):
        return CrawlVerdict.OTHER_PEERS
    return CrawlVerdict.ACKNOWLEDGING if view.unacknowledged and own is CrawlVerdict.OTHER_PEERS else own


def _sentence(view: SwarmView, word: CrawlVerdict) -> str:
    pending = _count(sum(row.pending for row in view.rows), "URL")
    match word:
        case CrawlVerdict.DONE:
            return "Done: nothing is left to fetch."
        case CrawlVerdict.RESTING:
            dues = [row.due_s for row in view.rows if row.due_s is not None]
            when = f", in {roughly(max(1.0, min(dues)))}" if dues else ""
            return f"Resting: nothing is to be fetched until a page is due again{when}."
        case CrawlVerdict.LIMIT_REACHED:
            limit = next((row.limit for row in view.rows if row.limit), "")
            option = f" (--max-{limit})" if limit else ""
            return f"Ending: the crawl has reached its limit{option}, with {pending} pending."
        case CrawlVerdict.STARTING | CrawlVerdict.JOINING:
            return "Not done: this peer is entering its swarm."
        case CrawlVerdict.ENDING:
            return "Not done: this peer was told to stop or to leave, and finishes its work."
        case CrawlVerdict.PAUSED:
            return f"Not done: the swarm is paused, with {pending} pending; an order to resume lets it go on."
        case CrawlVerdict.NO_SEEDS:
            return "Not done: the crawl has no seeds yet; kadcrawl add gives it some."
        case CrawlVerdict.BLOCKED:
            return f"Not done: {pending} pending, and no peer may fetch: {_blocked(view)}."
        case CrawlVerdict.FETCHING:
            requests = _count(sum(row.in_flight for row in view.rows), "request")
            return f"Not done: {pending} pending, {requests} under way."
        case CrawlVerdict.WAITING_FOR_SITES:
            return f"Not done: {pending} pending, and all wait for the pace of their sites or for a retry."
        case CrawlVerdict.LENT:
            return f"Not done: {pending} pending, and those of this peer are lent to others, which fetch them."
        case CrawlVerdict.SYNCING:
            return "Not done: cells are between two owners, so that no peer may crawl them just now."
        case CrawlVerdict.ACKNOWLEDGING:
            return f"Not done: {_count(view.unacknowledged, 'message')} with links or records on the way between peers."
        case CrawlVerdict.OTHER_PEERS:
            return "Not done: nothing is pending here, and the peers are asked whether anything is left."


def _blocked(view: SwarmView) -> str:
    states = Counter(state_text(row.state, row.refused_by) for row in view.rows if row.state in BLOCKED)
    return ", ".join(f"{_count(count, 'peer')} {state}" for state, count in sorted(states.items()))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
