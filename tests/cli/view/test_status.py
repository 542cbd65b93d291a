"""Test the sentences and the JSON in which `kadcrawl status` shows a swarm."""

import json
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_row

from kadcrawl.cli.view.live.estimate import Bar, bar_of
from kadcrawl.cli.view.status import show
from kadcrawl.cli.view.summary import add_up, figures_line
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow, RefusingSite, Status, SwarmStatus, Tally
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.crawl_status import CrawlStatus
from kadcrawl.settings.job import Job
from kadcrawl.settings.page_rules import Field, RecordRule

TALLY = Tally(2, bytes(16), 0, 0, 0)
PLAIN = Job(seeds=("http://a.example/",))
RECORDS = replace(PLAIN, records=(RecordRule(pattern=".", fields=(Field("n", "css:h1"),)),))


def rows_with_records(*records: int, errors: int = 0) -> list[PeerRow]:
    return [
        PeerRow(
            Contact(id_bytes(number), "10.0.0.1", number),
            PeerState.IDLE,
            0,
            0,
            1,
            PeerCounters(pages=9, records=count, record_errors=errors),
            0,
            0,
        )
        for number, count in enumerate(records, 1)
    ]


def shown_status(job: Job, capsys: pytest.CaptureFixture[str], *, as_json: bool) -> str:
    show(Status(job, SwarmStatus(TALLY, rows_with_records(3, 4)), ended=False, paused=False), as_json)
    return capsys.readouterr().out


def test_records_are_counted_if_the_job_has_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\n7 records\n" in shown_status(RECORDS, capsys, as_json=False)
    figures: dict[str, Any] = json.loads(shown_status(RECORDS, capsys, as_json=True))
    assert (7, [3, 4]) == (figures["records"], [peer["records"] for peer in figures["peers"]])
    assert 0 == add_up(rows_with_records(0), 1.0, RECORDS).as_json()["records"], "none so far"


def test_pages_whose_records_failed_are_counted_over_all_peers(capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_with_records(3, 4, errors=2)
    answer = Status(RECORDS, SwarmStatus(TALLY, rows), ended=False, paused=False)
    show(answer, as_json=False)
    assert "\n7 records, 4 record_errors\n" in capsys.readouterr().out
    show(answer, as_json=True)
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (4, [2, 2]) == (figures["record_errors"], [peer["record_errors"] for peer in figures["peers"]])
    assert 4 == add_up(rows, 1.0, RECORDS).as_json()["record_errors"]
    assert 0 == add_up(rows_with_records(3), 1.0, RECORDS).as_json()["record_errors"], "none failed"


def test_the_sites_that_refuse_are_named_with_the_reason_and_the_wait(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = rows_with_records(0, 0)
    sites = [RefusingSite(f"{name}.example", 429, 10, 60.0 * number) for number, name in enumerate("abcde", 1)]
    rows = [replace_row(one, refusing=sites, refusing_count=7)]
    rows.append(replace_row(two, refusing=[RefusingSite("f.example", 503, 1, 0.4)], refusing_count=1))
    answer = Status(PLAIN, SwarmStatus(TALLY, rows), ended=False, paused=False)
    show(answer, as_json=False)
    told = capsys.readouterr().out.splitlines()
    assert (
        "8 sites refuse requests: e.example (429, 10 in a row, asked again in 5 min), "
        "d.example (429, 10 in a row, asked again in 4 min), c.example (429, 10 in a row, asked again in 3 min), "
        "b.example (429, 10 in a row, asked again in 2 min), a.example (429, 10 in a row, asked again in 1 min), "
        "and 3 more"
    ) in told
    assert "after 10 refusals in a row (--refusals) the URLs of a site fail until it is asked again" in told
    show(answer, as_json=True)
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (8, 6) == (figures["refusing_count"], len(figures["refusing"]))
    assert {"site": "e.example", "status": 429, "refusals": 10, "wait_s": 300} == figures["refusing"][0]
    rows = [replace_row(two, refusing=[RefusingSite("f.example", 503, 1, 0.4)], refusing_count=1)]
    show(Status(PLAIN, SwarmStatus(TALLY, rows), ended=False, paused=False), as_json=False)
    told = capsys.readouterr().out.splitlines()
    assert "1 site refuses requests: f.example (503, 1 in a row, asked again now)" in told
    assert not [line for line in told if "--refusals" in line]


def test_of_records_nothing_is_said_if_the_job_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "record" not in shown_status(PLAIN, capsys, as_json=False)
    assert "record" not in shown_status(PLAIN, capsys, as_json=True)
    assert not [name for name in add_up(rows_with_records(3), 1.0, PLAIN).as_json() if name.startswith("record")]


def test_those_that_left_are_in_the_totals_and_not_among_the_peers(capsys: pytest.CaptureFixture[str]) -> None:
    here, gone = rows_with_records(0, 0)
    left = PeerRow(gone.contact, PeerState.LEFT, 0, 0, 0, gone.counters, 0, 0)
    answer = Status(PLAIN, SwarmStatus(TALLY, [here, left]), ended=False, paused=False)
    show(answer, as_json=True)
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (18, ["idle"], ["left"]) == (
        figures["pages"],
        [peer["state"] for peer in figures["peers"]],
        [peer["state"] for peer in figures["left"]],
    )
    show(answer, as_json=False)
    said = capsys.readouterr().out
    assert said.startswith("crawling: 18 pages, ")
    assert "the totals count 1 that left; what a peer did that died is missing until it is back" in said


def test_no_more_urls_are_done_or_pending_than_were_found(capsys: pytest.CaptureFixture[str]) -> None:
    """The peer that found the URLs has no row after its crash, and others finish its copies."""
    heir, empty = (
        replace_row(row, counters=PeerCounters(pages=41, urls=urls, done=41), pending=pending)
        for row, urls, pending in zip(rows_with_records(0, 0), (0, 70), (978, 0), strict=True)
    )
    assert "41 of 1019 URLs done" in figures_line(add_up([heir], None, PLAIN))
    assert "82 of 1060 URLs done" in figures_line(add_up([heir, empty], None, PLAIN))
    assert Bar(41, 1019, is_budget=False) == bar_of([heir], None)
    assert 1019 == CrawlStatus.of(SwarmStatus(TALLY, [heir]), [], paused=False, ended=False).urls
    show(Status(PLAIN, SwarmStatus(TALLY, [heir]), ended=False, paused=False), as_json=True)
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (1019, 41, 978) == (figures["urls_found"], figures["urls_done"], figures["pending"])


def test_the_last_pending_urls_of_a_dead_peer_are_no_urls_found_by_others() -> None:
    alive, dead = (
        replace_row(row, counters=PeerCounters(pages=30, urls=30, done=30)) for row in rows_with_records(0, 0)
    )
    rows = [alive, replace_row(dead, state=PeerState.DIED, pending=7)]
    assert 60 == add_up(rows, 1.0, PLAIN).urls_found
