"""How the leaves of a swarm are shown."""

from kadcrawl.keys import id_bytes
from kadcrawl.link.messages import Answer, Contact, Counters, PeerRow, Tally
from kadcrawl.peer.leaves import each_once

TALLY = Tally(2, bytes(16), 0, 0, 0)


def row(peer: int, port: int, uptime_s: int, pages: int) -> PeerRow:
    return PeerRow(Contact(id_bytes(peer), "10.0.0.1", port), "idle", 0, 0, uptime_s, Counters(pages=pages), 0, 0)


def test_a_leaf_that_has_just_changed_its_peer_is_shown_once_as_it_is_by_now() -> None:
    one, two = row(1, 4160, 100, 7), row(2, 4161, 90, 8)
    old, new = row(3, 4160, 10, 1), row(3, 4161, 12, 2)
    for rows in ([one, old, two, new], [one, new, two, old]):
        shown = each_once(Answer(TALLY, rows))
        assert TALLY == shown.tally
        assert [one, new, two] == shown.rows
