"""The loads of other peers, and how long they count."""

from kadcrawl.balance.drain import Backlog
from kadcrawl.balance.known_loads import BUSY_INTERVALS, KNOWN_MAX, KnownLoads

FRESH_S, WORK_AREA_S = 5.0, 10.0
PEER = b"peer"


def known(load: Backlog | int, at: float = 0.0) -> KnownLoads:
    loads = KnownLoads(FRESH_S, WORK_AREA_S)
    loads.note(PEER, load, at)
    return loads


def test_an_old_backlog_counts_less_the_work_done_since() -> None:
    assert Backlog(8, 1.0, 2.0) == known(Backlog(8, 1.0, 5.0)).load(PEER, 3.0)
    assert Backlog(6, 1.0) == known(Backlog(8, 1.0, 2.0)).load(PEER, 4.5)
    assert Backlog(0, 1.0) == known(Backlog(1, 1.0)).load(PEER, 4.0)


def test_a_peer_that_may_be_light_by_now_is_not_known() -> None:
    for load in (Backlog(0, 1.0), Backlog(15, 1.0), 4):
        loads = known(load)
        assert loads.load(PEER, FRESH_S - 0.1) is not None
        assert loads.load(PEER, FRESH_S) is None


def test_a_busy_peer_is_known_for_longer_but_not_for_ever() -> None:
    loads = known(Backlog(1000, 1.0))
    last_s = BUSY_INTERVALS * FRESH_S
    assert Backlog(980, 1.0) == loads.load(PEER, 20.0)
    assert loads.load(PEER, last_s - 0.1) is not None
    assert loads.load(PEER, last_s) is None
    assert known(Backlog(20, 1.0)).load(PEER, 9.9) is not None
    assert known(Backlog(20, 1.0)).load(PEER, 10.0) is None, "its work area may need more"


def test_the_latest_load_counts_however_late_an_earlier_one_arrives() -> None:
    loads = known(Backlog(5, 1.0), at=2.0)
    loads.note(PEER, Backlog(9, 1.0), 1.0)
    assert Backlog(5, 1.0) == loads.load(PEER, 2.0)
    loads.note(PEER, 2, 3.0)
    assert 2 == loads.load(PEER, 3.0)
    loads.forget(PEER)
    assert loads.load(PEER, 3.0) is None


def test_only_backlogs_of_others_count_for_the_common_end() -> None:
    loads = known(Backlog(5, 1.0))
    loads.note(b"cold", 4, 0.0)
    loads.note(b"lender", Backlog(9, 1.0), 0.0)
    assert [Backlog(5, 1.0)] == loads.backlogs(0.0, without=b"lender")


def test_a_bounded_number_of_peers_is_remembered_the_latest() -> None:
    loads = known(1)
    for number in range(KNOWN_MAX):
        loads.note(b"%d" % number, 1, 0.0)
    assert KNOWN_MAX == len(loads)
    assert loads.load(PEER, 0.0) is None
