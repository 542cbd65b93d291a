"""This peer's own part in a wave: it obeys the wave's order, takes its seeds or grant, and gives its tally and rows.

overlay/waves/wave.py passes a wave on and adds up the answers.

Tests: tests/peer/test_swarm.py, tests/peer/swarm/test_state_gossip.py
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import starmap
from typing import TYPE_CHECKING

import msgspec

from kadcrawl.crawl.grants_journal import write_known
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.scope.scope import SITE_DROPPED
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.basics import REASONS_MAX, ReasonCount
from kadcrawl.link.wire.messages import (
    Answer,
    Census,
    Grant,
    Message,
    NewReach,
    NewSeeds,
    Order,
    PeerRow,
    Question,
    Retry,
    Tally,
    Watched,
    Wave,
)
from kadcrawl.link.wire.order_messages import Steer
from kadcrawl.link.wire.queue_messages import QueueCounts, SurveyQueue
from kadcrawl.overlay.waves.quiescence import own_view
from kadcrawl.overlay.waves.wave import NO_BUCKET
from kadcrawl.peer.runtime import NotReadyError, Runtime
from kadcrawl.peer.status import row_of

if TYPE_CHECKING:
    from kadcrawl.peer.dashboard.watched import WatchTeller

log = logging.getLogger(__name__)


class WaveAnswers:
    """The answers of one peer to waves."""

    def __init__(self, runtime: Runtime, stop: Callable[[], None]) -> None:
        """`stop` ends the peer."""
        self._runtime = runtime
        self._stop = stop
        self._watch: WatchTeller | None = None
        """None until the first dashboard of the swarm looks."""

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {Wave: self._wave}

    def respond(self, question: Question) -> tuple[Tally, list[PeerRow]]:
        """Act on a wave's question, and return this peer's own tally and, for a census, the rows it knows."""
        runtime = self._runtime
        match question:
            case Order():
                if question.verb == "stop":
                    runtime.parts.leaves.stop()
                self.obey(question)
            case NewSeeds():
                runtime.add_seeds(question.urls)
            case NewReach():
                runtime.add_reach([question.segment])
            case Retry():
                runtime.hear_retries([question.order])
            case Steer():
                runtime.hear_orders(question.orders)
            case Grant():
                self._take(question)
        tally = Tally(
            members=1,
            view=own_view(runtime.contact.id, runtime.incarnation, runtime.resources.activity.count),
            pending=runtime.pending,
            unacknowledged=runtime.unacknowledged,
            missing=0,
            due_s=runtime.due_s,
        )
        if isinstance(question, Retry):
            retrying = runtime.parts.retrying
            cells_left = retrying.looks.left + runtime.cells.unsettled
            counts = Counter(retrying.retried(question.order.stamp)).most_common(REASONS_MAX)
            retried = tuple(starmap(ReasonCount, counts))
            return msgspec.structs.replace(tally, retried=retried, retrying=cells_left), []
        if isinstance(question, Steer) and any(order.kind == "drop" for order in question.orders):
            dropping = runtime.parts.dropping
            urls = sum(dropping.dropped(order.stamp) for order in question.orders if order.kind == "drop")
            cells_left = dropping.looks.left + runtime.cells.unsettled
            return msgspec.structs.replace(tally, retried=(ReasonCount(SITE_DROPPED, urls),), retrying=cells_left), []
        if isinstance(question, SurveyQueue):
            is_counting = runtime.parts.queue_counter.counts(question) is None
            return msgspec.structs.replace(tally, retrying=int(is_counting)), []
        if not isinstance(question, Census):
            return tally, []
        row, is_watched = row_of(runtime), question.since_s is not None
        if question.unit:
            epoch = runtime.components.crawl_limits.budget(question.unit).tell()
            row = msgspec.structs.replace(row, grant_epoch=epoch)
        if is_watched:
            runtime.parts.leaves.note_watched()
            row = self._teller.with_details(row)
        return tally, [row, *runtime.parts.leaves.rows(), *runtime.departed.rows()]

    def queue(self, survey: SurveyQueue) -> QueueCounts:
        """Return this peer's queue, which is empty while it is being counted."""
        return self._runtime.parts.queue_counter.counts(survey) or QueueCounts()

    def watched(self, since_s: float) -> Watched:
        """Return what happened at this peer in the last `since_s` seconds, for a dashboard."""
        return self._teller.told(since_s)

    def close(self) -> None:
        """Watch the log for dashboards no more."""
        if self._watch is not None:
            self._watch.close()

    @property
    def _teller(self) -> "WatchTeller":
        from kadcrawl.peer.dashboard.watched import WatchTeller  # Not at the top: most swarms have no dashboard.

        if self._watch is None:
            self._watch = WatchTeller(self._runtime)
        return self._watch

    def _take(self, grant: Grant) -> None:
        """Take this peer's share of a budget, and pause or go on as the budget is spent or is not."""
        components, meta = self._runtime.components, self._runtime.resources.store.meta
        budget = components.crawl_limits.budget(grant.unit)
        budget.learn(grant.totals, self._runtime.contact.id, grant.spent, grant.epochs)
        if budget.spent:
            self._runtime.resources.activity.end_rest()
        write_known(meta, budget)
        if grant.unit == "bytes":
            pause_reasons = components.crawler.pause_reasons
            ends_loans = components.crawl_limits.ends_loans
            (pause_reasons.add if ends_loans else pause_reasons.discard)(PauseReason.LIMIT)
        components.crawler.wake()

    def obey(self, order: Order) -> None:
        """Carry out an order of the swarm at this peer."""
        runtime = self._runtime
        activity, pages = runtime.resources.activity, runtime.resources.counters.pages
        match order.verb:
            case "pause" | "resume":
                runtime.hear(order.stamp, paused=order.verb == "pause")
            case "stop":
                self._stop()
            case "rest":
                if not runtime.pending and not runtime.unacknowledged and not activity.resting:
                    activity.rest()
                    log.info("swarm.resting pages=%d", pages)
            case "ended":
                if not runtime.pending and not runtime.unacknowledged:
                    activity.end()
                    log.info("swarm.done pages=%d", pages)
                    if runtime.resources.config.exit_when_done:
                        self._stop()

    async def _wave(self, wave: Wave) -> Answer:
        if wave.limit != NO_BUCKET:
            # A joining peer knows few others: the wave would pass over the peers it does not know of its subtree.
            self._runtime.require_joined()
        if isinstance(wave.question, Grant) and self._runtime.cells.is_stalled():
            # The grant may be of before this peer stood still. Its receivers may have given it back since.
            raise NotReadyError("this peer stood still, and takes and passes on no grant that waited meanwhile")
        return await self._runtime.waves.answer(wave)
