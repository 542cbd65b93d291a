"""Messages: the paper's protocol is counted through as it stands there, and real peers send less of everything."""

from dataclasses import replace
from functools import cache

import pytest

from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import (
    Batch,
    Contact,
    DoneRun,
    GetRange,
    Link,
    Offer,
    PendingRecord,
    Replicate,
)
from sim.papers import message_counts, messages as experiment
from sim.papers.message_counts import COPIES, LINKS, OTHER, Count, Paper, by_the_paper, crawl
from sim.papers.messages import messages, urls_with_copies

ME = Contact(id_bytes(1), "10.0.0.1", 4160)


@cache
def small_count() -> Count:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_counts, "PAGES", 150)
        patch.setattr(message_counts, "SITES", 10)
        return crawl(1, 4)


def test_a_lonely_peer_asks_nobody() -> None:
    assert Paper(queries=0, sends=0, records=0) == by_the_paper({"a": 1}, [("a", ("x", "y"))], [])


def test_every_link_is_asked_for_and_only_new_ones_are_sent_and_recorded() -> None:
    peers = {name: number << 150 for number, name in enumerate("abcdefgh")}
    urls = tuple(f"http://site.test/{number}" for number in range(2_000))
    first = by_the_paper(peers, [("a", urls)], [])
    again = by_the_paper(peers, [("a", urls), ("a", urls)], [])
    known = by_the_paper(peers, [("a", urls)], urls)
    # Each of the three goes to oneself as often as to anybody; IDs so near each other share by their last bits.
    assert first.queries == first.records
    assert pytest.approx(7 / 8 * 2_000, rel=0.05) == first.queries
    assert pytest.approx(7 / 8 * 2_000, rel=0.05) == first.sends
    assert Paper(queries=2 * first.queries, sends=first.sends, records=first.records) == again
    assert Paper(queries=first.queries, sends=0, records=0) == known
    assert first.requests == first.queries + first.sends + first.records


def test_urls_are_counted_in_offers_and_in_copies() -> None:
    count = Count()
    count.note(Offer([Link("http://a/", 0, 0)] * 3))
    count.note(Replicate(ME, Batch([id_bytes(1)] * 2, [PendingRecord("http://a/", 0, 0, 0, 0.0)], [], [])))
    count.note(Replicate(ME, Batch([], [], [], []), [DoneRun(id_bytes(1), 7, bytes(16))]))
    count.note(GetRange(id_bytes(1)))
    assert (3, 4, 7) == (count.offered, count.copied, count.in_runs)
    assert (1, 2, 1) == (count.about()[LINKS], count.about()[COPIES], count.about()[OTHER])


def test_all_that_is_discovered_is_written_down_with_who_did() -> None:
    count = small_count()
    found = {link for _, links in count.discovered for link in links}
    assert 150 == count.pages == len(count.discovered)
    # All but the seeds, to which nothing need lead.
    assert count.pages - message_counts.SEEDS <= len(found) <= count.pages
    # Of four peers and ten sites one may own none.
    finders = {name for name, _ in count.discovered}
    assert finders <= set(count.peers)
    assert len(finders) >= 3
    assert count.links == sum(len(links) for _, links in count.discovered) > 150


def test_peers_send_less_than_the_paper_would() -> None:
    count = small_count()
    paper = by_the_paper(count.peers, count.discovered, [])
    assert 0 < count.requests["Offer"] < paper.requests / 4
    assert count.requests["Offer"] <= count.offered < paper.requests / 3
    # Two backups are told of each URL twice. Of a run of finished pages one is named.
    assert 0.9 * 4 * count.pages <= count.copied + count.in_runs
    assert count.copied <= 0.85 * 4 * count.pages


def test_the_result_is_told_with_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    count = small_count()
    asked: list[tuple[int, int, str]] = []

    def crawled(seed: int, peers: int, balance: str = "off") -> Count:
        asked.append((seed, peers, balance))
        return replace(count, copied=count.copied * seed)

    monkeypatch.setattr(experiment, "crawl", crawled)
    shares: list[float] = []
    result = messages(1, shares.append)
    assert [
        (seed, peers, balance)
        for peers, balance in [
            *((peers, "off") for peers in experiment.SIZES),
            (experiment.PEERS, "level"),
            (experiment.PEERS, "drain"),
        ]
        for seed in (1, 2, 3)
    ] == asked
    assert sorted(shares) == shares
    assert shares[-1] == 1.0
    assert [1.0, 1.0] == [one.ours for one in result.findings[-2:]]
    assert {len(result.tables[0].heading)} == {len(row) for row in result.tables[0].rows}
    papers = [by_the_paper(count.peers, count.discovered, message_counts.web_of(seed).seeds) for seed in (1, 2, 3)]
    assert _mean([count.requests["Offer"] / paper.requests for paper in papers]) == result.findings[0].ours
    assert _mean([count.offered / paper.requests for paper in papers]) == result.findings[1].ours
    urls = [urls_with_copies(replace(count, copied=count.copied * seed), paper) for seed, paper in enumerate(papers, 1)]
    assert [_mean(urls)] == [one.ours for one in result.findings if one.what == "the same with copies, URLs, 8 peers"]
    assert ["URLs, without shedding", *urls] == result.tables[2].rows[1]
    assert [0.1, pytest.approx(1 / 3)] == [one.most for one in result.findings[:2]]


def test_the_short_form_has_the_aims_of_eight_peers_that_keep_all(monkeypatch: pytest.MonkeyPatch) -> None:
    crawls: list[tuple[int, str]] = []

    def crawled(seed: int, peers: int, balance: str = "off") -> Count:
        crawls.append((peers, balance))
        return replace(small_count(), copied=50 * small_count().copied)

    monkeypatch.setattr(experiment, "crawl", crawled)
    result = messages(1, lambda share: None, is_short=True)
    assert [(experiment.PEERS, "off")] * experiment.WORLDS == crawls
    assert 4 == len(result.findings)
    assert all(one.most is not None for one in result.findings)
    assert [result.findings[-1]] == [one for one in result.findings if one.reached is False], "too many URLs copied"
    assert {len(table.heading) for table in result.tables} >= {2}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
