"""A peer that is met after the end of the crawl reopens the question whether all is over, unless it is over there."""

import asyncio
from typing import Any

import pytest

from kadcrawl import Peer, RemoteError
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.peer.swarm.end_check import EndCheck
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

    EndCheck(activity, asking.client, spawn).joined(other.contact)
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
    EndCheck(Activity(), peer.client, lambda work, name: spawned.append(work)).joined(peer.contact)
    assert spawned == []
