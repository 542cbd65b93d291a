"""Test the links of an answer: session IDs are removed, and links beyond the limits are counted."""

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from math import ceil
from typing import Any
from unittest.mock import Mock, patch

import pytest

from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.content.link_finder import FoundLinks, LinkFinder
from kadcrawl.crawl.content.near_duplicates import NearDuplicates
from kadcrawl.crawl.fetch.content_encoding import INNER_TIMES_MAX
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.robots.rules import parse
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.keys import Key, url_hash
from kadcrawl.link.wire.messages import DatedLink, Link
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules, RoleRule
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.system.cooperative import CooperativeWork, run_to_end

SITE = "http://a.test"
ID = ";jsessionid=0123456789abcdef0123456789abcdef"
OTHER_ID = ";jsessionid=00000000000000000000000000000000"


def found(
    job: Job,
    path: str,
    *links: str,
    status: int = 200,
    headers: Mapping[bytes, bytes] | None = None,
    rules: str = "",
    content: str | bytes = "",
    body: bytes | None = None,
    mime: str = "text/html",
    hops: int = 0,
    trail: bytes = b"",
    failure: FetchError | None = None,
    depth: int = 1,
    twins: NearDuplicates | None = None,
    simhash: int | None = None,
    told: Mapping[str, float] | None = None,
    known: tuple[str, ...] = (),
) -> FoundLinks:
    """Return the links of a page. `told` are the dates that owners know, `known` the URLs.

    `body` is the body as sent, if it differs.
    """
    limits = Limits(links_per_page_max=5, sitemap_urls_max=7)

    def news(modified: Mapping[str, float]) -> list[str]:
        assert told is not None
        return [url for url, at in modified.items() if at > told.get(url, 0.0)]

    finder = LinkFinder(
        LinkExtractor(limits),
        Scope(job),
        lambda urls, depth: [url for url in urls if url not in known],
        limits,
        PageRules(job.roles),
        twins,
        None if told is None else news,
    )
    text = b"".join(b'<a href="%s">x</a>' % link.encode() for link in links)
    text += content.encode() if isinstance(content, str) else content
    fetched = FetchResult(
        url=SITE + path,
        status=status,
        error=failure,
        detail="",
        request_head=b"",
        http_version="1.1",
        reason="",
        headers=tuple((headers or {}).items()),
        body=text if body is None else body,
        content=text,
        content_type=mime,
        mime=mime,
        retry_after_s=None,
        address="",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=0.0,
        first_byte_at=0.0,
    )
    entry = FrontierEntry(depth, 1, Key(bytes(20)), "a.test", SITE + path, hops, 0, 0.0, trail)
    named = parse(rules.encode(), "kadcrawl")
    listed = run_to_end(finder.read_sitemap(entry, fetched, named))
    return run_to_end(finder.find_links(entry, fetched, named, listed, simhash))


def redirected(job: Job, path: str, target: str) -> FoundLinks:
    return found(job, path, status=302, headers={b"Location": target.encode()})


JOB = Job(seeds=(f"{SITE}/",))
KEEPING = Job(seeds=(f"{SITE}/",), session_ids="keep")


def onward(found: FoundLinks) -> list[str]:
    return [link.url.removeprefix(SITE) for link in found.outlinks]


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


def outlinks_of(finder: LinkFinder, *urls: str, depth: int = 1) -> tuple[list[str], dict[str, int]]:
    links, left_out = run_to_end(finder._outlinks(urls, depth, 0, None))
    return [link.url for link in links], dict(left_out)


def finder_of(job: Job) -> tuple[LinkFinder, Scope]:
    scope, limits = Scope(job), Limits()
    return LinkFinder(LinkExtractor(limits), scope, lambda urls, depth: list(urls), limits), scope


def test_the_reason_against_a_link_is_found_once_and_counted_for_each_page() -> None:
    finder, scope = finder_of(JOB)
    deep, other = f"{SITE}/a/a/a/a", "http://b.test/"
    with patch.object(scope, "why_not", Mock(wraps=scope.why_not)) as asked:
        for _ in range(3):
            assert ([], {"path_repeats": 1}) == outlinks_of(finder, deep, other)
    assert 2 == asked.call_count


def test_a_link_that_was_left_out_is_followed_once_it_is_in_scope() -> None:
    finder, scope = finder_of(JOB)
    near, far, out = "http://b.test/", "http://c.test/x", f"{SITE}/x"
    scope.site_settings.steering.follow({}, {}, {"a.test": True})
    assert ([], {}) == outlinks_of(finder, near, far, out)
    scope.add_seeds([near])
    assert ([near], {}) == outlinks_of(finder, near, far, out)
    scope.site_settings.steering.follow({}, {}, {})
    assert ([near, out], {}) == outlinks_of(finder, near, far, out)
    for segment in scope.segments_of(["http://c.test/"]):
        scope.reach.add(segment)
    assert ([near, far, out], {}) == outlinks_of(finder, near, far, out)


def test_a_link_beyond_the_depth_is_followed_from_a_page_nearer_to_the_seeds() -> None:
    finder, _ = finder_of(Job(seeds=(f"{SITE}/",), max_depth=2))
    assert ([], {"depth": 1}) == outlinks_of(finder, f"{SITE}/x", depth=3)
    assert ([f"{SITE}/x"], {}) == outlinks_of(finder, f"{SITE}/x", depth=2)


MAPPED = Job(seeds=(f"{SITE}/",), sitemaps=True)
NAMED = f"sitemap: {SITE}/1\nsitemap: http://b.test/2\nsitemap: {SITE}/3"
LISTED = "<urlset><url><loc>/x</loc></url><url><loc>http://b.test/y</loc></url></urlset>"


def test_every_page_leads_to_the_sitemaps_of_its_site_as_to_its_links() -> None:
    page = found(MAPPED, "/", "/a", rules=NAMED)
    assert (["/a", "/1", "/3"], (f"{SITE}/a",)) == (onward(page), page.links)
    assert {2} == {link.depth for link in page.outlinks}
    assert ["/sitemap.xml"] == onward(found(MAPPED, "/", failure=FetchError.CONNECT))
    assert ["/b", "/1", "/3"] == onward(found(MAPPED, "/", status=302, headers={b"Location": b"/b"}, rules=NAMED))
    assert [] == onward(found(JOB, "/", rules=NAMED)), "but only if the job follows them"
    shallow = Job(seeds=(f"{SITE}/",), sitemaps=True, max_depth=1)
    assert ([], {"depth": 1}) == ((page := found(shallow, "/")).outlinks, page.left_out)


@pytest.mark.parametrize("path", ["/sitemap.xml", "/1"])
def test_what_a_sitemap_lists_is_followed_like_links(path: str) -> None:
    page = found(MAPPED, path, content=LISTED, rules=NAMED)
    assert (["/x", "/1", "/3"], (f"{SITE}/x", "http://b.test/y")) == (onward(page), page.links)
    assert (2, None) == (page.outlinks[0].depth, page.failed)
    assert ([], ()) == (onward(page := found(JOB, path, content=LISTED, rules=NAMED)), page.links)


def test_a_rule_names_the_sitemaps_of_a_site_in_place_of_its_robots_txt_or_turns_them_off() -> None:
    named = SiteRule(match=("a.test",), sitemap_urls=(f"{SITE}/map", f"{SITE}/more"))
    by_rule = Job(seeds=(f"{SITE}/docs/",), scope="prefix", include=("zzz",), sites=(named,))
    page = found(by_rule, "/map", content=LISTED.replace("/x", "/docs/zzz"), rules=NAMED)
    assert ["/docs/zzz", "/map", "/more"] == onward(page)
    off = Job(seeds=(f"{SITE}/",), sitemaps=True, sites=(SiteRule(match=("a.test",), sitemaps=False),))
    assert ["/a"] == onward(found(off, "/", "/a", rules=NAMED))


def test_a_page_is_no_sitemap_by_its_type_or_name_alone() -> None:
    assert ["/sitemap.xml"] == onward(found(MAPPED, "/2", content=LISTED)), "neither named so nor XML"
    assert ["/x", "/sitemap.xml"] == onward(found(MAPPED, "/2", content=LISTED, mime="text/xml"))
    assert ["/a", "/sitemap.xml"] == onward(found(MAPPED, "/sitemap.xml", "/a")), "it is HTML"


def test_a_sitemap_with_an_unreadable_end_fails_and_its_links_are_kept() -> None:
    page = found(MAPPED, "/sitemap.xml", content=LISTED.removesuffix("</urlset>"))
    assert (["/x", "/sitemap.xml"], "bad_sitemap") == (onward(page), page.failed)
    page = found(MAPPED, "/sitemap.xml", content=LISTED[:-9], failure=FetchError.BODY_TOO_LARGE)
    assert (["/x", "/sitemap.xml"], "body_too_large") == (onward(page), page.failed)
    assert ["/sitemap.xml"] == onward(found(MAPPED, "/sitemap.xml", content=LISTED, status=404))


def test_a_packed_sitemap_is_not_unpacked_that_was_much_shorter_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kadcrawl.crawl.fetch.content_encoding.INNER_BYTES", 0)
    packed = gzip.compress(LISTED.encode(), mtime=0)
    least = bytes(ceil(len(packed) / INNER_TIMES_MAX))
    found_in = partial(found, MAPPED, "/sitemap.xml", content=packed)
    assert (["/x", "/sitemap.xml"], None) == (onward(page := found_in(body=least)), page.failed)
    assert (["/sitemap.xml"], "bad_sitemap") == (onward(page := found_in(body=least[1:])), page.failed)
    is_none = found(MAPPED, "/2", content=packed, body=least[1:])
    assert (["/sitemap.xml"], None) == (onward(is_none), is_none.failed), "nobody would unpack it"


def test_a_sitemap_has_a_share_of_its_own() -> None:
    many = f"<urlset>{''.join(f'<url><loc>/{n}</loc></url>' for n in range(8))}</urlset>"
    page = found(MAPPED, "/sitemap.xml", content=many)
    assert (7, {"links_per_page": 1}) == (len(page.links), page.left_out)


WIDE = Job(seeds=(f"{SITE}/",), scope="any", sitemaps=True)
DATED = "".join(
    f"<url><loc>{url}</loc><lastmod>{lastmod}</lastmod></url>"
    for url, lastmod in (
        ("/new", "2025-01-01"),
        ("/changed", "2025-01-02T00:00:00Z"),
        ("/told", "2025-01-01"),
        ("/undated", ""),
        ("https://www.a.test:8443/twin", "2025-01-01"),
        ("http://b.test/other", "2025-01-01"),
        ("/to-come", "2026-01-03"),
    )
)
FIRST, SECOND = 1735689600.0, 1735776000.0
"""Two days of the year 2025, in wall-clock seconds."""


def test_sitemap_dates_travel_with_the_links_if_the_job_recrawls() -> None:
    told = {f"{SITE}/changed": FIRST, f"{SITE}/told": FIRST}
    known = tuple(f"{SITE}/{path}" for path in ("changed", "told", "undated", "sitemap.xml"))
    page = found(WIDE, "/sitemap.xml", content=f"<urlset>{DATED}</urlset>", told=told, known=known)
    dates = {link.url: link.modified if isinstance(link, DatedLink) else None for link in page.outlinks}
    assert {
        f"{SITE}/new": FIRST,
        "https://www.a.test:8443/twin": FIRST,
        "http://b.test/other": None,
        f"{SITE}/to-come": None,
        f"{SITE}/changed": SECOND,
    } == dates, "nobody hurries us to another's site"
    assert len(dates) == len(page.outlinks)


def test_dates_matter_to_nobody_who_fetches_each_page_once() -> None:
    page = found(WIDE, "/sitemap.xml", content=f"<urlset>{DATED}</urlset>", known=(f"{SITE}/changed",))
    assert not any(isinstance(link, DatedLink) for link in page.outlinks)
    assert f"{SITE}/changed" not in {link.url for link in page.outlinks}


def test_a_date_is_that_of_the_link_without_its_session_id() -> None:
    content = f"<urlset><url><loc>/a{ID}</loc><lastmod>2025-01-01</lastmod></url></urlset>"
    page = found(MAPPED, "/sitemap.xml", content=content, told={})
    assert DatedLink(f"{SITE}/a", 2, 0, modified=FIRST) == page.outlinks[0]


def test_items_of_a_feed_are_followed_where_sitemaps_are() -> None:
    feed = (
        "<rss><channel><item><link>/new</link><pubDate>Wed, 01 Jan 2025 00:00:00 GMT</pubDate></item></channel></rss>"
    )
    read = found(MAPPED, "/feed", content=feed, mime="application/rss+xml", told={})
    assert DatedLink(f"{SITE}/new", 2, 0, modified=FIRST) == read.outlinks[0]
    assert [] == found(JOB, "/feed", content=feed, mime="application/rss+xml", told={}).outlinks


@pytest.mark.parametrize(
    ("refresh", "links"),
    [
        (b"0; url=/b", ["/b", "/a"]),
        (b"5;URL='b?x'", ["/b?x", "/a"]),
        (b"3 , http://other.test/", ["/a"]),
        (b"0", ["/a"]),
        (b"0; url=/a", ["/a"]),
        (b"0; url=/#top", ["/a"]),
        (b"soon; url=/b", ["/a"]),
        (b"0; url=mailto:a@b.c", ["/a"]),
        (b"0; url=\xff", ["/%EF%BF%BD", "/a"]),
    ],
)
def test_the_header_field_refresh_is_a_link(refresh: bytes, links: list[str]) -> None:
    page = found(JOB, "/", "/a", headers={b"Refresh": refresh})
    assert links == onward(page)
    assert {2} == {link.depth for link in page.outlinks}


def test_a_refresh_needs_no_page_and_obeys_nofollow() -> None:
    sent = {b"refresh": b"0;url=/b"}
    assert ["/b"] == onward(found(JOB, "/x.pdf", content="%PDF", mime="application/pdf", headers=sent))
    assert ["/b"] == onward(found(JOB, "/", headers=sent))
    page = found(JOB, "/", "/a", headers=sent | {b"X-Robots-Tag": b"nofollow"})
    assert ([], {"nofollow": 2}) == (onward(page), page.left_out)
    assert [] == onward(found(JOB, "/", status=404, headers=sent))


PLAIN = Job(seeds=(f"{SITE}/", f"{SITE}/?utm_id=0"), strip_parameters=("utm",), sort_query=True, canonical="honor")


def test_links_go_on_in_the_form_of_the_rules_and_are_told_as_they_were() -> None:
    page = found(PLAIN, "/", "/a?utm_source=x&z&y", "/b?y&z", f"/c{ID}?utm_id=1", "/d?z&y")
    assert ["/a?y&z", "/b?y&z", "/c", "/d?y&z"] == onward(page)
    assert {"parameters": 2} == page.left_out
    assert f"{SITE}/a?utm_source=x&z&y" in page.links


@pytest.mark.parametrize(
    ("path", "target", "goes_to"),
    [
        ("/x", "/y?utm_id=1", "/y"),
        ("/x", "/x?utm_id=1", "/x?utm_id=1"),
        ("/x?a&b", "/x?b&a", "/x?b&a"),
        ("/x?b&a", "/x?a&b&utm_id=1", "/x?a&b"),
    ],
)
def test_a_redirect_that_only_adds_a_parameter_is_followed_to_it(path: str, target: str, goes_to: str) -> None:
    assert [goes_to] == onward(redirected(PLAIN, path, target))


def test_what_a_page_names_as_canonical_has_the_form_of_the_rules() -> None:
    page = naming("/x?a=1&b=2", "/x?b=2&utm_id=1", PLAIN)
    assert f"{SITE}/x?b=2" == page.canonical


HONORING = Job(seeds=(f"{SITE}/", f"{SITE}/?seed"), canonical="honor", exclude=("no",))


def naming(path: str, target: str, job: Job = HONORING, more: str = "", **page: Any) -> FoundLinks:
    """Return the links of a page that names `target` as canonical."""
    return found(job, path, "/a", "/b", content=f'<link rel=canonical href="{target}">{more}', **page)


def test_a_page_that_names_a_simpler_one_counts_as_a_redirect_to_it() -> None:
    page = naming("/x?y", "/x")
    assert ([f"{SITE}/x"], f"{SITE}/x") == ([link.url for link in page.outlinks], page.canonical)
    assert [(1, 1)] == [(link.depth, link.hops) for link in page.outlinks], "as of a redirect"
    assert (3, {"canonical": 2}) == (len(page.links), page.left_out)


@pytest.mark.parametrize(
    ("path", "target", "page"),
    [
        ("/x", "/x", {}),
        ("/x", "/x?y", {}),
        ("/?seed", "/", {}),
        ("/x?y", "http://b.test/x", {}),
        ("/x?y", "/no", {}),
        ("/x?y", "/x", {"hops": 1}),
        ("/x?y", "/x", {"rules": "user-agent: *\ndisallow: /x$"}),
        ("/x?y", "/x", {"headers": {b"Link": b"</z>; rel=canonical"}}),
        ("/x?y", "/x", {"job": JOB}),
    ],
    ids=[
        "itself",
        "more parameters",
        "seed",
        "another site",
        "excluded",
        "redirected",
        "forbidden",
        "two names",
        "off",
    ],
)
def test_any_other_page_is_followed_whatever_it_names(path: str, target: str, page: dict[str, Any]) -> None:
    answer = naming(path, target, **page)
    assert answer.canonical is None
    assert {"/a", "/b"} <= set(onward(answer))


def test_what_is_named_has_no_session_id() -> None:
    page = naming("/x?y=z", f"/x{ID}")
    assert (f"{SITE}/x", {"canonical": 2}) == (page.canonical, page.left_out)
    assert naming("/x", f"/x{ID}").canonical is None


def test_a_page_that_says_nofollow_leads_nowhere() -> None:
    page = naming("/x?y", "/x", more="<meta name=robots content=nofollow>")
    assert ([], None) == (page.outlinks, page.canonical)


def on_trail(path: str, target: str, *trail: str, **headers: str) -> FoundLinks:
    sent = {b"Location": target.encode()} | {name.encode(): value.encode() for name, value in headers.items()}
    hashes = b"".join(url_hash(SITE + each) for each in trail)
    return found(JOB, path, status=302, headers=sent, hops=len(trail), trail=hashes)


def test_a_redirect_carries_the_hashes_of_its_trail() -> None:
    page = on_trail("/b", "/c", "/a")
    assert [Link(f"{SITE}/c", 1, 2, url_hash(f"{SITE}/a") + url_hash(f"{SITE}/b"))] == page.outlinks
    assert (None, f"{SITE}/c") == (page.failed, page.location)
    longest = on_trail("/b", "/c", *map(str, range(40))).outlinks
    assert [] == longest, "the limit of redirects holds"


@pytest.mark.parametrize(
    ("trail", "path", "target", "failed"),
    [
        ((), "/a", "/a", "redirect_loop"),
        ((), "/a", "/a#x", "redirect_loop"),
        (("/a",), "/b", "/a", "redirect_loop"),
        (("/a", "/b", "/c"), "/d", "/b", "redirect_loop"),
        (("/a", "/b"), "/c", "/d", None),
        (tuple(map(str, range(10))), "/b", "/c", "redirect_limit"),
        (tuple(map(str, range(10))), "/b", "/b", "redirect_loop"),
    ],
)
def test_a_redirect_to_its_own_trail_is_a_loop(
    trail: tuple[str, ...], path: str, target: str, failed: str | None
) -> None:
    assert failed == on_trail(path, target, *trail).failed
    if failed == "redirect_loop":
        assert "cookie_wall" == on_trail(path, target, *trail, **{"Set-Cookie": "a=b"}).failed


def test_the_target_of_a_loop_goes_on_as_its_trail_may_be_a_lie() -> None:
    assert ["/b"] == onward(on_trail("/c", "/b", "/a", "/b"))


def test_a_redirect_to_no_url_tells_no_password() -> None:
    page = redirected(JOB, "/a", "ftp://user:secret@example.org/")
    assert ("bad_redirect", "ftp://***@example.org/") == (page.failed, page.location)


def test_a_redirect_to_no_url_tells_what_was_sent() -> None:
    page = redirected(JOB, "/a", "mailto:" + "x" * 3_000)
    assert ("bad_redirect", 2083) == (page.failed, len(page.location or ""))


ELSEWHERE = "http://b.test/"


@pytest.mark.parametrize(
    ("job", "target", "advice"),
    [
        (Job(seeds=(f"{SITE}/",)), "https://www.a.test/x", None),
        (
            Job(seeds=(f"{SITE}/",)),
            "http://b.a.test/",
            "out of scope; give --scope domain, or that URL as a seed as well",
        ),
        (Job(seeds=(f"{SITE}/",)), ELSEWHERE, "out of scope; give that URL as a seed as well"),
        (Job(seeds=(f"{SITE}/",), scope="domain"), "http://b.a.test/", None),
        (Job(seeds=(f"{SITE}/",), scope="domain"), ELSEWHERE, "out of scope; give that URL as a seed as well"),
        (Job(seeds=(f"{SITE}/d/",), scope="prefix"), f"{SITE}/x", "give --scope host, or that URL as a seed as well"),
        (Job(seeds=(f"{SITE}/d/",), scope="prefix"), "http://www.a.test/d/x", None),
        (Job(seeds=(f"{SITE}/",), scope="any"), ELSEWHERE, None),
        (Job(seeds=(f"{SITE}/",), include=("/y",)), f"{SITE}/x", "no include; give that URL as a seed as well"),
        (Job(seeds=(f"{SITE}/",), exclude=("/x",)), f"{SITE}/x", "exclude '/x'; change that pattern"),
        (Job(seeds=(f"{SITE}/",), path_segments_max=1), f"{SITE}/x/y/z", None),
    ],
)
def test_a_seed_whose_redirect_leads_out_of_the_crawl_says_what_to_give(
    job: Job, target: str, advice: str | None
) -> None:
    sent = {b"Location": target.encode()}
    path = job.seeds[0].removeprefix(SITE)
    seed = found(job, path, status=301, headers=sent, depth=0)
    after_seed = found(job, f"{path}d", status=301, headers=sent, depth=0, hops=1)
    page = found(job, f"{path}d", status=301, headers=sent, depth=1, hops=1)
    assert None is page.failed
    for each in (seed, after_seed):
        assert target == each.location
        assert advice is None or each.detail.endswith(advice)
        assert ("seed_left_scope" if advice else None, bool(advice)) == (each.failed, bool(each.detail))


def test_links_in_scope_that_say_nofollow_are_counted() -> None:
    links = "<a rel=nofollow href=/x><a rel=nofollow href=http://other.test/><a rel=nofollow href=/y><a href=/z>"
    page = found(JOB, "/", content=links)
    assert (["/z"], {"nofollow": 2}) == (onward(page), page.left_out)
    page = found(JOB, "/", content=links, headers={b"X-Robots-Tag": b"nofollow"})
    assert ([], {"nofollow": 3}) == (onward(page), page.left_out)


def test_a_page_that_says_noindex_is_followed_and_marked() -> None:
    page = found(JOB, "/", "/a", content="<meta name=robots content=noindex>")
    assert (["/a"], True) == (onward(page), page.noindex)
    assert not found(JOB, "/", "/a").noindex


def test_a_file_or_a_sitemap_may_say_noindex_as_well() -> None:
    tag = {b"X-Robots-Tag": b"noindex, nofollow"}
    assert found(JOB, "/x.pdf", mime="application/pdf", headers=tag).noindex
    job = Job(seeds=(f"{SITE}/",), sitemaps=True)
    listed = found(job, "/sitemap.xml", content=f"<urlset><url><loc>{SITE}/a</loc></url></urlset>", headers=tag)
    assert ("/a", True) == (onward(listed)[0], listed.noindex)
    assert not found(JOB, "/", status=404, headers=tag).noindex


def test_the_header_field_names_as_well() -> None:
    page = found(HONORING, "/x?y", "/a", headers={b"Link": b'</x>; rel="canonical"'})
    assert (["/x"], {"canonical": 1}) == (onward(page), page.left_out)


LEADING = Job(
    seeds=(f"{SITE}/", f"{SITE}/seed"),
    canonical="honor",
    roles=(
        RoleRule(pattern="/list/", role="next_link"),
        RoleRule(pattern="/item/./", role="detail_request", follow=True),
        RoleRule(pattern="/item/", role="detail_request"),
    ),
)
NEAR = 0b111


def links_and_near_duplicate(
    twins: NearDuplicates, path: str, *links: str, simhash: int | None = NEAR, **page: Any
) -> tuple[list[str], str | None]:
    """Return where a page leads and whose twin it is."""
    answer = found(LEADING, path, *links, twins=twins, simhash=simhash, **page)
    return onward(answer), answer.near_duplicate and answer.near_duplicate.removeprefix(SITE)


def first_met(simhash: int = 0) -> NearDuplicates:
    """Return an index that contains a page /first with this SimHash."""
    twins = NearDuplicates()
    assert (["/a"], None) == links_and_near_duplicate(twins, "/first", "/a", simhash=simhash)
    return twins


def test_links_of_a_near_duplicate_are_left_to_the_first_and_counted() -> None:
    page = found(LEADING, "/x", "/b", "/c", twins=first_met(), simhash=NEAR)
    assert ([], f"{SITE}/first", {"twins": 2}) == (page.outlinks, page.near_duplicate, page.left_out)
    assert ((f"{SITE}/b", f"{SITE}/c"), None) == (page.links, page.failed)
    page = found(LEADING, "/x", *map(str, range(7)), twins=first_met(), simhash=NEAR)
    assert {"twins": 7} == page.left_out, "those beyond the limit as well"
    page = found(LEADING, "/x", content="no links", twins=first_met(), simhash=0)
    assert ({}, f"{SITE}/first") == (page.left_out, page.near_duplicate)


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/x", {"simhash": 0b1111}),
        ("/x", {"simhash": None}),
        ("/first", {}),
        ("/seed", {}),
        ("/seed", {"depth": 3}),
        ("/x", {"depth": 0, "hops": 1}),
        ("/list/2", {}),
        ("/item/1/", {}),
    ],
    ids=[
        "another text",
        "hardly any text",
        "itself",
        "seed",
        "linked seed",
        "where a seed led",
        "leads on",
        "followed item",
    ],
)
def test_any_other_page_is_followed_whatever_its_text(path: str, page: dict[str, Any]) -> None:
    assert (["/b"], None) == links_and_near_duplicate(first_met(), path, "/b", **page)


def test_only_a_page_whose_links_were_followed_is_a_first() -> None:
    twins = NearDuplicates()
    links_and_near_duplicate(twins, "/no-links", content="text")
    links_and_near_duplicate(twins, "/nofollow", "/a", content="<meta name=robots content=nofollow>")
    links_and_near_duplicate(twins, "/item/1", "/a")
    links_and_near_duplicate(twins, "/named?x", "/a", content='<link rel=canonical href="/named">')
    links_and_near_duplicate(twins, "/gone", "/a", status=404)
    links_and_near_duplicate(twins, "/moved", status=302, headers={b"Location": b"/a"})
    assert 0 == len(twins)
    for number, simhash in enumerate((0, 0b111, 0b111111)):
        links_and_near_duplicate(twins, f"/{number}", "/a", simhash=simhash)
    assert 2 == len(twins), "a twin of a twin may be another page"


def test_a_seed_is_the_first_of_others() -> None:
    twins = NearDuplicates()
    links_and_near_duplicate(twins, "/", "/a", depth=0)
    assert ([], "/") == links_and_near_duplicate(twins, "/index.html", "/a", simhash=0)


def test_a_site_of_near_duplicates_keeps_its_sitemaps() -> None:
    mapped = Job(seeds=(f"{SITE}/",), sitemaps=True)
    page = found(mapped, "/x", "/a", twins=first_met(), simhash=NEAR)
    assert (["/sitemap.xml"], {"twins": 1}) == (onward(page), page.left_out)


@pytest.mark.parametrize(("chars", "turns"), [(75, 0), (74, 1), (45, 1), (29, 2), (14, 5)])
def test_many_links_are_judged_in_turns(chars: int, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"/{number}" for number in range(5)]
    assert 75 == sum(len(SITE + path) for path in paths)
    taken = 0

    def counted(work: CooperativeWork[Any]) -> Any:
        nonlocal taken
        while True:
            try:
                next(work)
            except StopIteration as over:
                return over.value
            taken += 1

    monkeypatch.setattr("kadcrawl.crawl.content.link_finder.TURN_CHARS", chars)
    monkeypatch.setattr("tests.crawl.content.test_link_finder.run_to_end", counted)
    assert paths == onward(found(JOB, "/", *paths))
    assert turns == taken
