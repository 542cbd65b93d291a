"""The counts of a peer's queue are made when somebody asks, shared, and bounded."""

import asyncio
from math import inf

import pytest

from kadcrawl.link.wire.queue_messages import QueueCounts, SurveyQueue
from kadcrawl.peer.swarm import queue_counter
from kadcrawl.peer.swarm.queue_counter import COUNTS_KEPT_MAX, QueueCounter, _Count
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


async def test_who_asks_again_and_again_gets_the_next_counts_without_a_gap(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_counter, "RENEW_S", 0.0)
    monkeypatch.setattr(queue_counter, "RENEW_FACTOR", 0.0)
    monkeypatch.setattr(queue_counter, "FRESH_S", inf)
    peer = await make_peer("a")
    await peer.begin()
    await peer.pause()
    counter = peer.runtime.parts.queue_counter
    first = await counted(counter, WHOLE)
    assert 0 == first.pending
    assert 0 <= first.age_s
    await peer.crawl(["http://a.example/"])
    told: list[QueueCounts | None] = []

    def asked() -> bool:
        told.append(counter.counts(WHOLE))
        return told[-1] is not None and told[-1].pending == 1

    await until(asked)
    assert None not in told


def test_a_count_that_took_long_is_not_made_anew_at_each_question() -> None:
    quick, slow = _Count(QueueCounts(), 100.0, 0.001), _Count(QueueCounts(), 100.0, 0.2)
    assert [False, True] == [quick.is_to_be_renewed(100.0 + age_s) for age_s in (0.4, 0.5)]
    assert [False, True] == [slow.is_to_be_renewed(100.0 + age_s) for age_s in (6.5, 6.7)]
    assert [True, False] == [slow.is_good(100.0 + age_s) for age_s in (9.9, 10.0)]


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
