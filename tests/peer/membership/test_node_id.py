"""Test the ID under which a peer enters: the ID of its directory, or of a few IDs the one for the largest range."""

import asyncio
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from kadcrawl import Config, Peer, StartError
from kadcrawl.errors import RemoteError
from kadcrawl.keys import NodeId, firstdiff, id_bytes
from kadcrawl.link.wire.messages import DRAWN_MAX, FindRanges, FoundRange, Ranges
from kadcrawl.overlay import Overlay
from kadcrawl.peer.membership import node_id
from kadcrawl.peer.membership.node_id import RangeFinder, chosen
from sim.papers.joining import best_ratio
from sim.papers.newcomers import ids_of, shares
from tests.support.swarm.peers import MakePeer
from tests.support.waiting import until

ALL = bytes([255] * 20)


def default_config(directory: Path) -> Config:
    return Config(data=directory, port=0)


def ratio(ids: list[int]) -> float:
    owned = shares(ids)
    assert sum(owned) == 1.0
    return max(owned) * len(ids)


def mean_ratio(seeds: range, peers: int, drawn: int, apart_s: float | None) -> float:
    return fmean(ratio(ids_of(seed, peers, drawn, apart_s)) for seed in seeds)


# --- what it is for --------------------------------------------------------------------------------------------------


@pytest.mark.worlds
@pytest.mark.parametrize(
    "apart_s", [pytest.param(None, id="one after another"), pytest.param(1e-5, id="all at once, by one peer")]
)
def test_the_busiest_of_eight_owns_little_more_than_the_others(apart_s: float | None) -> None:
    assert mean_ratio(range(12), 8, 1, apart_s) >= 1.75
    # Each is 1 or, one time in three, 2: of a dozen the mean may well be above a half.
    assert mean_ratio(range(36), 8, DRAWN_MAX, apart_s) <= 1.5


@pytest.mark.worlds
def test_the_busiest_of_a_hundred_owns_less_than_twice_the_mean() -> None:
    assert best_ratio(100) <= ratio(ids_of(1, 100, DRAWN_MAX, 0.1)) < 2.0


# --- how it comes by it ----------------------------------------------------------------------------------------------


async def test_a_newcomer_takes_the_range_it_is_told_of(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("a")
    asked: list[FindRanges] = []
    find = RangeFinder.find

    async def one_large(guide: RangeFinder, overlay: Overlay, question: FindRanges) -> Ranges:
        asked.append(question)
        told = (await find(guide, overlay, question)).found
        assert {first.contact.id} == {one.owner for one in told if one is not None}
        return Ranges([FoundRange(first.contact.id, bytes(20) if index == 5 else ALL) for index in range(DRAWN_MAX)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RangeFinder, "find", one_large)
        second = await make_peer("b", join=first)
    assert DRAWN_MAX == len(set(asked[0].ids))
    assert asked[0].ids[5] == second.contact.id
    await until(lambda: first.overlay.contacts() == [second.contact])
    await second.__aexit__(None, None, None)
    async with Peer(default_config(tmp_path / "b")) as again:
        assert again.contact.id == second.contact.id
        await again.join([first.contact.address])
        assert again.contact.id == second.contact.id
    assert len(asked) == 1


async def test_an_id_nobody_was_told_of_is_not_kept(tmp_path: Path) -> None:
    ids = set()
    for _ in range(2):
        async with Peer(default_config(tmp_path)) as peer:
            ids.add(peer.contact.id)
            with pytest.raises(StartError):
                await peer.join([("127.0.0.1", 9)])
    assert len(ids) == 2


@pytest.mark.parametrize("fault", ["late", "refused", "nothing", "lies"])
async def test_without_a_good_answer_the_first_id_drawn_is_taken(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def find(guide: RangeFinder, overlay: Overlay, question: FindRanges) -> Ranges:
        match fault:
            case "late":
                await asyncio.sleep(60)
            case "refused":
                raise RemoteError("nobody", "no time")
            case "lies":
                return Ranges([FoundRange(one, ALL) for one in question.ids])
        return Ranges([])

    monkeypatch.setattr(RangeFinder, "find", find)
    monkeypatch.setattr(node_id, "ASK_S", 20.0)
    first = await make_peer("a")
    drawn: list[NodeId] = []
    draw = node_id.Identity._draw

    def note(one: Any) -> NodeId:
        drawn.append(draw(one))
        return drawn[-1]

    monkeypatch.setattr(node_id.Identity, "_draw", note)
    with caplog.at_level("INFO", "kadcrawl"):
        second = await make_peer("b", join=first)
    assert drawn[0] == second.contact.number
    assert ("identity.drawn_blindly" in caplog.text) is (fault in ("late", "refused"))
    await until(lambda: first.overlay.contacts() == [second.contact])


async def test_a_bootstrap_that_is_silent_leaves_time_to_ask_the_next(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    find = RangeFinder.find
    first = await make_peer("a")
    second = await make_peer("b", join=first)

    async def found(guide: RangeFinder, overlay: Overlay, question: FindRanges) -> Ranges:
        if overlay is second.overlay:
            await asyncio.sleep(60)
        return await find(guide, overlay, question)

    monkeypatch.setattr(RangeFinder, "find", found)
    monkeypatch.setattr(node_id, "ASK_S", 20.0)
    with caplog.at_level("INFO", "kadcrawl"):
        async with Peer(default_config(tmp_path / "c")) as third:
            await third.join([second.contact.address, first.contact.address])
    assert "identity.drawn_blindly" not in caplog.text


def test_what_is_missing_or_impossible_is_passed_over() -> None:
    drawn = [NodeId(1 << bit) for bit in range(4)]
    owner = id_bytes(1 << 150)
    large, small = FoundRange(owner, id_bytes(1 << 159)), FoundRange(owner, id_bytes(3 << 158))
    assert drawn[0] == chosen(drawn, [])
    assert drawn[0] == chosen(drawn, [None, None])
    assert drawn[2] == chosen(drawn, [None, small, large])
    assert drawn[1] == chosen(drawn, [FoundRange(id_bytes(drawn[0]), bytes(20)), small])
    assert drawn[3] == chosen(drawn, [None, None, None, small, large, large])


# --- the peer that is asked ------------------------------------------------------------------------------------------


class Alone:
    """The overlay of a peer that is alone."""

    def __init__(self, slow: bool = False) -> None:
        self.asked = self.most = self.under_way = 0
        self._slow = slow

    async def range_at(self, target: int) -> Any:
        self.asked += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(60 if self._slow else 0)
        finally:
            self.under_way -= 1
        return Owner(), 0


class Owner:
    number = 0
    id = bytes(20)


async def test_who_was_just_told_is_expected_and_who_never_came_is_forgotten() -> None:
    guide, overlay = RangeFinder(), Alone()
    halves = [id_bytes(1 << 159 | 1), id_bytes(1)]
    first = await guide.find(overlay, FindRanges(halves))  # type: ignore[arg-type]
    assert [FoundRange(bytes(20), bytes(20))] * 2 == first.found
    taken = id_bytes(chosen([NodeId(int.from_bytes(one, "big")) for one in halves], first.found))
    assert halves[0] == taken
    # Of the half that was taken the one expected is told, of the other the peer itself, each owning one half.
    second = await guide.find(overlay, FindRanges([id_bytes(1 << 159 | 2), id_bytes(2)]))  # type: ignore[arg-type]
    assert [FoundRange(taken, id_bytes(1 << 159)), FoundRange(bytes(20), id_bytes(1 << 159))] == second.found
    await asyncio.sleep(node_id.ENTER_S + 1.0)
    third = await guide.find(overlay, FindRanges([id_bytes(3)]))  # type: ignore[arg-type]
    assert [FoundRange(bytes(20), bytes(20))] == third.found


async def test_whoever_asks_again_is_not_expected_beside_itself() -> None:
    guide, overlay = RangeFinder(), Alone()
    question = FindRanges([id_bytes(1), id_bytes(2)])
    first = await guide.find(overlay, question)  # type: ignore[arg-type]
    assert first == await guide.find(overlay, question)  # type: ignore[arg-type]


async def test_no_more_ranges_are_looked_for_than_it_can_bear_and_none_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_id, "FIND_S", 0.1)
    guide, overlay = RangeFinder(), Alone(slow=True)
    questions = [
        FindRanges([id_bytes(DRAWN_MAX * number + one) for one in range(DRAWN_MAX)]) for number in range(1, 11)
    ]
    answers = await asyncio.gather(*(guide.find(overlay, question) for question in questions))  # type: ignore[arg-type]
    assert [Ranges([None] * DRAWN_MAX)] * 10 == answers
    assert node_id.FINDING_MAX == overlay.most
    assert not overlay.under_way


async def test_only_so_many_newcomers_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_id, "EXPECTED_MAX", 3)
    guide, overlay = RangeFinder(), Alone()
    for number in range(1, 10):
        await guide.find(overlay, FindRanges([id_bytes(number << 150)]))  # type: ignore[arg-type]
    told = (await guide.find(overlay, FindRanges([id_bytes(1 << 149)]))).found[0]  # type: ignore[arg-type]
    assert told is not None
    buckets = {firstdiff(0, number << 150) for number in (7, 8, 9)}
    assert sum(1 << bucket for bucket in buckets) == int.from_bytes(told.live_mask, "big")
