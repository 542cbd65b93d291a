"""The counts of a peer's queue are made when somebody asks, shared, and bounded."""

import asyncio

from kadcrawl.link.wire.queue_messages import QueueCounts, SurveyQueue
from kadcrawl.peer.swarm import queue_counter
from kadcrawl.peer.swarm.queue_counter import COUNTS_KEPT_MAX, QueueCounter
from tests.support.swarm.peers import MakePeer
from tests.support.waiting import until

WHOLE = SurveyQueue()


async def counted(counter: QueueCounter, survey: SurveyQueue) -> QueueCounts:
    """Return the counts once they are made."""
    await until(lambda: counter.counts(survey) is not None)
    counts = counter.counts(survey)
    assert counts is not None
    return counts


async def test_a_count_is_shared_while_it_is_fresh_and_made_anew_later(make_peer: MakePeer) -> None:
    peer = await make_peer("a")
    await peer.begin()
    await peer.pause()
    counter = peer.runtime.parts.queue_counter
    assert 0 == (await counted(counter, WHOLE)).pending
    await peer.crawl(["http://a.example/"])
    assert 0 == (await counted(counter, WHOLE)).pending, "the count is fresh"
    await asyncio.sleep(queue_counter.FRESH_S)
    assert counter.counts(WHOLE) is None
    assert 1 == (await counted(counter, WHOLE)).pending


async def test_few_counts_wait_and_are_kept(make_peer: MakePeer) -> None:
    peer = await make_peer("a")
    await peer.begin()
    counter = peer.runtime.parts.queue_counter
    surveys = [SurveyQueue(f"{number}.example") for number in range(3 * COUNTS_KEPT_MAX)]
    assert {None} == {counter.counts(survey) for survey in surveys}
    assert COUNTS_KEPT_MAX == len(counter._wanted)
    for survey in surveys:
        await counted(counter, survey)
    assert COUNTS_KEPT_MAX == len(counter._counts)
