"""Test the cookies of sites over a store: what is kept, hidden, journaled, and told to the next holder."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from kadcrawl.crawl.cookies.site_cookies import SiteCookies
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.keys import Key, site_hash, url_key
from kadcrawl.replication.record_codec import (
    COOKIES_BATCH_BYTES_MAX,
    cookies_of,
    site_record,
    with_bounded_cookies,
)
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.kept_cookies import NO_COOKIES, KeptCookies
from kadcrawl.store.store import Store
from tests.support.sites.fetched_page import PAGE
from tests.support.stores import opened

NOW = 1_700_000_000.0
SITE = "a.test"
URL = "http://a.test/"
KEY = Key(site_hash(SITE))
SETTINGS = SiteSettings(Job(delay_s=1.0, sites=(SiteRule(match=(SITE,), cookies="keep"),)))
ANSWER = replace(PAGE, url=URL, headers=((b"Set-Cookie", b"s=1"), (b"X", b"y"), (b"set-cookie", b"t=2; path=/x")))


def cookies_over(store: Store) -> SiteCookies:
    return SiteCookies(store.sites, store.cell_of, SETTINGS)


async def test_the_cookies_of_an_answer_are_sent_back_and_stand_in_no_file(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as store:
        cookies = cookies_over(store)
        answer, changed = cookies.learn(SITE, ANSWER, NOW)
        assert (((b"X", b"y"),), True) == (answer.headers, changed)
        assert ("s=1", "t=2; s=1") == (cookies.header(SITE, URL, NOW), cookies.header(SITE, f"{URL}x", NOW))
        assert (answer, False) == cookies.learn(SITE, answer, NOW)
        await store.journal.commit()
    with closing(opened(tmp_path)) as again:
        assert "s=1" == cookies_over(again).header(SITE, URL, NOW)
        again.forget_cell(again.cell_of(KEY), 10)
        assert NO_COOKIES == again.sites.cookies(SITE)


def test_cookies_of_other_sites_are_neither_kept_nor_hidden(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as store:
        other = replace(ANSWER, url="http://b.test/")
        assert (other, False) == cookies_over(store).learn("b.test", other, NOW)
        assert "" == cookies_over(store).header("b.test", other.url, NOW)
        assert NO_COOKIES == store.sites.cookies("b.test")


def test_cookies_move_with_the_clock_of_their_site_and_the_newer_win(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    with closing(opened(tmp_path / "a")) as one, closing(opened(tmp_path / "b")) as other:
        cookies_over(one).learn(SITE, ANSWER, NOW)
        front, back = Frontier(one, Limits(), SETTINGS), Frontier(other, Limits(), SETTINGS)
        clocks = front.clocks(one.cell_of(KEY), NOW + 5, 9)
        assert clocks is not None
        [record] = [site_record(clock, NOW + 5) for clock in clocks]

        def tell(told: KeptCookies) -> None:
            back.learn_clock(SITE, 0.0, 1.0, NOW + 50, cookies=told)

        tell(cookies_of(record))
        assert 1 == other.sites.cookies(SITE).version
        assert "s=1" == cookies_over(other).header(SITE, URL, NOW + 50)
        tell(KeptCookies(b"", 1))
        assert "s=1" == cookies_over(other).header(SITE, URL, NOW + 50)
        tell(KeptCookies(b"", 2))
        assert "" == cookies_over(other).header(SITE, URL, NOW + 50)
        back.learn_clock("b.test", 0.0, 1.0, NOW, cookies=KeptCookies(b"x", 9))
        assert NO_COOKIES == other.sites.cookies("b.test"), "a member cannot give cookies to a site that keeps none"


def test_the_cookies_in_one_message_are_bounded(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as store:
        front = Frontier(store, Limits(), SETTINGS)
        store.sites.set_cookies(SITE, store.cell_of(KEY), KeptCookies(bytes(10_000), 1))
        record = site_record(front.clock_of(SITE, NOW), NOW)
        told = with_bounded_cookies([record] * 100)
    assert COOKIES_BATCH_BYTES_MAX // 10_000 == sum(one.cookies is not None for one in told)
    assert 100 == len(told)


def test_a_site_with_cookies_is_lent_to_nobody(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as store:
        front = Frontier(store, Limits(), SETTINGS)
        for site in (SITE, "b.test"):
            url = f"http://{site}/"
            entry = store.accept(url_key(site_hash(site), url), site, url, 0, 0)
            assert entry is not None
            front.open(store.cell_of(entry.key), NOW, hold=False)
            front.add(entry, NOW)
        assert [("b.test", 1)] == front.sites_with_spare_connections(NOW)
