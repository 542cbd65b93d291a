"""Test when a page is visited again, by which header fields, and when no more."""

from dataclasses import replace

import pytest

from kadcrawl.crawl.fetch.poison_pages import KILLED_PEER
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.recrawl.due_cells import DueCells
from kadcrawl.crawl.recrawl.policy import Recrawl, sanitized
from kadcrawl.keys import Cell, Key
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_rules import RECRAWL_MOST_S, SiteRule
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit
from tests.support.sites.fetched_page import PAGE

DAY_S = 86_400.0
NOW = 1e9
ENTRY = FrontierEntry(2, 7, Key(bytes(20)), "a.example", "http://a.example/x", 0, 0, 0.0)
TAGGED = replace(PAGE, headers=((b"ETag", b'"one"'), (b"Last-Modified", b"Sat, 21 Nov 2026 10:00:00 GMT")))
ONCE = Recrawl(Job(recrawl_after_s=DAY_S))
ADAPTS = Recrawl(Job(recrawl_after_s=DAY_S, recrawl_adaptive=True))


def first(rules: Recrawl = ONCE, fetched: FetchResult = TAGGED) -> Visit:
    return rules.next_visit(ENTRY, None, fetched, "sha1:ONE", "2026-11-21T10:00:00Z", NOW)


def again(rules: Recrawl, last: Visit, fetched: FetchResult, digest: str = "sha1:ONE") -> Visit:
    return rules.next_visit(ENTRY, last, fetched, digest, "2026-11-22T10:00:00Z", NOW + DAY_S)


def test_a_page_has_the_period_of_its_sites_rule() -> None:
    own = SiteRule(match=("a.example",), recrawl_after_s=100.0)
    assert NOW + 100 == first(Recrawl(Job(recrawl_after_s=DAY_S, sites=(own,)))).due
    adapts = Recrawl(Job(recrawl_after_s=DAY_S, recrawl_adaptive=True, sites=(own,)))
    periods = [first(adapts).period_s]
    visit = first(adapts)
    for _ in range(20):
        visit = again(adapts, visit, TAGGED)
    assert [100.0, 1000.0] == [*periods, visit.period_s]
    assert NOW + DAY_S == first(Recrawl(Job(recrawl_after_s=DAY_S, sites=(replace(own, match=("b.example",)),)))).due


@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_a_page_of_a_site_that_is_fetched_once_is_never_due(status: int) -> None:
    never = Recrawl(Job(recrawl_after_s=DAY_S, sites=(SiteRule(match=("a.example",), recrawl_after_s=0.0),)))
    assert first(never, replace(TAGGED, status=status)).due is None
    assert never.unasked(ENTRY, None, "robots", NOW) is None


def test_a_page_is_due_after_the_period_and_its_request_is_conditional() -> None:
    visit = first()
    assert NOW + DAY_S == visit.due
    assert ("sha1:ONE", "2026-11-21T10:00:00Z") == (visit.digest, visit.captured)
    assert [("If-None-Match", '"one"'), ("If-Modified-Since", "Sat, 21 Nov 2026 10:00:00 GMT")] == [
        *ONCE.validators(visit)
    ]


@pytest.mark.parametrize(
    ("etag", "kept"),
    [
        (b'W/"weak"', 'W/"weak"'),
        (b'""', '""'),
        (b"bare", ""),
        (b'"two" words', ""),
        (b'"a"b"', ""),
        ('"é"'.encode(), ""),
        (b'"' + b"x" * 300 + b'"', ""),
    ],
)
def test_only_an_entity_tag_that_is_one_is_sent_back(etag: bytes, kept: str) -> None:
    assert kept == first(fetched=replace(PAGE, headers=((b"ETag", etag),))).etag


@pytest.mark.parametrize(
    ("date", "kept"),
    [
        (b"Sat, 21 Nov 2026 10:00:00 GMT", "Sat, 21 Nov 2026 10:00:00 GMT"),
        (b"yesterday", ""),
        (b"0", ""),
        (b"Sat, 99 Nov 2026 10:00:00 GMT", ""),
        (b"Sat, 21 Nov 2026 10:00:00 GMT" + b" " * 300 + b"x", ""),
    ],
)
def test_only_a_date_that_is_one_is_sent_back(date: bytes, kept: str) -> None:
    assert kept == first(fetched=replace(PAGE, headers=((b"Last-Modified", date),))).last_modified


def test_nothing_is_asked_for_conditionally_that_was_never_received_whole() -> None:
    cut = first(fetched=replace(TAGGED, error=FetchError.BODY_TOO_LARGE))
    assert () == ONCE.validators(cut)
    assert cut.due == NOW + DAY_S
    assert not ONCE.is_unchanged(cut, replace(PAGE, status=304), "")


def test_a_page_is_unchanged_if_its_server_says_so_or_its_body_is_the_same() -> None:
    visit = first()
    assert ONCE.is_unchanged(visit, replace(PAGE, status=304), "sha1:EMPTY")
    assert ONCE.is_unchanged(visit, PAGE, "sha1:ONE")
    assert not ONCE.is_unchanged(visit, PAGE, "sha1:TWO")
    assert not ONCE.is_unchanged(visit, replace(PAGE, status=500), "sha1:ONE")
    assert not ONCE.is_unchanged(visit, replace(PAGE, error=FetchError.TRUNCATED), "sha1:ONE")


def test_what_was_unchanged_still_refers_to_where_it_was_captured() -> None:
    kept = again(ONCE, first(), replace(PAGE, status=304, headers=()), "")
    assert first()._replace(due=NOW + 2 * DAY_S) == kept
    retagged = replace(TAGGED, headers=((b"ETag", b'"two"'),))
    assert ('"two"', "") == again(ONCE, first(), retagged)[6:8], "the same bytes from a server set up anew"
    assert '"two"' == again(ONCE, first(), replace(retagged, status=304)).etag
    changed = again(ONCE, first(), PAGE, "sha1:TWO")
    assert ("sha1:TWO", "2026-11-22T10:00:00Z", "") == (changed.digest, changed.captured, changed.etag)


def test_the_period_adapts_within_its_bounds() -> None:
    same = changed = first(ADAPTS)
    for visits in range(1, 20):
        same = again(ADAPTS, same, replace(PAGE, status=304))
        changed = again(ADAPTS, changed, PAGE, f"sha1:{visits}")
        if visits == 1:
            assert (1.4 * DAY_S, 0.8 * DAY_S) == (same.period_s, changed.period_s)
    assert (10 * DAY_S, DAY_S / 10) == (same.period_s, changed.period_s)
    assert NOW + DAY_S + same.period_s == same.due


def test_what_was_not_asked_for_by_a_condition_has_not_answered_it() -> None:
    bare = first(fetched=replace(PAGE, headers=()))
    assert bare.digest
    assert not ONCE.validators(bare)
    assert not ONCE.is_unchanged(bare, replace(PAGE, status=304), "")
    assert "" == again(ONCE, bare, replace(PAGE, status=304), "").digest


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({"etag": '"a"\r\nEvil: 1'}, {"etag": ""}),
        ({"last_modified": "Sat, 21 Nov 2026 10:00:00 GMT\r\nEvil: 1"}, {"last_modified": ""}),
        ({"captured": "2026-11-21T10:00:00Z\r\nWARC-Evil: 1"}, {"captured": "", "digest": ""}),
        ({"digest": "sha1:" + "A" * 31 + "\n"}, {"captured": "", "digest": ""}),
        ({"period_s": 0.0}, {"period_s": 1.0}),
        ({"period_s": 2.0**33}, {"period_s": RECRAWL_MOST_S}),
        ({"gone": 1_000_000}, {"gone": 4}),
        ({"answer": '["text/html",1,"sha1:A","now","me","/etc/passwd",0]'}, {"answer": ""}),
    ],
)
def test_of_what_a_peer_tells_of_a_visit_only_what_can_be_is_believed(
    told: dict[str, object], kept: dict[str, object]
) -> None:
    good = first()._replace(digest="sha1:" + "A" * 32)
    assert good == sanitized(good)
    assert good._replace(**kept) == sanitized(good._replace(**told))  # type: ignore[arg-type]


def test_a_depth_that_became_less_stays_less() -> None:
    assert 1 == ONCE.next_visit(ENTRY._replace(depth=1), first(), PAGE, "sha1:TWO", "", NOW).depth


def test_without_adapting_the_jobs_period_beats_that_of_an_earlier_run() -> None:
    adapted = again(ADAPTS, first(ADAPTS), replace(PAGE, status=304))
    assert DAY_S == again(ONCE, adapted, replace(PAGE, status=304)).period_s


@pytest.mark.parametrize(("status", "days"), [(404, [2, 4, 8, None]), (410, [2, None])])
def test_a_page_that_is_gone_is_asked_for_ever_later_and_then_no_more(status: int, days: list[int | None]) -> None:
    visit, waits = first(), []
    while visit.due is not None:
        visit = again(ONCE, visit, replace(PAGE, status=status))
        waits.append(None if visit.due is None else (visit.due - NOW - DAY_S) / DAY_S)
    assert days == waits
    assert len(days) == visit.gone


def test_a_page_that_comes_back_starts_anew() -> None:
    gone = again(ONCE, first(), replace(PAGE, status=404))
    back = again(ONCE, gone, PAGE, "sha1:ONE")
    assert (0, NOW + 2 * DAY_S, DAY_S) == (back.gone, back.due, back.period_s)


@pytest.mark.parametrize("failed", [replace(PAGE, status=503), replace(PAGE, status=None, error=FetchError.DNS)])
def test_another_failure_changes_nothing_but_the_date(failed: FetchResult) -> None:
    assert first()._replace(due=NOW + 2 * DAY_S) == again(ADAPTS, first(), failed)


def test_a_redirect_is_looked_at_again_without_conditions() -> None:
    moved = again(ONCE, first(), replace(TAGGED, status=301), "sha1:X")
    assert (NOW + 2 * DAY_S, ()) == (moved.due, ONCE.validators(moved))


def test_a_robots_denial_may_end_later_and_an_exclusion_by_the_job_never() -> None:
    forbidden = ONCE.unasked(ENTRY, None, "robots", NOW)
    assert forbidden is not None
    assert NOW + DAY_S == forbidden.due
    for why in ("excluded", KILLED_PEER):
        assert ONCE.unasked(ENTRY, None, why, NOW) is None
        left_out = ONCE.unasked(ENTRY, first(), why, NOW)
        assert left_out is not None
        assert left_out.due is None


@pytest.mark.parametrize("why", ["site_refused", "address_refused", "login_failed", "robots_unreachable"])
def test_a_page_that_was_not_asked_for_by_a_passing_reason_is_due_again(why: str) -> None:
    for last in (None, first()):
        left_out = ONCE.unasked(ENTRY, last, why, NOW)
        assert left_out is not None
        assert left_out.due == NOW + DAY_S
    assert first() == left_out


def test_open_cells_are_given_by_their_next_visit() -> None:
    visits: dict[Cell, float | None] = {Cell(1): 30.0, Cell(2): 10.0, Cell(3): None}
    due = DueCells(visits.__getitem__)
    for cell in visits:
        due.look(cell)
    assert (10.0, Cell(2)) == due.first()
    visits[Cell(2)], visits[Cell(3)] = 40.0, 20.0
    due.look(Cell(2))
    due.look(Cell(3))
    assert (20.0, Cell(3)) == due.first()
    due.drop(Cell(3))
    assert (30.0, Cell(1)) == due.first()
    visits[Cell(1)] = None
    due.look(Cell(1))
    assert (40.0, Cell(2)) == due.first()
    due.drop(Cell(2))
    assert due.first() is None


def visited_elsewhere(
    last: Visit | None, visit: Visit | None, failed: str | None, rules: Recrawl = ADAPTS
) -> Visit | None:
    """Return the owner's visit after a borrower reported `visit`, with a period and a time that are made up."""
    told = None if visit is None else visit._replace(period_s=1.0, due=None if visit.due is None else 1.0)
    return rules.reported(ENTRY, last, told, failed, NOW + DAY_S)


UNCHANGED_ANSWER = replace(TAGGED, status=304, content=b"")


@pytest.mark.parametrize("rules", [ONCE, ADAPTS], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("has_last", [False, True])
@pytest.mark.parametrize(
    ("fetched", "digest"),
    [
        (TAGGED, "sha1:ONE"),
        (TAGGED, "sha1:TWO"),
        (UNCHANGED_ANSWER, ""),
        (replace(TAGGED, status=302), ""),
        (replace(TAGGED, status=404), ""),
        (replace(TAGGED, status=410), ""),
        (replace(TAGGED, status=503), ""),
        (replace(PAGE, status=None, error=FetchError.TIMEOUT), ""),
    ],
    ids=["same", "changed", "304", "redirect", "404", "410", "503", "time-out"],
)
def test_of_a_borrowers_visit_the_owner_makes_the_same_as_of_its_own(
    rules: Recrawl, has_last: bool, fetched: FetchResult, digest: str
) -> None:
    last = first(rules) if has_last else None
    if last is None and fetched.status == 304:
        pytest.skip("without a visit no request is conditional")
    own = (
        again(rules, last, fetched, digest)
        if last
        else rules.next_visit(ENTRY, None, fetched, digest, "2026-11-22T10:00:00Z", NOW + DAY_S)
    )
    failed = fetched.why_failed
    assert own == visited_elsewhere(last, own, failed, rules)


def test_of_a_page_that_a_borrower_left_out_the_owner_keeps_what_is_known() -> None:
    last = first(ADAPTS)
    for why in ("robots", "site_refused", "exclude", KILLED_PEER):
        own = ADAPTS.unasked(ENTRY, last, why, NOW + DAY_S)
        assert own == visited_elsewhere(last, own, why)
        assert ADAPTS.unasked(ENTRY, None, why, NOW + DAY_S) == visited_elsewhere(None, None, why)


def test_a_borrower_that_tells_nothing_of_a_visit_ends_no_visits() -> None:
    last = first(ADAPTS)
    kept = visited_elsewhere(last, None, None)
    assert last._replace(due=NOW + DAY_S + last.period_s) == kept


def test_a_page_that_is_gone_ends_when_the_owner_has_counted_so_whatever_a_borrower_says() -> None:
    visit: Visit | None = first(ADAPTS)
    for _ in range(3):
        assert visit is not None
        assert visit.due is not None
        visit = visited_elsewhere(visit, visit._replace(gone=1_000_000, due=None), "http_404")
    assert visit is not None
    assert (3, None) != (visit.gone, visit.due)
    visit = visited_elsewhere(visit, visit, "http_404")
    assert visit is not None
    assert (4, None) == (visit.gone, visit.due)
