"""A peer that is met after the end of the crawl reopens the question whether all is over, unless it is over there."""

import asyncio
from typing import Any

import msgspec
import pytest

from kadcrawl import Peer, RemoteError
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.census_rows import packed_rows
from kadcrawl.link.wire.messages import Answer, Census, Contact, Wave
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.overlay.waves.wave import NO_BUCKET
from kadcrawl.peer.status import row_of
from kadcrawl.peer.swarm import end_check
from kadcrawl.peer.swarm.end_check import ASKED_MAX, EndCheck
from kadcrawl.replication.peer_tasks import NotRunningError
from tests.support.sites.web import Web, tree
from tests.support.swarm.peers import MakePeer, swarm
from tests.support.waiting import until


class Doubts(Activity):
    """An activity that counts its doubts."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = True
        self.doubts = 0

    def doubt(self) -> None:
        self.doubts += 1


async def doubts(asking: Peer, other: Peer, *, resting: bool = False) -> int:
    """Return how often the question is reopened at a peer whose crawl is over, or rests, as it meets the other."""
    activity, asked = Doubts(), []
    (activity.rest if resting else activity.end)()

    def spawn(work: Any, name: str) -> None:
        asked.append(asyncio.create_task(work, name=name))

    EndCheck(activity, asking.client, spawn, lambda: 0).joined(other.contact)
    assert len(asked) == 1
    await asked[0]
    return activity.doubts


async def test_a_peer_for_which_all_is_over_as_well_reopens_nothing(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        site.fallback = tree(10, 2)(site)
        one, two = await swarm(make_peer, "ab")
        await one.crawl([site.url("/0")])
        await until(lambda: one.ended and two.ended)
        assert await doubts(one, two) == 0
        assert await doubts(one, two, resting=True) == 1, "here pages are due again, and there not"


async def test_a_peer_with_work_or_without_an_answer_reopens_the_question(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await swarm(make_peer, "ab")
    assert await doubts(one, two) == 1, "nothing was over there"

    async def silent(*_: object) -> None:
        raise RemoteError("b", "silent")

    monkeypatch.setattr(one.client, "ask", silent)
    assert await doubts(one, two) == 1


async def test_before_the_end_nobody_is_asked(make_peer: MakePeer) -> None:
    (peer,) = await swarm(make_peer, "a")
    spawned: list[object] = []
    EndCheck(Activity(), peer.client, lambda work, name: spawned.append(work), lambda: 0).joined(peer.contact)
    assert spawned == []


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([("other", PeerState.DONE)], 0),
        ([("other", PeerState.DONE), ("its leaf", PeerState.CRAWLING)], 0),
        ([("other", PeerState.DONE), ("other", PeerState.CRAWLING)], 1),
        ([("its leaf", PeerState.DONE)], 1),
        ([("other", PeerState.PAUSED)], 1),
        ([], 1),
    ],
)
async def test_the_peer_is_asked_alone_and_its_own_row_counts(
    told: list[tuple[str, PeerState]], expected: int, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await swarm(make_peer, "ab")
    contacts = {"other": two.contact, "its leaf": Contact(id_bytes(7), *two.contact.address)}
    rows = [msgspec.structs.replace(row_of(two.runtime), contact=contacts[name], state=state) for name, state in told]
    answer, asked = await two.runtime.waves.ask_all(Census()), []

    async def ask(to: Contact, wave: Wave, *_: object) -> Answer:
        asked.append((to, wave.limit))
        return msgspec.structs.replace(answer, rows=packed_rows(rows))

    monkeypatch.setattr(one.client, "ask", ask)
    assert await doubts(one, two) == expected
    assert asked == [(two.contact, NO_BUCKET)]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([PeerState.IDLE, PeerState.DONE], 0),
        ([PeerState.IDLE, PeerState.IDLE, PeerState.IDLE, PeerState.DONE], 0),
        ([PeerState.IDLE, PeerState.CRAWLING], 1),
        ([PeerState.IDLE, PeerState.IDLE, PeerState.IDLE, PeerState.IDLE], 1),
    ],
)
async def test_an_idle_peer_is_asked_again_before_it_reopens_the_question(
    states: list[PeerState], expected: int, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await swarm(make_peer, "ab")
    monkeypatch.setattr(end_check, "ASK_AGAIN_AFTER_S", (0.0, 0.0, 0.0))
    answer, left = await two.runtime.waves.ask_all(Census()), list(states)

    async def ask(*_: object) -> Answer:
        row = msgspec.structs.replace(row_of(two.runtime), state=left.pop(0))
        return msgspec.structs.replace(answer, rows=packed_rows([row]))

    monkeypatch.setattr(one.client, "ask", ask)
    assert await doubts(one, two) == expected
    assert [] == left


async def test_few_peers_are_asked_at_a_time_and_each_other_reopens_the_question(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (peer,) = await swarm(make_peer, "a")
    activity, tasks = Doubts(), []
    activity.end()
    answered = asyncio.Event()

    async def slow(*_: object) -> None:
        await answered.wait()
        raise RemoteError("b", "silent")

    def spawn(work: Any, name: str) -> None:
        tasks.append(asyncio.create_task(work, name=name))

    monkeypatch.setattr(peer.client, "ask", slow)
    check = EndCheck(activity, peer.client, spawn, lambda: 0)
    for number in (0, 0, *range(ASKED_MAX)):
        check.joined(Contact(id_bytes(number), "127.0.0.1", 9))
    assert (ASKED_MAX, 2) == (len(tasks), activity.doubts), "it comes again while it is asked"
    check.joined(Contact(id_bytes(ASKED_MAX), "127.0.0.1", 9))
    assert (ASKED_MAX, 3) == (len(tasks), activity.doubts), "no more are asked at a time"
    answered.set()
    await asyncio.gather(*tasks)
    assert ASKED_MAX + 3 == activity.doubts
    check.joined(Contact(id_bytes(0), "127.0.0.1", 9))
    await tasks[-1]
    assert ASKED_MAX + 1 == len(tasks)


@pytest.mark.parametrize("end", ["end", "rest"])
@pytest.mark.parametrize(
    ("met_at", "is_asked"),
    [
        (5, False),  # Before the first wave of the proof.
        (6, True),  # Between the two waves.
        (7, True),  # Between the second wave and the word that all is over.
    ],
)
async def test_a_peer_that_comes_during_the_proof_is_asked_after_the_end(
    met_at: int, is_asked: bool, end: str, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await swarm(make_peer, "ab")
    activity, tasks = Doubts(), []
    monkeypatch.setattr(end_check, "MET_ASK_DELAY_S", 0.0)
    surveys = met_at

    def spawn(work: Any, name: str) -> None:
        tasks.append(asyncio.create_task(work, name=name))

    check = EndCheck(activity, one.client, spawn, lambda: surveys)
    activity.on_end.append(check.ended)
    check.joined(two.contact)
    assert [] == tasks
    surveys = 7
    getattr(activity, end)()
    await asyncio.gather(*tasks)
    assert (is_asked, is_asked) == (bool(tasks), bool(activity.doubts)), "nothing was over there"
    getattr(activity, end)()
    assert is_asked == len(tasks)


async def test_a_peer_that_starts_or_ends_asks_nobody(make_peer: MakePeer) -> None:
    def refusing(work: Any, name: str) -> None:
        work.close()
        raise NotRunningError(name)

    (peer,) = await swarm(make_peer, "a")
    activity = Doubts()
    activity.end()
    check = EndCheck(activity, peer.client, refusing, lambda: 0)
    for _ in range(2):
        check.joined(peer.contact)
    assert activity.doubts == 0


async def test_a_running_peer_checks_each_peer_that_it_meets(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (peer,) = await swarm(make_peer, "a")

    async def silent(*_: object) -> None:
        raise RemoteError("b", "silent")

    monkeypatch.setattr(peer.client, "ask", silent)
    peer.activity.armed = True
    peer.activity.end()
    for listener in peer.overlay.on_joined:
        listener(Contact(id_bytes(7), "127.0.0.1", 9))
    await until(lambda: peer.activity.idle.is_set() or not peer.ended)


async def test_a_running_peer_checks_each_peer_that_it_met_as_the_end_was_proved(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (peer,) = await swarm(make_peer, "a")
    monkeypatch.setattr(end_check, "MET_ASK_DELAY_S", 0.0)

    async def silent(*_: object) -> None:
        raise RemoteError("b", "silent")

    monkeypatch.setattr(peer.client, "ask", silent)
    peer.activity.armed = True
    for listener in peer.overlay.on_joined:
        listener(Contact(id_bytes(7), "127.0.0.1", 9))
    peer.activity.end()
    await until(lambda: peer.activity.idle.is_set() or not peer.ended)
