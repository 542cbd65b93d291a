"""Test that rules explain every difference of the specimen, and none that would be a fault of kadcrawl."""

import json
from pathlib import Path

import pytest

from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.settings.limits import Limits
from scripts.compare_links import mentions, specimen
from scripts.compare_links.classes import CLASSES
from scripts.compare_links.clients import ClientError, Requests, read_log
from scripts.compare_links.compare import ComparedSite, SiteComparison
from scripts.compare_links.rules import UNEXPLAINED, RequestRules, link_differences, respelled

ORIGIN = "http://127.0.0.2:8000"
INDEX = specimen.FILES["index.html"]
SHARED = (
    "/",
    "/plain.html?b=1&a=2",
    "/plain.html",
    "/index.html",
    "/silent.html",
    "/later.html",
    "/tilde-~.html",
    "/robots.txt",
)
KADCRAWL = (
    "/plain.html?a=2&b=1",
    "/folder/spelled.html",
    "/tilde-%7E.html",
    "/photo.png",
    "/next.html",
    "/frame.html",
    "/latest.html",
)
WGET = (
    *("/folder%5Cspelled.html", "/photo.png", "/next.html", "/frame.html", "/latest.html", "/only-from-frame.html"),
    *("/in-title.html", "/in-text.html", "/look.css", "/search.xml", "/unloved.html", "/only-from-unloved.html"),
    *("/plain.html?a=2&b=1", "/picture.gif", "/small.gif", "/large.gif", "/paper.gif", "/wall.gif"),
)
SCRAPY = ("/folder/spelled.html", "/unloved.html", "/only-from-unloved.html", "/hushed.html")
LISTED = (
    *("folder/spelled.html", "plain.html", "tilde-~.html", "unloved.html", "silent.html", "later.html"),
    *("private/secret.html", "tilde-%7E.html", "plain.html?b=1&a=2", "plain.html?a=2&b=1"),
)
"""Links that LinkExtractor lists on the index of the specimen."""
AFTER_THE_END = "<!doctype html><html><body><a href=a>a</a></body></html><a href=b>b</a>"


def requests(*paths: str) -> Requests:
    found = Requests()
    for path in (*SHARED, *paths):
        found.add(ORIGIN + path, 404 if "%5C" in path else 200)
    return found


def comparison(root: Path, kadcrawl: Requests | None = None) -> SiteComparison:
    """Return the comparison of the specimen, with requests and links as the three crawlers have them."""
    ours = kadcrawl or requests(*KADCRAWL, "/only-from-frame.html")
    by_crawler = {"kadcrawl": ours, "wget": requests(*WGET), "scrapy": requests(*SCRAPY)}
    site = ComparedSite("specimen", specimen.write(root), ORIGIN, by_crawler)
    index = [f"{ORIGIN}/{link}" for link in LISTED] + ["ftp://ftp.example.org/file"]
    theirs = {url: list[str]() for url, _, _ in site.pages()}
    theirs |= {url: [*index, f"{url}#top"] for url in (f"{ORIGIN}/", f"{ORIGIN}/index.html")}
    theirs[f"{ORIGIN}/silent.html"] = [f"{ORIGIN}/hushed.html"]
    theirs |= {url: [f"{ORIGIN}/index.html"] for url in theirs if "/plain.html" in url}
    theirs[f"{ORIGIN}/unloved.html"] = [f"{ORIGIN}/only-from-unloved.html"]
    theirs[f"{ORIGIN}/frame.html"] = [f"{ORIGIN}/only-from-frame.html"]
    return site.compare(theirs)


def links(text: str) -> list[str]:
    """Return kadcrawl's links of a page."""
    return LinkExtractor(Limits()).extract(text.encode(), "text/html", f"{ORIGIN}/").links


def test_rules_explain_every_difference_of_the_specimen(tmp_path: Path) -> None:
    compared = comparison(tmp_path)
    assert [] == compared.unexplained()
    counts = compared.counts()
    assert {
        "file name extensions": {"kadcrawl": 2},
        "frames": {"kadcrawl": 2},
        "link elements": {"kadcrawl": 2},
        "meta refresh": {"kadcrawl": 1},
        "nofollow of the page": {"scrapy": 1},
        "other schemes": {"scrapy": 2},
        "rel=nofollow": {"scrapy": 2},
        "the page itself": {"scrapy": 2},
    } == counts["links"]
    assert {
        "canonical form": {"kadcrawl": 1, "wget": 1},
        "embedded": {"wget": 1},
        "equal after decoding": {"kadcrawl": 1},
        "only from such a page": {"wget": 2},
        "other link elements": {"wget": 2},
        "raw text": {"wget": 2},
        "rel=nofollow": {"wget": 1},
        "srcset": {"wget": 2},
        "style": {"wget": 1},
    } == counts["wget"]
    assert {
        "equal after decoding": {"kadcrawl": 2},
        "file name extensions": {"kadcrawl": 1},
        "frames": {"kadcrawl": 1},
        "link elements": {"kadcrawl": 1},
        "meta refresh": {"kadcrawl": 1},
        "nofollow of the page": {"scrapy": 1},
        "only from such a page": {"kadcrawl": 1, "scrapy": 1},
        "rel=nofollow": {"scrapy": 1},
    } == counts["scrapy"]


def test_every_class_has_a_difference_in_a_test(tmp_path: Path) -> None:
    met = {name for of_site in comparison(tmp_path).counts().values() for name in of_site}
    assert CLASSES.keys() - {"after the end"} == met


def test_a_link_after_the_end_of_the_document_has_a_class_of_its_own() -> None:
    found = link_differences(
        f"{ORIGIN}/", links(AFTER_THE_END), [f"{ORIGIN}/a"], mentions.of_page(AFTER_THE_END, f"{ORIGIN}/")
    )
    assert [(f"{ORIGIN}/b", "after the end")] == [(each.url, each.why) for each in found]


def test_a_link_that_kadcrawl_loses_has_no_explanation() -> None:
    read = mentions.of_page(INDEX, f"{ORIGIN}/")
    for lost in ("plain.html", "later.html", "private/secret.html"):
        ours = [url for url in links(INDEX) if url != f"{ORIGIN}/{lost}"]
        found = link_differences(f"{ORIGIN}/", ours, [f"{ORIGIN}/{link}" for link in LISTED], read)
        assert [f"{ORIGIN}/{lost}"] == [each.url for each in found if each.why == UNEXPLAINED]


def test_a_link_that_kadcrawl_makes_up_has_no_explanation() -> None:
    read = mentions.of_page(INDEX, f"{ORIGIN}/")
    ours = [*links(INDEX), f"{ORIGIN}/made-up.html", f"{ORIGIN}/in-text.html"]
    found = link_differences(f"{ORIGIN}/", ours, [f"{ORIGIN}/{link}" for link in LISTED], read)
    assert ours[-2:] == [each.url for each in found if each.why == UNEXPLAINED]


@pytest.mark.parametrize("other", ["wget", "scrapy"])
def test_a_request_that_kadcrawl_forgets_or_makes_up_has_no_explanation(other: str) -> None:
    read = {f"{ORIGIN}/": mentions.of_page(INDEX, f"{ORIGIN}/")}
    ours, theirs = [f"{ORIGIN}/", f"{ORIGIN}/made-up.html"], [f"{ORIGIN}/", f"{ORIGIN}/plain.html"]
    found = RequestRules(ours, theirs, other, read).differences()
    assert {ours[1]: UNEXPLAINED, theirs[1]: UNEXPLAINED} == {each.url: each.why for each in found}


def test_a_page_that_only_the_other_crawler_lacks_explains_nothing() -> None:
    read = {f"{ORIGIN}/": mentions.of_page("<a href=a>a</a>", f"{ORIGIN}/")}
    found = RequestRules([f"{ORIGIN}/"], [f"{ORIGIN}/a"], "wget", read).differences()
    assert [UNEXPLAINED, UNEXPLAINED] == [each.why for each in found]


def test_another_status_for_the_same_url_has_no_explanation(tmp_path: Path) -> None:
    ours = requests(*KADCRAWL, "/only-from-frame.html")
    ours.add(f"{ORIGIN}/later.html", 500)
    unexplained = comparison(tmp_path, ours).unexplained()
    assert {("wget", "/later.html"), ("scrapy", "/later.html")} == {(each.only, each.url) for each in unexplained}


def test_backslashes_and_empty_segments_are_spellings_and_other_letters_are_not() -> None:
    assert respelled(f"{ORIGIN}/a%5Cb", f"{ORIGIN}/a/b")
    assert respelled(f"{ORIGIN}//a", f"{ORIGIN}/a")
    assert not respelled(f"{ORIGIN}/a", f"{ORIGIN}/b")


def test_text_that_is_no_markup_holds_no_links() -> None:
    read = mentions.of_page(INDEX, f"{ORIGIN}/")
    assert {"raw text"} == read.kinds(f"{ORIGIN}/in-title.html") == read.kinds(f"{ORIGIN}/in-comment.html")
    assert {"link"} == read.kinds(f"{ORIGIN}/plain.html")


def test_requests_are_counted_by_crawler_and_site(tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    lines = [("kadcrawl/1", 2, "/"), ("kadcrawl/1", 3, "/"), ("Wget/1", 2, "/a"), ("Wget/1", 2, "/a")]
    log.write_text("".join(access(agent, number, path) for agent, number, path in lines))
    counted = read_log(log, ["one", "two"])
    assert {"http://127.0.0.3:1/": 200} == counted["kadcrawl"]["two"].statuses
    assert (2, 1) == (counted["wget"]["one"].count, len(counted["wget"]["one"].statuses))
    log.write_text(access("curl/8", 2, "/"))
    with pytest.raises(ClientError, match=r"none of the three: curl/8"):
        read_log(log, ["one"])


def access(agent: str, number: int, path: str) -> str:
    return json.dumps({"site": f"http://127.0.0.{number}:1", "path": path, "status": 200, "user_agent": agent}) + "\n"
