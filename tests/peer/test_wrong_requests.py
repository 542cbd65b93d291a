"""Test well-formed requests that no peer of this release sends: refused, counted, logged, and blamed on the sender."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from kadcrawl import RemoteError
from kadcrawl.link.peer_score import MISBEHAVIORS_MAX, Misbehavior
from kadcrawl.link.wire.messages import (
    WIRE_VERSION,
    AssignReplica,
    CellsHeld,
    CellSummary,
    Contact,
    FindMyCells,
    Hello,
    Lend,
    Message,
    Ok,
    PendingRecord,
    Rekey,
    SiteRecord,
    WasAway,
)
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.sealing import Sealing
from kadcrawl.members.swarm_key import SwarmKey
from tests.support.links.member_requests import ask
from tests.support.swarm.peers import MakePeer

KEY = SwarmKey(b"k" * 32)
LIAR = PeerKey(b"l" * 32)
NOWHERE = Contact(LIAR.id, "224.0.0.1", 9)
HERE = Contact(LIAR.id, "127.0.0.1", 9)
URL = "http://a.example/"
REPEATS = int(MISBEHAVIORS_MAX) + 5


def lend_one_url(giver: Contact) -> Lend:
    return Lend(giver, bytes(8), SiteRecord("a.example", 0.0, 0.0), 1, [PendingRecord(URL, 0, 0, 0, 0.0)], [])


WRONG: list[tuple[Message, Misbehavior, str]] = [
    (CellsHeld(NOWHERE, []), Misbehavior.CONTACT, "no peer is asked at 224.0.0.1"),
    (WasAway(NOWHERE, 2.0), Misbehavior.CONTACT, "no peer is asked at 224.0.0.1"),
    (FindMyCells(NOWHERE), Misbehavior.CONTACT, "no peer is asked at 224.0.0.1"),
    (lend_one_url(NOWHERE), Misbehavior.CONTACT, "no peer is asked at 224.0.0.1"),
    (Hello(WIRE_VERSION + 2), Misbehavior.VERSION, "use the same release"),
    (Rekey(LIAR.id, bytes(32)), Misbehavior.CLAIM, "only whoever runs a peer"),
    (FindMyCells(Contact(bytes(20), "127.0.0.1", 9)), Misbehavior.CLAIM, "in the name of another"),
]


@pytest.mark.parametrize(("question", "fault", "why"), WRONG, ids=lambda one: str(one).split("(")[0])
async def test_a_request_no_peer_of_this_release_sends_is_refused_and_logged(
    make_peer: MakePeer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    question: Message,
    fault: Misbehavior,
    why: str,
) -> None:
    peer = await make_peer("one", key=KEY)
    with pytest.raises(RemoteError, match=why):
        await ask(peer.contact, question, Ok, tmp_path, peer_key=LIAR)
    assert (1, {fault: 1}) == (peer.server.malformed, dict(peer.peer_score.misbehaviors))
    assert [f"from={LIAR.id.hex()[:8]}@127.0.0.1"] == [
        line.split()[1] for line in caplog.messages if line.startswith("link.malformed")
    ]
    assert peer.peer_score.banned_until(LIAR.id, asyncio.get_running_loop().time()) is None


async def test_who_names_itself_nowhere_again_and_again_is_banned(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer("one", key=KEY)
    for _ in range(REPEATS):
        with pytest.raises(RemoteError):
            await ask(peer.contact, CellsHeld(NOWHERE, []), Ok, tmp_path, peer_key=LIAR)
    assert MISBEHAVIORS_MAX <= peer.peer_score.misbehaviors[Misbehavior.CONTACT] < REPEATS, (
        "it is refused by the connection then"
    )
    assert peer.peer_score.banned_until(LIAR.id, asyncio.get_running_loop().time()) is not None


@pytest.mark.parametrize(
    "question",
    [
        AssignReplica(HERE, 0, [CellSummary(7, 0, 0, bytes(16))]),
        lend_one_url(HERE),
        Hello(WIRE_VERSION + 2),
    ],
    ids=["not the owner of a cell", "not the owner of a site", "another release"],
)
async def test_what_an_honest_peer_may_be_refused_gets_nobody_banned(
    make_peer: MakePeer, tmp_path: Path, question: Message
) -> None:
    """A peer with an old table takes itself for an owner. A peer of another release asks to hear of the mismatch."""
    peer = await make_peer("one", key=KEY)
    for _ in range(REPEATS):
        with suppress(RemoteError):
            await ask(peer.contact, question, Ok, tmp_path, peer_key=LIAR)
    assert set(peer.peer_score.misbehaviors) <= {Misbehavior.VERSION}
    assert peer.peer_score.banned_until(LIAR.id, asyncio.get_running_loop().time()) is None


async def test_a_datagram_of_another_version_is_counted_as_that(make_peer: MakePeer) -> None:
    peer = await make_peer("one", key=KEY)
    assert peer.credentials is not None
    other = Sealing(LIAR, (KEY,), 0)
    assert other.open(peer.credentials.sealing.seal(b"", None) or b"") is not None, "it knows its key"
    said = bytes([WIRE_VERSION + 2]) + bytes(30)
    peer.overlay._socket.datagram_received(other.seal(said, peer.contact.id) or b"", ("127.0.0.1", 9))
    assert {Misbehavior.VERSION: 1} == dict(peer.peer_score.misbehaviors)
