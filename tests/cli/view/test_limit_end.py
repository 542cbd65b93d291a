"""The sentence of one peer about the limit that ended its swarm, and the pages that crashed peers had left of it."""

from kadcrawl.cli.view.limit_end import ReachedLimit, SwarmView, reached_limit, swarm_end_sentence
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.settings.job import Job

ONE, TWO, THREE = (id_bytes(number) for number in (1, 2, 3))


def row(peer: bytes, *, granted: int = 0, allowance: int = 0, pending: int = 0, has_left: bool = False) -> PeerRow:
    state = PeerState.LEFT if has_left else PeerState.CRAWLING
    return PeerRow(Contact(peer, "10.0.0.1", 1), state, pending, 0, 1, PeerCounters(), allowance, granted)


def test_a_peer_that_is_gone_without_a_word_had_at_most_what_it_was_not_seen_to_begin() -> None:
    view = SwarmView()
    view.see([row(ONE, granted=100), row(TWO, granted=60, allowance=20), row(THREE, granted=9, allowance=9)])
    view.see([row(ONE, granted=110), row(THREE, has_left=True)])
    assert 70 - 40 == view.pages_lost({ONE: 110, TWO: 70, THREE: 9})


def test_a_peer_whose_grant_was_all_begun_lost_nothing_when_it_died() -> None:
    view = SwarmView()
    view.see([row(ONE, granted=100), row(TWO, granted=60)])
    view.see([row(ONE, granted=100)])
    assert 0 == view.pages_lost({ONE: 100, TWO: 60})
    assert 0 == SwarmView().pages_lost({})


def test_urls_are_pending_if_a_peer_that_is_there_has_some() -> None:
    view = SwarmView()
    view.see([row(ONE), row(TWO, pending=1)])
    assert view.has_pending
    view.see([row(ONE), row(TWO, pending=1, has_left=True)])
    assert not view.has_pending


def test_the_sentence_of_a_peer_names_the_limit_and_the_pages_of_crashed_peers() -> None:
    limit = ReachedLimit("--max-pages", "300", "600")
    assert "--max-pages 300 ended the crawl of the swarm" == swarm_end_sentence(limit, 0)
    assert (
        "--max-pages 300 ended the crawl of the swarm up to 1 page early: peers that crashed had them, and go on with "
        "them once they are started again"
    ) == swarm_end_sentence(limit, 1)


def test_a_limit_that_no_longer_stands_did_not_end_a_crawl() -> None:
    job = Job(seeds=("http://a.example/",), max_pages=10)
    assert ReachedLimit("--max-pages", "20", "40", is_ordered=True) == reached_limit("pages", job, {"max-pages": 20.0})
    assert reached_limit("time", job, {}) is None
    assert reached_limit("", job, {}) is None
