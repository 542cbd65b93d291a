"""Where an answer leads: session IDs are gone from links, and what limits leave out is counted."""

from collections.abc import Mapping
from datetime import UTC, datetime

from kadcrawl.config import Job, Limits
from kadcrawl.crawl.extract import LinkExtractor
from kadcrawl.crawl.fetched import Fetched
from kadcrawl.crawl.found import Finder, Found
from kadcrawl.crawl.scope import Scope
from kadcrawl.history.entry import Entry
from kadcrawl.keys import Key

SITE = "http://a.test"
ID = ";jsessionid=0123456789abcdef0123456789abcdef"
OTHER_ID = ";jsessionid=00000000000000000000000000000000"


def found(job: Job, path: str, *links: str, status: int = 200, headers: Mapping[bytes, bytes] | None = None) -> Found:
    """Return what a page with these links leads to."""
    finder = Finder(LinkExtractor(Limits(links_per_page_max=5)), Scope(job), lambda urls, depth: list(urls), 10)
    body = b"".join(b'<a href="%s">x</a>' % link.encode() for link in links)
    fetched = Fetched(
        url=SITE + path,
        status=status,
        failure=None,
        detail="",
        request_head=b"",
        http_version="1.1",
        reason="",
        headers=tuple((headers or {}).items()),
        body=body,
        content=body,
        content_type="text/html",
        mime="text/html",
        retry_after_s=None,
        address="",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=0.0,
        first_byte_at=0.0,
    )
    return finder.found(Entry(1, 1, Key(bytes(20)), "a.test", SITE + path, 0, 0, 0.0), fetched)


def redirected(job: Job, path: str, target: str) -> Found:
    return found(job, path, status=302, headers={b"Location": target.encode()})


JOB = Job(seeds=(f"{SITE}/",))
KEEPING = Job(seeds=(f"{SITE}/",), session_ids="keep")


def onward(found: Found) -> list[str]:
    return [link.url.removeprefix(SITE) for link in found.onward]


def test_links_go_on_without_their_session_ids_and_are_told_as_they_were() -> None:
    page = found(JOB, "/", f"/a{ID}", "/b")
    assert (["/a", "/b"], {"session_id": 1}) == (onward(page), page.left_out)
    assert (f"{SITE}/a{ID}", f"{SITE}/b") == page.links


def test_session_ids_stay_where_the_job_says_so() -> None:
    page = found(KEEPING, "/", f"/a{ID}")
    assert ([f"/a{ID}"], {}) == (onward(page), page.left_out)


def test_a_page_that_is_shown_only_with_a_session_is_followed_once() -> None:
    to_itself = redirected(JOB, "/a", f"/a{ID}")
    assert ([f"/a{ID}"], {}) == (onward(to_itself), to_itself.left_out)
    to_another = redirected(JOB, "/a", f"/b{ID}")
    assert (["/b"], {"session_id": 1}) == (onward(to_another), to_another.left_out)
    assert ["/a"] == onward(redirected(JOB, f"/a{ID}", f"/a{OTHER_ID}")), "or there would be no end of it"


def test_what_each_limit_leaves_out_is_counted_and_nothing_else() -> None:
    job = Job(seeds=(f"{SITE}/",), exclude=("excluded",), max_depth=2)
    page = found(job, "/", "/a/a/a/a", "/b/b/b/b/", "/c", "/excluded", "http://b.test/", "/seventh", "/eighth")
    assert (["/c"], {"path_repeats": 2, "links_per_page": 2}) == (onward(page), page.left_out)
    assert {"depth": 1} == found(Job(seeds=(f"{SITE}/",), max_depth=1), "/", "/c").left_out
    assert {"path_segments": 1} == redirected(job, "/", "/1" + "/x/y" * 20).left_out
