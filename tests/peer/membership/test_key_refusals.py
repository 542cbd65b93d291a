"""Test that a peer without news of a key change notices the refusals of the others, and says so."""

import asyncio
from pathlib import Path

import pytest

from kadcrawl import Config, Leaf, Peer
from kadcrawl.keys import id_bytes
from kadcrawl.leaf import work_requests
from kadcrawl.link.wire.messages import Contact
from kadcrawl.members.keyring import OVERLAP_S, Keyring
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer.membership import key_refusals
from kadcrawl.peer.membership.key_refusals import LOST_PEER_KEPT_S, LOST_PEERS_MAX, SAY_S, KeyMismatchMonitor
from kadcrawl.peer.rejoin import come_back
from tests.support.swarm.peers import MakePeer
from tests.support.waiting import until

KEY, OTHER_KEY = SwarmKey(b"k" * 32), SwarmKey(b"o" * 32)
CONTACTS = [Contact(id_bytes(number), "10.0.0.1", number) for number in range(1, LOST_PEERS_MAX + 2)]
ONE, TWO, *_ = CONTACTS


async def test_whom_known_peers_refuse_by_its_key_says_so_until_it_has_theirs(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(key_refusals, "FIRST_DIAL_S", 0.0)
    monkeypatch.setattr(key_refusals, "EVERY_S", 0.1)
    told = await make_peer("a", key=KEY)
    others = [await make_peer(name, key=KEY, join=told) for name in "bc"]
    left_out = others.pop()
    peers = [told, *others]
    await until(lambda: len(left_out.overlay.contacts()) == 2)
    for peer in peers:
        peer.change_key(OTHER_KEY)
        now = peer.clock.now
        peer.clock.now = lambda now=now: now() + OVERLAP_S + 1  # type: ignore[method-assign, misc]
        assert peer.key_rotation is not None
        peer.key_rotation._changed.set()
    await until(lambda: left_out.row().state_text == "refused by 2 known peers: key changed?")
    assert "swarm.refused by=2 " in caplog.text
    await until(lambda: all(peer.runtime.key_mismatches.count == 1 for peer in peers))
    assert {"done", "idle", "crawling", "catching up"} >= {peer.state for peer in peers}, "they have each other"
    left_out.change_key(OTHER_KEY)
    await until(lambda: "refused" not in left_out.row().state_text)


async def test_who_has_said_goodbye_is_no_longer_asked(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else may be at its address by then."""
    monkeypatch.setattr(key_refusals, "FIRST_DIAL_S", 0.0)
    first = await make_peer("a", key=KEY)
    second = await make_peer("b", key=KEY, join=first)
    await until(lambda: first.overlay.contacts() == [second.contact])
    await asyncio.sleep(0.01)
    first.runtime.key_mismatches.lost(ONE, asyncio.get_running_loop().time())
    await second.leave()
    await until(lambda: first.overlay.contacts() == [])
    assert [ONE] == first.runtime.key_mismatches.to_dial(asyncio.get_running_loop().time())


async def test_who_begins_by_itself_as_all_it_knew_refuse_it_says_so(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(key_refusals, "FIRST_DIAL_S", 0.0)
    first = await make_peer("a", key=KEY)
    config = Config(data=tmp_path / "b", port=0, swarm_key=KEY)
    async with Peer(config) as second:
        await second.join([first.contact.address])
    assert first.key_rotation is not None
    first.key_rotation.credentials.use_keyring(Keyring(OTHER_KEY))  # As after its hour.
    async with Peer(config) as second:
        await come_back(second)
        assert [] == second.overlay.contacts()
        await until(lambda: second.state == "refused by 1 known peer: key changed?")


def test_it_is_said_once_in_a_while_and_when_there_are_more() -> None:
    refusals = KeyMismatchMonitor()
    for contact in (ONE, TWO):
        refusals.lost(contact, 0.0)
    assert not refusals.note([], 0.0)
    assert refusals.note([ONE.id], 0.0)
    assert not refusals.note([ONE.id], SAY_S - 1)
    assert refusals.note([ONE.id, TWO.id], SAY_S - 1)
    assert not refusals.note([TWO.id], SAY_S)
    assert refusals.note([TWO.id], 2 * SAY_S)
    refusals.forget(TWO)
    assert 0 == refusals.count
    assert not refusals.note([TWO.id], 9 * SAY_S), "it was heard meanwhile"


def test_those_lost_last_are_dialled_and_none_for_ever() -> None:
    refusals = KeyMismatchMonitor()
    for now, contact in enumerate(CONTACTS):
        refusals.lost(contact, float(now))
    assert CONTACTS[1:] == refusals.to_dial(0.0)
    assert CONTACTS[3:] == refusals.to_dial(2 + LOST_PEER_KEPT_S)
    refusals.note([CONTACTS[3].id], LOST_PEER_KEPT_S)
    assert [] == refusals.to_dial(LOST_PEERS_MAX + LOST_PEER_KEPT_S)
    refusals.note([CONTACTS[3].id], LOST_PEER_KEPT_S)
    assert 0 == refusals.count


async def test_a_leaf_that_was_not_told_of_a_change_says_so(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(work_requests, "NO_PEER_S", 0.1)
    first = await make_peer("a", key=KEY)
    async with Leaf(Config(data=tmp_path / "leaf", swarm_key=KEY)) as leaf:
        await leaf.join([first.contact.address])
        await until(lambda: leaf.row().state_text in ("idle", "done"))
        assert first.key_rotation is not None
        first.key_rotation.credentials.use_keyring(Keyring(OTHER_KEY))  # As after its hour.
        first.server.disconnect()
        leaf.client.disconnect()
        await until(lambda: leaf.row().state_text == "refused by all: key changed?")
        assert "leaf.refused" in caplog.text
        assert leaf.key_rotation is not None
        leaf.key_rotation.credentials.use_keyring(Keyring(OTHER_KEY))
        await until(lambda: leaf.row().state_text in ("idle", "done"))
