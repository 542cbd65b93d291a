"""Test that the counters of a peer stay in the totals after it leaves.

They count once when the peer returns, and take little room.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal
from unittest.mock import AsyncMock

import pytest
from msgspec.structs import replace

from kadcrawl.errors import RemoteError
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.basics import REASONS_MAX
from kadcrawl.link.wire.census_rows import packed_rows
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import (
    COUNT_MAX,
    DEPARTED_MAX,
    Contact,
    Departed,
    LeaveStats,
    Ok,
    PeerCounters,
    PeerRow,
    Request,
)
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.membership.departed import KEEPERS, DepartedPeers, each_once, send_leave_stats
from kadcrawl.peer.peer import Peer
from kadcrawl.peer.runtime import NotReadyError
from kadcrawl.peer.swarm.census import take_census
from kadcrawl.settings.limits import Limits
from kadcrawl.store.store import Store
from tests.support.sites.web import Web, tree
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

PAGES = 90
BYTES_MAX = Limits().message_bytes_max


def departed(number: int, pages: int) -> Departed:
    return Departed(Contact(id_bytes(number), "10.0.0.1", 4160), PeerCounters(pages=pages))


@pytest.fixture
def departed_peers(tmp_path: Path) -> DepartedPeers:
    return DepartedPeers(Store(tmp_path, 0.0))


def pages(kept: DepartedPeers) -> dict[int, int]:
    return {row.contact.number: row.counters.pages for row in kept.rows()}


def test_the_fullest_farewell_fits_a_message() -> None:
    reasons = {f"{number:040}": COUNT_MAX for number in range(REASONS_MAX)}
    counters = PeerCounters(
        pages=COUNT_MAX, bytes=COUNT_MAX, urls=COUNT_MAX, links_seen=COUNT_MAX, failed=reasons, left_out=reasons
    )
    farewell = LeaveStats(id_bytes(1), [Departed(Contact(id_bytes(2), "x" * 64, 1), counters)] * DEPARTED_MAX)
    said = pack(farewell)
    assert len(said) < 1.3e6 < BYTES_MAX
    assert farewell == unpack(said, Request, BYTES_MAX)


def test_of_one_peer_and_of_too_many_those_that_did_more_are_kept(departed_peers: DepartedPeers) -> None:
    departed_peers.keep([departed(1, 5), departed(2, 7)])
    departed_peers.keep([departed(1, 3), departed(2, 8)])
    assert {1: 5, 2: 8} == pages(departed_peers)
    departed_peers.keep([departed(number, 1000) for number in range(3, DEPARTED_MAX + 1)])
    assert DEPARTED_MAX == len(pages(departed_peers))
    departed_peers.keep([departed(DEPARTED_MAX + 1, 6)])
    assert DEPARTED_MAX == len(pages(departed_peers))
    assert {1, 2, DEPARTED_MAX + 1} & {*pages(departed_peers)} == {2, DEPARTED_MAX + 1}


def test_a_peer_says_whose_figures_it_has_no_room_for(
    departed_peers: DepartedPeers, caplog: pytest.LogCaptureFixture
) -> None:
    departed_peers.keep([departed(number, 10 + number) for number in range(1, DEPARTED_MAX + 1)])
    assert [] == caplog.messages
    departed_peers.keep([departed(1000, 1000), departed(1001, 3)])
    assert ["farewell.dropped peers=2 pages=14"] == caplog.messages


def test_who_is_kept_is_journaled(tmp_path: Path) -> None:
    store = Store(tmp_path, 0.0)
    DepartedPeers(store).keep([departed(1, 5)])
    assert {1: 5} == pages(DepartedPeers(store))
    store.meta.set("departed", b"of another version")
    assert {} == pages(DepartedPeers(store))


KNOWN = [Contact(id_bytes(number), "10.0.0.1", 4160) for number in (0b0000, 0b0001, 0b0010, 0b1000, 0b1001)]


def nearest_known(target: int, count: int) -> list[Contact]:
    return sorted(KNOWN, key=lambda contact: contact.number ^ target)[:count]


class Others:
    """Simulate peers that accept the statistics of a leaving peer, unless they leave as well."""

    def __init__(self, *leaving: int) -> None:
        self._leaving = leaving
        self.told: dict[int, list[int]] = {}
        self.asked = 0

    async def ask(self, to: Contact, message: LeaveStats, expected: type[Ok], deadline_s: float) -> Ok:
        self.asked += 1
        if to.number in self._leaving:
            raise RemoteError(to, "this peer leaves as well")
        self.told.setdefault(to.number, []).extend(one.contact.number for one in message.departed)
        return Ok()


@pytest.mark.parametrize(
    ("leaving", "told", "asked"),
    [
        ([], {0b0001: [0b0000, 0b1001], 0b0010: [0b0000], 0b1000: [0b1001]}, 3),
        ([0b0001], {0b0010: [0b0000, 0b1001], 0b1000: [0b1001, 0b0000]}, 5),
        ([0b0001, 0b0010, 0b1000, 0b1001], {}, 4),
    ],
)
async def test_farewell_is_said_to_those_nearest_to_each_that_stay(
    departed_peers: DepartedPeers, leaving: list[int], told: dict[int, list[int]], asked: int
) -> None:
    departed_peers.keep([departed(0b1001, 5)])
    others: Any = Others(*leaving)
    await send_leave_stats(others, KNOWN[0].id, departed_peers.leave_stats(departed(0b0000, 9), nearest_known))
    assert told == others.told
    assert asked == others.asked
    assert KEEPERS == 2


def test_a_peer_that_is_back_speaks_for_itself(departed_peers: DepartedPeers) -> None:
    departed_peers.keep([departed(1, 5), Departed(leaf_contact(id_bytes(2)), PeerCounters(pages=3))])
    (left, leaf) = departed_peers.rows()
    assert ("left", "leaf: left") == (left.state_text, leaf.state_text)
    back = replace(left, state=PeerState.CRAWLING, counters=PeerCounters(pages=6))
    leaf_back = replace(leaf, state=PeerState.IDLE, counters=PeerCounters(pages=4))
    for rows in ([left, leaf, back, leaf_back], [leaf_back, back, leaf, left]):
        assert {6, 4} == {row.counters.pages for row in each_once(rows)}
    other = replace(left, state=PeerState.IDLE, hosted_leaf=True, counters=PeerCounters(pages=5))
    assert [other] == each_once([left, other]) == each_once([other, left]), "or as the other kind"
    more = replace(left, counters=PeerCounters(pages=7))
    assert [more] == each_once([more, left]) == each_once([left, more]), "two keep it in mind"


def test_a_leaf_that_claims_the_id_of_a_departed_peer_drops_no_figures(departed_peers: DepartedPeers) -> None:
    departed_peers.keep([departed(1, 5), Departed(leaf_contact(id_bytes(2)), PeerCounters(pages=3, urls=9))])
    left, leaf_left = (replace(row, counters=replace(row.counters, urls=9)) for row in departed_peers.rows())
    for row in (left, leaf_left):
        claimed = replace(row, state=PeerState.IDLE, hosted_leaf=True, counters=PeerCounters(pages=5, urls=8))
        assert [claimed, row] == each_once([row, claimed]) == each_once([claimed, row]), "a counter is smaller"
        grown = replace(claimed, counters=PeerCounters(pages=5, urls=9))
        assert [grown] == each_once([row, grown])


async def test_a_leaf_takes_no_departed_peer_out_of_a_budget(departed_peers: DepartedPeers) -> None:
    departed_peers.keep([Departed(Contact(id_bytes(1), "10.0.0.1", 1), PeerCounters(pages=5), pages_taken=5)])
    (left,) = departed_peers.rows()
    leaf = replace(left, state=PeerState.IDLE, hosted_leaf=True, granted=0)
    full = replace(left, state=PeerState.IDLE)
    cases: list[tuple[Literal["", "pages"], PeerRow, list[PeerRow]]] = [
        ("", leaf, [leaf]),
        ("pages", leaf, [leaf, left]),
        ("pages", full, [full]),
    ]
    for unit, back, expected in cases:
        answer = SimpleNamespace(tally=None, rows=packed_rows([back]), left=packed_rows([left]))
        waves: Any = SimpleNamespace(ask_all=AsyncMock(return_value=answer))
        assert expected == (await take_census(waves, unit)).rows


@pytest.mark.parametrize("leaf_pages", [4, 5, 6])
def test_a_departed_leaf_with_the_id_of_a_departed_peer_takes_nothing_out_of_a_budget(
    leaf_pages: int, departed_peers: DepartedPeers
) -> None:
    full = Departed(Contact(id_bytes(1), "10.0.0.1", 1), PeerCounters(pages=5), pages_taken=5)
    leaf = Departed(leaf_contact(id_bytes(1)), PeerCounters(pages=leaf_pages))
    for both in ([full, leaf], [leaf, full]):
        departed_peers.keep(both)
        kept = DepartedPeers(departed_peers._store).rows()
        assert 2 == len(kept)
        for rows in (kept, kept[::-1], [*kept, *kept]):
            assert 5 == sum(row.granted for row in each_once(rows, for_budget=True))
            assert [max(5, leaf_pages)] == [row.counters.pages for row in each_once(rows)], "one went on as the other"


def test_the_figures_of_a_departed_peer_and_a_leaf_with_its_id_both_count_if_neither_went_on_as_the_other(
    departed_peers: DepartedPeers,
) -> None:
    full = Departed(Contact(id_bytes(1), "10.0.0.1", 1), PeerCounters(pages=5, urls=9), pages_taken=5)
    departed_peers.keep([full, Departed(leaf_contact(id_bytes(1)), PeerCounters(pages=7, urls=8))])
    assert {5, 7} == {row.counters.pages for row in each_once(departed_peers.rows())}


async def gone(peer: Peer) -> None:
    await peer.leave()
    await peer.__aexit__(None, None, None)


async def pages_and_states(peer: Peer) -> tuple[int, list[str]]:
    rows = (await peer.census()).rows
    return sum(row.counters.pages for row in rows), sorted(row.state_text for row in rows)


async def test_totals_keep_departed_peers_and_count_returning_peers_once(make_peer: MakePeer) -> None:
    async with Web(20) as site:
        site.fallback = tree(PAGES, 20)(site)
        peers = await swarm(make_peer, "abcd")
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert PAGES == sum(peer.counters.pages for peer in peers)
        for left in (3, 2, 1):
            await gone(peers[left])
            assert PAGES == (await pages_and_states(peers[0]))[0], (
                f"{4 - left} left, and those kept what the others did"
            )
        assert (PAGES, ["left", "left", "left", "stopping"]) == await pages_and_states(peers[0])
        back = await make_peer("c", join=peers[0])
        await until(lambda: back.contact in peers[0].overlay.contacts())
        for peer in (peers[0], back):
            total, states = await pages_and_states(peer)
            assert (PAGES, 2) == (total, states.count("left"))


async def test_who_leaves_as_well_takes_no_farewell(make_peer: MakePeer) -> None:
    """The leaving peer has already sent the statistics that it kept."""
    peer = await make_peer("a")
    farewell = LeaveStats(id_bytes(1), [departed(1, 5)])
    assert Ok() == await peer._handlers.answer(farewell)
    peer.runtime.leave()
    with pytest.raises(NotReadyError):
        await peer._handlers.answer(farewell)
