"""The conversation in which named URLs are fetched again, also those that are done: each owner begins their next round.

A person names the URLs, so no peer needs to look for them, and the orders stay out of the swarm state: the asked peer
takes them to their owners, as it takes seeds, and tries until each owner has answered. A repeat with the same stamp
begins no second round (store/visit.py).

Tests: tests/peer/test_fetch_again.py
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from kadcrawl.crawl.output.counters import counted_as
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.errors import RemoteError
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.messages import BATCH_MAX, Contact, Link, Message
from kadcrawl.link.wire.retry_messages import AgainOutcome, FetchAgain, FetchedAgain, RetryOrder
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.retry import refuse_again
from kadcrawl.store.schema import is_pending
from kadcrawl.store.visit import Visit
from kadcrawl.urls import is_canonical, origin_of

AGAIN_DEADLINE_S = 15.0
"""Longest wait for an owner's answer, which comes when its backups have the records as well."""
AGAIN_RETRY_S = 0.3
"""First wait before an owner is asked again. It doubles, up to `AGAIN_RETRY_MOST_S`."""
AGAIN_RETRY_MOST_S = 5.0
"""Longest wait before an owner is asked again."""


async def fetch_again(runtime: Runtime, urls: Sequence[str], *, only_failed: bool = False) -> Counter[str]:
    """Have these canonical URLs fetched again, and return how many, by outcome.

    With `only_failed`, URLs that did not fail stay done. Raises ConfigError if the job does not remember its URLs.
    """
    refuse_again(runtime.job)
    outcomes: Counter[str] = Counter()
    stamp = runtime.retry_orders.order(RetryOrder(0), runtime.resources.clock.now()).stamp
    wait_s = AGAIN_RETRY_S
    with runtime.seeding():
        left = list(dict.fromkeys(urls))
        while left:
            left = await _ask_owners(runtime, left, stamp, outcomes, only_failed=only_failed)
            if left:
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, AGAIN_RETRY_MOST_S)
    return outcomes


async def _ask_owners(
    runtime: Runtime, urls: Sequence[str], stamp: int, outcomes: Counter[str], *, only_failed: bool
) -> list[str]:
    """Ask the owner of each URL, and return the URLs without an outcome."""
    by_owner: dict[Contact, list[str]] = {}
    for url in urls:
        cell = runtime.components.partitioner.locate(url).cell
        by_owner.setdefault(await runtime.overlay.owner(cell), []).append(url)
    left = []
    for owner, group in by_owner.items():
        for first in range(0, len(group), BATCH_MAX):
            batch = group[first : first + BATCH_MAX]
            message = FetchAgain(batch, stamp, only_failed)
            try:
                if owner.id == runtime.contact.id:
                    answer = await AgainFetcher(runtime).answer(message)
                else:
                    answer = await runtime.resources.client.ask(owner, message, FetchedAgain, AGAIN_DEADLINE_S)
            except RemoteError:
                runtime.overlay.suspect(owner)
                left += batch
                continue
            for url, outcome in zip(batch, answer.outcomes, strict=False):
                if outcome == "later":
                    left.append(url)
                else:
                    outcomes[outcome] += 1
            left += batch[len(answer.outcomes) :]
    return left


class AgainFetcher:
    """The answers of one peer about URLs in its own cells."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {FetchAgain: self.answer}

    async def answer(self, message: FetchAgain) -> FetchedAgain:
        """Begin the next round of the URLs that this peer owns."""
        runtime = self._runtime
        refuse_again(runtime.job)
        mine: list[tuple[Link, UrlLocation]] = []
        places: list[int] = []
        outcomes: list[AgainOutcome] = ["later"] * len(message.urls)
        for place, url in enumerate(message.urls):
            location = runtime.components.partitioner.locate_offered(url) if is_canonical(url) else None
            if location is None:
                outcomes[place] = "unknown"
            elif runtime.overlay.owns(location.cell) and not runtime.cells.holder_side.leaving:
                mine.append((Link(url, 0, 0), location))
                places.append(place)
        begun: dict[bytes, AgainOutcome] = {}

        def begin(link: Link, location: UrlLocation, now: float) -> None:
            begun[location.key] = self._begin(link, location, now, message.stamp, only_failed=message.only_failed)

        later = {*await runtime.cells.accept(mine, begin)}
        for index, (_, location) in enumerate(mine):
            if index not in later:
                outcomes[places[index]] = begun[location.key]
        return FetchedAgain(outcomes)

    def _begin(self, link: Link, location: UrlLocation, now: float, stamp: int, *, only_failed: bool) -> AgainOutcome:
        runtime, key = self._runtime, location.key
        store, state = runtime.resources.store, runtime.resources.store.state(location.key)
        visit = store.visits.get(key)
        if state is None:
            return "unknown"
        if visit is not None and visit.order == stamp:
            return "again"  # The answer to an earlier message was lost.
        if is_pending(state):
            return "pending"
        failed = visit.failed if visit is not None else ""
        if only_failed and not failed:
            return "done"
        entry = store.fetch_again(Visit.first(key, location.site, link.url, link.depth), stamp)
        if entry is None:
            return "done"
        runtime.components.crawler.ask_robots_again(origin_of(link.url), min(stamp / 1000, now))
        runtime.resources.counters.retry(counted_as(failed))
        runtime.components.frontier.add(entry, now)
        runtime.resources.activity.move()
        runtime.components.crawler.wake()
        return "again"
