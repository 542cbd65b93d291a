"""Test that a change of a peer moves the table, the siblings, the owner cache and the listeners together."""

from collections.abc import Callable
from random import Random

from kadcrawl.keys import Cell, NodeId, id_bytes
from kadcrawl.overlay.membership import Membership
from kadcrawl.overlay.settings import OverlaySettings
from tests.support.links.contacts import contact

ME = 0


class Record:
    """A membership and the events it has told."""

    def __init__(self, **settings: int) -> None:
        self.membership = Membership(NodeId(ME), 16, OverlaySettings(**settings), Random(1))  # type: ignore[arg-type]
        self.events: list[tuple[str, int]] = []
        self.membership.on_joined.append(lambda c: self.events.append(("joined", c.number)))
        self.membership.on_lost.append(lambda c: self.events.append(("lost", c.number)))

    def live(self) -> list[int]:
        return [neighbor.long_id for neighbor in self.membership.table.live()]


def test_joined_and_lost_tell_exactly_what_live_shows() -> None:
    record = Record()
    peers = record.membership
    steps: list[tuple[Callable[[], object], list[int], list[tuple[str, int]]]] = [
        (lambda: peers.met(contact(8)), [], []),
        (lambda: peers.heard(contact(8), 0), [8], [("joined", 8)]),
        (lambda: peers.heard(contact(8), 1), [8], []),
        (lambda: peers.missed(contact(8), 10), [8], []),
        (lambda: peers.missed(contact(8), 11), [], [("lost", 8)]),
        (lambda: peers.heard(contact(8), 12), [8], [("joined", 8)]),
        (lambda: peers.missed(contact(8), 20), [8], []),
        (lambda: peers.missed(contact(8), 21), [], [("lost", 8)]),
        (lambda: peers.missed(contact(8), 24), [], []),  # evicted, and lost before
        (lambda: peers.heard(contact(8), 30), [8], [("joined", 8)]),
        (lambda: peers.gone(contact(8), 31), [], [("lost", 8)]),
        (lambda: peers.gone(contact(8), 32), [], []),
    ]
    for step, live, events in steps:
        record.events.clear()
        step()
        assert live == record.live() == [n.long_id for n in peers.siblings.nearest]
        assert events == record.events
    assert peers.evictions == 1


def test_we_ourselves_never_enter() -> None:
    record = Record()
    record.membership.heard(contact(ME), 0)
    assert record.membership.met(contact(ME)) is None
    assert record.live() == []


def test_an_id_stays_at_the_address_that_answers() -> None:
    """For a second claimant of an ID, the peer asks the first claimant.

    Only when that fails may the second claimant enter.
    """
    record = Record()
    peers = record.membership
    peers.heard(contact(8, port=1), 0)
    assert contact(8, port=1) == peers.met(contact(8, port=2))
    peers.heard(contact(8, port=2), 2)
    assert not peers.missed(contact(8, port=2), 3)
    assert peers.table.members[id_bytes(8)].contact.port == 1
    for now in (4, 5, 8):
        peers.missed(contact(8, port=1), now)
        if now < 8:
            peers.heard(contact(8, port=2), now)
    peers.heard(contact(8, port=2), 40)
    assert peers.table.members[id_bytes(8)].contact.port == 2


def test_a_goodbye_counts_only_from_the_right_address() -> None:
    record = Record()
    record.membership.heard(contact(8, port=1), 0)
    record.membership.gone(contact(8, port=2), 1)
    assert record.live() == [8]


def test_a_request_keeps_a_live_contact_alive_but_does_not_clear_a_suspect() -> None:
    record = Record()
    peers = record.membership
    peers.heard(contact(8), 0)
    peers.missed(contact(8), 10)
    peers.heard_request(contact(8), 11)
    peers.missed(contact(8), 12)
    assert record.live() == [8], "one miss since it spoke"
    peers.missed(contact(8), 13)
    peers.heard_request(contact(8), 14)
    assert record.live() == []


def test_who_waits_for_a_place_is_asked_when_one_becomes_free() -> None:
    record = Record(k=2, siblings=1)
    peers = record.membership
    peers.heard(contact(1), 0)
    for number in (8, 9, 10):
        peers.heard(contact(number), 0)
    assert record.live() == [1, 8, 9]
    assert [contact(10)] == peers.gone(contact(8), 1)


def test_ever_nearer_peers_do_not_make_the_table_grow() -> None:
    """A host can answer for any number of IDs, and each is a sibling when it comes."""
    record = Record(k=4, siblings=2)
    peers = record.membership
    for number in range(1000, 512, -1):
        peers.heard(contact(number), 1000 - number)
        assert peers.met(contact(number - 1)) is not None, "the next one is wanted"
        live = record.live()
        assert len(live) <= 4 + 2
        assert [n.long_id for n in peers.siblings.nearest] == sorted(live)[:2] == [number, number + 1][: len(live)]
        assert ({"joined", "lost"}) >= {what for what, _ in record.events}
        joined = {peer for what, peer in record.events if what == "joined"}
        lost = {peer for what, peer in record.events if what == "lost"}
        assert joined - lost == set(live)
    assert peers.table.live_mask == 1 << 9


def test_non_members_are_pinged_only_if_there_is_a_place() -> None:
    record = Record(k=2, siblings=1)
    peers = record.membership
    for number in (1, 8, 9):
        peers.heard(contact(number), 0)
    assert peers.met(contact(10)) is None
    assert contact(4) == peers.met(contact(4))


def test_a_suspected_or_lost_peer_owns_nothing_and_a_newcomer_its_cells() -> None:
    record = Record()
    peers = record.membership
    far = contact(1 << 159)
    peers.heard(far, 0)
    peers.owners.put(Cell(0x8000), far, 0)
    peers.missed(far, 10)
    assert len(peers.owners) == 1
    peers.missed(far, 11)
    assert len(peers.owners) == 0
    peers.owners.put(Cell(0x8000), contact(1 << 158), 12)
    peers.heard(far, 13)
    assert len(peers.owners) == 0


def test_ownership_follows_the_live() -> None:
    record = Record()
    peers = record.membership
    cell, far = Cell(0x8000), contact(1 << 159)
    assert peers.owns(cell)
    peers.heard(far, 0)
    assert not peers.owns(cell)
    assert far == peers.owner(cell, 1)
    peers.missed(far, 10)
    peers.missed(far, 11)
    assert peers.owns(cell)


def test_evicted_peers_are_kept_for_the_way_back_but_not_all() -> None:
    record = Record(evicted_max=2)
    for number in (8, 9, 10):
        record.membership.heard(contact(number), 0)
        for now in (1, 2, 5):
            record.membership.missed(contact(number), now)
    assert [found.number for found in record.membership.evicted.values()] == [9, 10]
    record.membership.heard(contact(9), 100)
    assert [found.number for found in record.membership.evicted.values()] == [10]


def test_a_silent_non_member_near_us_is_retried_soon_and_then_rarely() -> None:
    """The non-member may have come while this peer was cut off.

    The peers that named the non-member will not do so again.
    """
    record = Record(unreached_max=2)
    peers = record.membership
    peers.heard(contact(8), 0)
    for now in range(1, 100):
        peers.round_timer.due(now)
    assert not peers.round_timer.due(101)
    peers.missed(contact(9), 102)
    assert peers.round_timer.due(104)
    assert [contact(9)] == peers.retry_candidates
    while peers.round_timer.due(now):
        now += 1
    peers.missed(contact(9), now)
    assert not peers.round_timer.due(now), "one that is tried again and again must not keep us busy"
    for number in (10, 11):
        peers.missed(contact(number), now)
    assert [contact(10), contact(11)] == peers.retry_candidates
    peers.heard(contact(11), now)
    assert [contact(10)] == peers.retry_candidates


def test_a_non_member_that_would_be_no_sibling_is_not_tried_again() -> None:
    record = Record(siblings=2)
    for number in (1, 2):
        record.membership.heard(contact(number), 0)
    record.membership.missed(contact(200), 1)
    assert [] == record.membership.retry_candidates


def test_more_non_members_than_can_be_kept_do_not_hurry_us() -> None:
    record = Record(unreached_max=2)
    now = 0.0
    for _ in range(20):
        for number in (8, 9, 10):
            record.membership.missed(contact(number), now)
        while not record.membership.round_timer.due(now):
            now += 1
    assert now > 200, "the rounds have become seldom"


def test_the_tables_of_a_process_share_the_contacts_they_know() -> None:
    contacts = []
    for _ in range(2):
        peers = Record().membership
        peers.heard(contact(8), 0)
        contacts += [neighbor.contact for neighbor in peers.table.live()]
    one, other = contacts
    assert contact(8) is not contact(8)
    assert one is other
