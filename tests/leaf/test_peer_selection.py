"""The full peer that a leaf asks next, and the records it keeps of full peers."""

from random import Random

from kadcrawl.keys import id_bytes
from kadcrawl.leaf.peer_selection import (
    BACK_OFF_FIRST_S,
    BACK_OFF_MOST_S,
    FAILURES_MAX,
    KNOWN_PEERS_MAX,
    FullPeer,
    FullPeers,
)
from kadcrawl.link.wire.messages import Contact
from tests.support.links.contacts import contact

BOOTSTRAP = [("one.example", 4160), contact(2).address]


def known_addresses(peers: FullPeers) -> set[tuple[str, int]]:
    return set(peers._known)


def ask_in_vain(peers: FullPeers, count: int, now: float = 0.0) -> list[FullPeer]:
    """Ask a number of peers that all have no work."""
    found = []
    for _ in range(count):
        peer = peers.next(now)
        assert peer is not None
        peers.note_empty(peer)
        found.append(peer)
    return found


def test_a_leaf_sweeps_over_all_before_it_becomes_patient() -> None:
    peers = FullPeers(BOOTSTRAP, Random(1))
    peers.learn([contact(3), contact(4)])
    assert known_addresses(peers) == {peer.address for peer in ask_in_vain(peers, 4)}
    assert not peers.patient
    assert peers.next(0.0) is not None
    assert peers.patient


def test_it_stays_with_whoever_gives_until_there_is_nothing() -> None:
    peers = FullPeers(BOOTSTRAP, Random(1))
    ask_in_vain(peers, 3)
    lender = peers.next(0.0)
    assert lender is not None
    peers.note_lent(lender)
    assert not peers.patient
    assert all(peers.next(0.0) is lender for _ in range(20))
    peers.note_empty(lender)
    other = peers.next(0.0)
    assert other is not None
    assert other is not lender


def test_who_does_not_answer_is_left_alone_each_time_for_longer() -> None:
    peers = FullPeers(BOOTSTRAP[:1], Random(1))
    now, waits = 0.0, []
    for _ in range(12):
        peer = peers.next(now)
        assert peer is not None
        peers.note_failed(peer, now)
        assert peers.next(now) is None
        waits.append(peers.next_due() - now)
        now = peers.next_due()
    assert peer is not None
    assert [BACK_OFF_FIRST_S, 2 * BACK_OFF_FIRST_S] == waits[:2]
    assert BACK_OFF_MOST_S == max(waits) == waits[-1]
    peers.note_answered(peer, id_bytes(1))
    peers.note_failed(peer, now)
    assert now + BACK_OFF_FIRST_S == peers.next_due()


def test_whoever_comes_back_has_to_tell_the_job_again() -> None:
    peers = FullPeers(BOOTSTRAP[:1], Random(1))
    peer = peers.next(0.0)
    assert peer is not None
    peer.seeds = 3
    peers.note_failed(peer, 0.0)
    assert peer.seeds is None


def test_a_lender_that_dies_is_given_up_for_another() -> None:
    peers = FullPeers(BOOTSTRAP, Random(1))
    lender = peers.next(0.0)
    assert lender is not None
    peers.note_lent(lender)
    peers.note_failed(lender, 0.0)
    other = peers.next(0.0)
    assert other is not None
    assert other is not lender


def test_no_more_are_known_than_may_be_and_the_lender_stays() -> None:
    peers = FullPeers(BOOTSTRAP[1:], Random(1))
    lender = peers.next(0.0)
    assert lender is not None
    peers.note_lent(lender)
    for start in range(10, 250, 20):
        peers.learn([contact(number) for number in range(start, start + 20)])
        assert len(peers) <= KNOWN_PEERS_MAX
    assert KNOWN_PEERS_MAX == len(peers)
    assert lender.address in known_addresses(peers)
    assert contact(249).address in known_addresses(peers)


def test_who_failed_goes_first_when_there_is_no_room() -> None:
    peers = FullPeers([], Random(1))
    peers.learn([contact(number) for number in range(1, KNOWN_PEERS_MAX + 1)])
    dead = peers.next(0.0)
    assert dead is not None
    peers.note_failed(dead, 0.0)
    peers.learn([contact(200)])
    assert dead.address not in known_addresses(peers)
    assert KNOWN_PEERS_MAX == len(peers)


def test_who_has_answered_stays_whoever_is_named_until_it_has_failed_often() -> None:
    peers = FullPeers(BOOTSTRAP[1:], Random(1))
    one = peers.next(0.0)
    assert one is not None
    peers.note_answered(one, id_bytes(2))
    for _ in range(FAILURES_MAX - 1):
        peers.note_failed(one, 0.0)
    for start in range(10, 250, 20):
        peers.learn([contact(number) for number in range(start, start + 20)])
    assert one.address in known_addresses(peers)
    assert KNOWN_PEERS_MAX == len(peers)
    peers.note_failed(one, 0.0)
    peers.learn([contact(250)])
    assert one.address not in known_addresses(peers)


def test_an_address_nothing_could_be_sent_to_is_not_taken_up() -> None:
    peers = FullPeers(BOOTSTRAP, Random(1))
    hosts = ("0.0.0.0", "224.0.0.1", "a.example", "255.255.255.255", "010.0.0.1")
    peers.learn([Contact(id_bytes(number), host, 4160) for number, host in enumerate(hosts, 1)])
    assert set(BOOTSTRAP) == known_addresses(peers)


def test_one_peer_is_not_known_by_two_addresses_unless_the_first_fails() -> None:
    peers = FullPeers(BOOTSTRAP[:1], Random(1))
    peer = peers.next(0.0)
    assert peer is not None
    peers.note_answered(peer, contact(1).id)
    peers.learn([contact(1)])
    assert {BOOTSTRAP[0]} == known_addresses(peers)
    peers.note_failed(peer, 0.0)
    peers.learn([contact(1)])
    assert {BOOTSTRAP[0], contact(1).address} == known_addresses(peers)


def test_only_who_answered_or_was_named_and_did_not_fail_is_journaled() -> None:
    peers = FullPeers(BOOTSTRAP, Random(1))
    assert [] == peers.contacts()
    peers.learn([contact(3), contact(4)])
    assert {contact(3), contact(4)} == set(peers.contacts())
    first = peers.next(0.0)
    while first is not None and first.address != contact(3).address:
        peers.note_empty(first)
        first = peers.next(0.0)
    assert first is not None
    peers.note_failed(first, 0.0)
    assert [contact(4)] == peers.contacts()


def test_a_name_is_not_journaled_and_who_has_answered_comes_first() -> None:
    name = "crawl-" + 70 * "a" + ".example"
    peers = FullPeers([(name, 4160), BOOTSTRAP[1]], Random(1))
    first, second = ask_in_vain(peers, 2)
    peers.note_answered(first, contact(1).id)
    peers.note_answered(second, contact(2).id)
    peers.learn([contact(3)])
    assert [contact(2), contact(3)] == peers.contacts()
