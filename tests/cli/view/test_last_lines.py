"""The last lines of a crawl name the reasons of failures with examples, the results, and the next commands."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.cli.targets import result_directories
from kadcrawl.cli.view.failed_examples import by_counted_reason, examples_at_the_ends
from kadcrawl.cli.view.last_lines import REASONS_SHOWN_MAX, CrawlEnd, failure_lines, last_lines
from kadcrawl.cli.view.limit_end import ReachedLimit, limit_that_ended, unfinished_summary, with_pages_lost
from kadcrawl.cli.view.result_files import shown_size
from kadcrawl.cli.view.summary import PageLogs, add_up
from kadcrawl.crawl.fetch.poison_pages import KILLED_PEER
from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.output.counters import COUNTED_ALONE
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.failure_reasons import explained, is_reason
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_row import CrawlLimit
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.settings.job import Job
from scripts.docs.failures import FAILURES
from tests.support.cases import cases

NEVER_COUNTED = {
    FetchError.NO_SOCKET,
    FetchError.NOT_SENT,
    FetchError.NO_PROXY,
    FetchError.VERIFYING,
    FetchError.PROXY,
    FetchError.UNSURE,
    FetchError.NO_OPINION,
}
OF_THE_CRAWL = (
    "robots",
    "robots_unreachable",
    KILLED_PEER,
    "internal_error",
    "bad_sitemap",
    "bad_redirect",
    "redirect_limit",
)
LINES_MAX = 15


def page_log(directory: Path, *failed: tuple[str, str | None]) -> Path:
    """Write a page log of these (URL, reason) pairs, and return its directory."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [{"url": url} | ({"failed": reason} if reason else {}) for url, reason in failed]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (directory / "pages.jsonl").write_text(text)
    return directory


@cases("name", [*sorted(set(FetchError) - NEVER_COUNTED), *OF_THE_CRAWL, *sorted(COUNTED_ALONE), "http_4xx"])
def test_every_reason_has_a_sentence_of_its_own(name: str) -> None:
    assert "pages.jsonl has the details" not in str(explained(name))


@pytest.mark.parametrize("name", sorted(FAILURES))
def test_every_reason_of_a_page_line_has_words_and_can_be_named_in_an_order(name: str) -> None:
    assert is_reason(name)
    assert "pages.jsonl has the details" not in str(explained(name))


def test_a_reason_of_another_release_is_no_error() -> None:
    assert "pages.jsonl has the details" == str(explained("from_the_future"))


@pytest.mark.parametrize(("name", "says"), [("http_5xx", "the site has an error"), ("http_odd", "unknown status")])
def test_statuses_that_are_counted_together_are_explained(name: str, says: str) -> None:
    assert says in str(explained(name))


def test_the_most_frequent_reasons_come_first_with_an_example_each() -> None:
    failed = {"dns": 7, "http_404": 120, "tls": 1, "robots": 3, "connect": 2, "idle": 1, "timeout": 1}
    lines = list(failure_lines(failed, {"http_404": "http://a/x", "dns": "http://b/"}))
    assert [
        "failed URLs:",
        "  120 http_404 (there is no such page): http://a/x",
        "    7 dns (the host's name has no address, or no name server answers): http://b/",
        "    3 robots (robots.txt forbids it)",
        "    2 connect (the host refuses connections, or cannot be reached in time)",
        "    1 idle (the site stopped in the middle of its answer)",
        "    2 for 2 other reasons",
    ] == lines


def test_nothing_is_said_of_what_is_not_there(tmp_path: Path) -> None:
    assert [] == list(last_lines(CrawlEnd(data=tmp_path, peers=[tmp_path], failed={}, examples={})))


def test_an_example_steers_no_terminal() -> None:
    (_, line) = failure_lines({"dns": 1}, {"dns": "http://a/\x1b[2J\n"})
    assert line.isprintable()
    assert line.endswith("http://a/?[2J?")


def test_the_last_lines_name_the_results_and_commands_that_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = Path("a b")
    peers = [data / "peer-1", data / "peer-2"]
    for peer in peers:
        page_log(peer, ("http://a/", "dns"))
        (peer / "warc").mkdir()
        (peer / "warc" / "x-00001.warc.gz").write_bytes(b"0" * 600_000)
    end = CrawlEnd(
        data=data,
        peers=peers,
        failed={"dns": 2},
        examples={"dns": "http://a/'"},
        job_file=Path("kadcrawl.toml"),
        limit=ReachedLimit("--max-pages", "10", "20"),
    )
    assert [
        "failed URLs:",
        "  2 dns (the host's name has no address, or no name server answers): http://a/'",
        "results:",
        "  'a b'/peer-*/pages.jsonl     2 files, 70 bytes: one line per URL",
        "  'a b'/peer-*/warc/*.warc.gz  2 files, 1.2 MB: requests and responses",
        "next:",
        "  the same command with --max-pages 20          goes on with the URLs that are left",
        "  grep -h '\"failed\":' 'a b'/peer-*/pages.jsonl  shows every failure",
        "  kadcrawl retry --data 'a b'                   lets the crawl fetch them again",
        "  kadcrawl doctor 'http://a/'\"'\"''              tries that site from this machine",
        "  kadcrawl check kadcrawl.toml URL              says why a URL is in the crawl, or is not",
        "  kadcrawl export 'a b' --to sqlite:results.db  brings the results into a database",
    ] == list(last_lines(end))
    by_order = replace(end, limit=ReachedLimit("--max-pages", "10", "20", is_ordered=True))
    line = "  kadcrawl set max-pages 20 --data 'a b'        lets the same command go on with the URLs that are left"
    assert line in list(last_lines(by_order))


def test_results_that_went_to_a_sink_need_no_export(tmp_path: Path) -> None:
    peer = page_log(tmp_path, ("http://a/", None))
    sinks = ("sqlite:/a/b.db", "mongodb://me:secret@db.example/crawl", "warc:/a/warc")
    end = CrawlEnd(data=peer, peers=[peer], failed={}, examples={}, sinks=sinks)
    lines = list(last_lines(end))
    assert not any("next" in line or "export" in line for line in lines)
    assert [
        ["sqlite:/a/b.db", "sink of pages and records"],
        ["mongodb://***@db.example/crawl", "sink of pages and records"],
        ["warc:/a/warc", "sink of WARC files"],
    ] == [line.strip().split(maxsplit=1) for line in lines[2:]]


def test_results_of_leaves_and_of_a_peer_at_the_directory_itself_are_named(tmp_path: Path) -> None:
    names = ("peer-1", "peer-2", "leaf")
    for name in names:
        page_log(tmp_path / name, ("http://a/", None))
    (tmp_path / "notes").mkdir()
    end = CrawlEnd(data=tmp_path, peers=result_directories(tmp_path), failed={"dns": 1}, examples={})
    (line,) = (line for line in last_lines(end) if "one line per URL" in line)
    assert line.startswith(f"  {tmp_path}/*/pages.jsonl  3 files, ")
    page_log(tmp_path, ("http://b/", None))
    lines = [*last_lines(replace(end, peers=result_directories(tmp_path)))]
    assert [f"{tmp_path}/pages.jsonl", f"{tmp_path}/*/pages.jsonl"] == [
        line.split()[0] for line in lines if "one line per URL" in line
    ]
    assert any(f"{tmp_path}/pages.jsonl {tmp_path}/*/pages.jsonl" in line for line in lines)


def test_seeds_that_left_the_scope_come_first_with_advice(tmp_path: Path) -> None:
    lines = [
        {"url": f"http://a/{number}", "failed": "seed_left_scope", "detail": "it leads to http://b/\x1b, so give that"}
        for number in range(9)
    ]
    peer = page_log(tmp_path / "peer-1", ("http://a/", None))
    with (peer / "pages.jsonl").open("a") as log:
        log.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    end = CrawlEnd(data=tmp_path, peers=[tmp_path / "none", peer], failed={"seed_left_scope": 9}, examples={})
    shown = list(last_lines(end))
    advice = "is not crawled: it leads to http://b/?, so give that"
    assert [f"the seed http://a/{number} {advice}" for number in range(5)] == shown[:5]
    assert ["failed URLs:", "  9 seed_left_scope (a seed redirects to a URL that is not crawled)"] == shown[5:7]


def test_the_last_lines_are_few(tmp_path: Path) -> None:
    peer = page_log(tmp_path, ("http://a/", "dns"))
    (peer / "records.jsonl").write_text("{}\n")
    failed = {f"http_{status}": 1 for status in range(400, 430)}
    end = CrawlEnd(data=peer, peers=[peer], failed=failed, examples={}, job_file=Path("a"))
    assert 6 < len(list(last_lines(end))) <= LINES_MAX
    assert REASONS_SHOWN_MAX == sum(" http_4" in line for line in last_lines(end))


def test_page_logs_give_an_example_of_each_reason_by_its_counted_name(tmp_path: Path) -> None:
    one = page_log(tmp_path / "1", ("http://a/1", "http_418"), ("http://a/2", None), ("http://a/3", "http_477"))
    two = page_log(tmp_path / "2", ("http://b/1", "dns"), ("http://b/2", "dns"))
    expected = {"http_418": "http://a/1", "http_4xx": "http://a/3", "dns": "http://b/2"}
    assert expected == PageLogs([one, two]).failed_examples
    assert expected == by_counted_reason(examples_at_the_ends([one, two]))


def test_only_the_ends_of_large_logs_are_read(tmp_path: Path) -> None:
    first = ("http://a/first", "dns")
    peer = page_log(tmp_path, first, *[(f"http://a/{number}", None) for number in range(1000)], ("http://a/z", "tls"))
    assert {"tls": "http://a/z"} == examples_at_the_ends([peer], 1000)
    assert {"tls": "http://a/z", "dns": first[0]} == examples_at_the_ends([peer], 1_000_000)


def test_unreadable_lines_and_missing_logs_cost_no_example(tmp_path: Path) -> None:
    peer = page_log(tmp_path / "1", ("http://a/", "dns"))
    with (peer / "pages.jsonl").open("ab") as log:
        log.write(b'{"url":7,"failed":"tls"}\n{"url":"\xff","failed":"tls"}\n{"url":"http://a/cut","failed":"idle"}')
    assert {"dns": "http://a/"} == examples_at_the_ends([tmp_path / "missing", peer])


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (99, "99 bytes"), (100, "0.1 kB"), (1.5e6, "1.5 MB"), (2e9, "2.0 GB")]
)
def test_a_size_is_shown_in_a_unit_that_a_person_reads(count: float, text: str) -> None:
    assert text == shown_size(int(count))


MAX_PAGES = Job(seeds=("http://a.example/",), max_pages=10)


def row_at_the_limit(
    number: int, pages: int, *, granted: int, pending: int = 1, limit: CrawlLimit = "pages"
) -> PeerRow:
    """Return the row of a peer that has begun all of its grant."""
    counters = PeerCounters(pages=pages, urls=pages + pending, done=pages)
    contact = Contact(id_bytes(number), "10.0.0.1", number)
    return PeerRow(contact, PeerState.IDLE, pending, 0, 1, counters, 0, granted, limit=limit)


def told_ends(rows: Sequence[PeerRow], job: Job = MAX_PAGES) -> list[str]:
    summary = with_pages_lost(add_up(rows, 1.0, job), rows, job)
    return [*unfinished_summary(summary, job)]


def test_a_limit_of_pages_that_lacks_the_grants_of_crashed_peers_says_so_and_the_same_command_goes_on(
    tmp_path: Path,
) -> None:
    rows = [row_at_the_limit(1, 4, granted=4), row_at_the_limit(2, 3, granted=3, pending=0, limit="")]
    assert ["--max-pages 10 ended it 3 pages early, granted to peers that crashed: 1 URL is left"] == told_ends(rows)
    limit = limit_that_ended(with_pages_lost(add_up(rows, 1.0, MAX_PAGES), rows, MAX_PAGES), MAX_PAGES)
    assert limit is not None
    lines = [*last_lines(CrawlEnd(data=tmp_path, peers=[tmp_path], failed={}, examples={}, limit=limit))]
    assert ["next:", "  the same command  goes on with the URLs that are left"] == lines


def test_a_limit_of_pages_that_urls_without_an_answer_used_up_is_told() -> None:
    rows = [row_at_the_limit(1, 4, granted=6), row_at_the_limit(2, 4, granted=4)]
    assert ["--max-pages 10 ended it: 2 URLs are left"] == told_ends(rows)


def test_a_crawl_that_crashed_peers_did_not_keep_from_its_end_lacks_no_pages() -> None:
    rows = [row_at_the_limit(1, 4, granted=4, pending=0, limit="")]
    assert [] == told_ends(rows)
