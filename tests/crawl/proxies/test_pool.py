"""Test which proxies are alive, which proxy is chosen, and which proxy a failure is blamed on."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from random import Random

import pytest

from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.proxies.health import DEAD_WAIT_MAX_S, STRIKES
from kadcrawl.crawl.proxies.pool import (
    DOUBTS,
    DOUBTS_MOST,
    NONE_WAIT_MAX_S,
    Outcome,
    Proxies,
    outcome,
)
from kadcrawl.settings.proxy_list import Proxy

A, B, C = (Proxy("http", f"192.0.2.{number}", 3128) for number in range(3))
VERIFY_S, RETRY_S = 300.0, 5.0
SITE, PAGE = "example.org", "http://example.org/"


def pool(*alive: Proxy, dead: tuple[Proxy, ...] = ()) -> Proxies:
    made = Proxies(Random(1), VERIFY_S, RETRY_S)
    made.learn([*alive, *dead], 0.0)
    while (proxy := made.to_check(0.0)) is not None:
        made.checked(proxy, 0.1 if proxy in alive else None, 0.0)
    return made


def check_at(made: Proxies) -> float:
    """Return when the next verification is due."""
    return min((one.check_at for one in made._health.values() if not one.checking), default=inf)


def fetched(url: str, status: int | None, failure: FetchError | None = None) -> FetchResult:
    return FetchResult(
        url=url, status=status, error=failure, detail="", request_head=b"", http_version="1.1", reason="", headers=(),
        body=b"", content=b"", content_type="", mime="", retry_after_s=None, address="",
        started_at=datetime(2026, 1, 1, tzinfo=UTC), seconds=0.1, first_byte_at=0.0,
    )  # fmt: skip


def test_none_is_used_before_it_was_verified() -> None:
    made = Proxies(Random(1), VERIFY_S, RETRY_S)
    made.learn([A, B], 0.0)
    assert (None, 0, 2) == (made.choose(SITE, PAGE), made.alive, made.known)
    first = made.to_check(0.0)
    assert first is not None
    made.checked(first, 0.1, 0.0)
    assert first == made.choose(SITE, PAGE)
    assert made.to_check(0.0) == ({A, B} - {first}).pop()
    assert made.to_check(0.0) is None  # Both are being verified, or have been.


def test_it_is_verified_again_at_intervals() -> None:
    made = pool(A)
    assert (VERIFY_S, None) == (check_at(made), made.to_check(VERIFY_S - 1))
    made.came(A, PAGE, 0.1, 100.0)
    assert made.to_check(VERIFY_S) == A
    assert check_at(made) == inf


def test_a_site_keeps_its_proxy_while_that_is_good() -> None:
    made = pool(A, B, C)
    of = {site: made.choose(site, f"http://{site}/") for site in map(str, range(50))}
    assert set(of.values()) == {A, B, C}
    for site, proxy in of.items():
        assert {proxy} == {made.choose(site, f"http://{site}/{page}") for page in range(5)}
    kept = made.choose(SITE, PAGE)
    assert kept is not None
    made.doubted(kept, PAGE, 1.0)
    assert kept != made.choose(SITE, PAGE)
    assert kept != made.choose(SITE, PAGE + "other")


def test_the_better_are_chosen_more_often() -> None:
    made = pool(A, B)
    for _ in range(20):
        made.came(A, PAGE, 0.05, 1.0)
        made.came(B, PAGE, 4.0, 1.0)
    chosen = Counter(made.choose(str(site), PAGE) for site in range(500))
    assert chosen[A] > 5 * chosen[B] > 0


def test_certain_faults_in_a_row_kill_it_and_a_page_in_between_saves_it() -> None:
    made = pool(A)
    for _ in range(STRIKES - 1):
        made.failed(A, 1.0)
    made.came(A, PAGE, 0.1, 2.0)
    for _ in range(STRIKES - 1):
        made.failed(A, 3.0)
    assert made.alive == 1
    made.failed(A, 3.0)
    assert (0, None) == (made.alive, made.choose(SITE, PAGE))


def test_dead_proxies_return_only_verified_and_after_ever_longer_waits() -> None:
    made, now, waits = pool(dead=(A,)), 0.0, []
    for _ in range(12):
        made.came(A, PAGE, 0.1, now)  # A page that was under way is no verification.
        assert made.alive == 0
        waits.append(check_at(made) - now)
        now = check_at(made)
        assert made.to_check(now) == A
        made.checked(A, None, now)
    assert waits[:3] == [RETRY_S, 2 * RETRY_S, 4 * RETRY_S]
    assert waits[-1] == DEAD_WAIT_MAX_S
    now = check_at(made)
    assert made.to_check(now) == A
    made.checked(A, 0.1, now)
    assert A == made.choose(SITE, PAGE)


def test_in_doubt_the_judge_is_asked_at_once_unless_a_page_comes_first() -> None:
    made = pool(A, B)
    made.doubted(A, PAGE, 1.0)
    assert check_at(made) == 1.0
    made.came(A, "http://example.net/", 0.1, 1.5)
    assert check_at(made) == VERIFY_S
    made.doubted(A, PAGE, 2.0)
    assert made.to_check(2.0) == A
    made.checked(A, None, 2.1)
    assert not made._health[A].alive


def test_a_judge_that_is_down_stops_none_by_which_pages_come() -> None:
    made = pool(A, B)
    made.came(A, PAGE, 0.1, 100.0)
    for _ in range(2):
        proxy = made.to_check(VERIFY_S)
        assert proxy is not None
        made.checked(proxy, None, VERIFY_S + 1)
    assert (True, False) == (made._health[A].alive, made._health[B].alive)
    assert made.to_check(VERIFY_S + 1 + RETRY_S) is not None


def test_the_first_check_of_a_proxy_is_news_and_then_each_change() -> None:
    made = Proxies(Random(1), VERIFY_S, RETRY_S)
    made.learn([A], 0.0)
    seen: list[bool | None] = []
    for seconds in (None, None, 0.1, 0.1, None):
        made.checked(A, seconds, 0.0)
        seen.append(made.news(A))
    assert [False, None, True, None, False] == seen
    for _ in range(2):
        made.checked(A, 0.1, 0.0)
    made.news(A)
    for _ in range(STRIKES):
        made.failed(A, 0.0)
    assert made.news(A) is False, "dead by the requests for pages"
    assert made.news(B) is None, "unknown to the pool"


def test_a_page_that_breaks_by_each_of_several_good_proxies_is_the_cause() -> None:
    made, now = pool(A, B, C), 0.0
    for number in range(DOUBTS):
        now += 1.0
        proxy = made.choose(SITE, PAGE)
        assert proxy is not None
        assert made.doubted(proxy, PAGE, now) is (number < DOUBTS - 1)
        made.came(proxy, f"http://example.net/{number}", 0.1, now + 0.5)
    assert made.doubted(A, PAGE, now + 1)  # Its next try begins anew.


def test_a_page_is_not_the_cause_while_proxies_break_that_turn_out_dead() -> None:
    proxies = [Proxy("http", f"198.51.100.{number}", 80) for number in range(DOUBTS_MOST // 2)]
    made = pool(*proxies)
    for now, proxy in enumerate(proxies, 1):
        assert made.doubted(proxy, PAGE, now)
        assert made.to_check(now) == proxy
        made.checked(proxy, None, now)
    assert made.alive == 0
    now += 10
    back = made.to_check(now)
    assert back is not None
    made.checked(back, 0.1, now)
    assert made.choose(SITE, PAGE) == back
    assert made.doubted(back, PAGE, now + 1)


def test_only_a_page_that_broke_proxies_waits_for_their_verification() -> None:
    made = pool(A, B)
    assert made.doubted(A, PAGE, 1.0)
    assert made.choose(SITE, PAGE) == B
    assert made.doubted(B, PAGE, 2.0)
    assert made.choose(SITE, PAGE) is None
    assert made.choose(SITE, PAGE + "other") is not None
    made.checked(A, None, 3.0)
    assert (1, None) == (made.alive, made.choose(SITE, PAGE))
    made.checked(B, 0.1, 3.0)
    assert made.choose(SITE, PAGE) == B


def test_nor_while_nobody_knows_of_them_yet_but_every_page_ends() -> None:
    made = pool(A, B)
    said = [made.doubted(A if number % 2 else B, PAGE, 1.0) for number in range(DOUBTS_MOST)]
    assert said == [True] * (DOUBTS_MOST - 1) + [False]


def test_by_one_proxy_alone_a_page_is_the_cause_if_others_come() -> None:
    made, said = pool(A), []
    for now in range(1, DOUBTS + 1):
        assert made.choose(SITE, PAGE) == A
        said.append(made.doubted(A, PAGE, now))
        assert made.choose(SITE, PAGE) is None or now == DOUBTS
        made.came(A, "http://example.net/", 0.1, now + 0.5)
    assert said == [True] * (DOUBTS - 1) + [False]


def test_proxies_no_longer_listed_are_gone_and_the_others_stay_unchanged() -> None:
    made = pool(A, B)
    made.learn([B, C], 0.0)
    assert (1, 2) == (made.alive, made.known)
    assert B == made.choose(SITE, PAGE)
    made.came(A, PAGE, 0.1, 1.0)
    made.failed(A, 1.0)
    made.checked(A, 0.1, 1.0)
    assert A not in made._health
    assert made.to_check(1.0) == C


@pytest.mark.parametrize(
    ("url", "status", "failure", "expected"),
    [
        ("http://a.test/", 200, None, Outcome.CAME),
        ("http://a.test/", 404, None, Outcome.CAME),
        ("http://a.test/", 500, None, Outcome.CAME),
        ("http://a.test/", 502, None, Outcome.DOUBT),
        ("http://a.test/", 407, None, Outcome.DOUBT),
        ("https://a.test/", 502, None, Outcome.CAME),
        ("http://a.test/", None, FetchError.CONNECT, Outcome.PROXY),
        ("https://a.test/", None, FetchError.CONNECT, Outcome.DOUBT),
        ("https://a.test/", None, FetchError.TLS, Outcome.DOUBT),
        ("https://a.test/", None, FetchError.PROXY, Outcome.PROXY),
        ("http://a.test/", None, FetchError.DISCONNECTED, Outcome.DOUBT),
        ("http://a.test/", 200, FetchError.TRUNCATED, Outcome.DOUBT),
        ("http://a.test/", 200, FetchError.KEPT_WAITING, Outcome.NOTHING),
        ("http://a.test/", 200, FetchError.BODY_TOO_LARGE, Outcome.CAME),
        ("http://a.test/", None, FetchError.ADDRESS_REFUSED, Outcome.NOTHING),
        ("http://a.test/", None, FetchError.NO_SOCKET, Outcome.NOTHING),
        ("http://a.test/", None, FetchError.NOT_SENT, Outcome.NOTHING),
    ],
)
def test_what_an_answer_says_about_the_proxy(
    url: str, status: int | None, failure: FetchError | None, expected: Outcome
) -> None:
    assert outcome(fetched(url, status, failure), A) is expected


def test_a_503_that_says_when_to_come_back_is_the_sites() -> None:
    busy = fetched(PAGE, 503)
    assert outcome(busy, A) is Outcome.DOUBT
    assert outcome(replace(busy, retry_after_s=30.0), A) is Outcome.CAME
    assert outcome(busy, Proxy("socks5", "192.0.2.1", 1080)) is Outcome.CAME


def test_with_none_alive_none_is_left_alone_for_long() -> None:
    made, now = pool(dead=(A,)), 0.0
    for _ in range(12):
        now = check_at(made)
        assert made.to_check(now) == A
        made.checked(A, None, now)
    assert check_at(made) - now == DEAD_WAIT_MAX_S
    assert made.to_check(now + NONE_WAIT_MAX_S - 1) is None
    assert made.to_check(now + NONE_WAIT_MAX_S) == A


def test_what_was_under_way_when_it_broke_is_no_proof_that_it_works() -> None:
    made = pool(A)
    assert made.doubted(A, PAGE, 10.0)
    made.came(A, "http://example.net/", 1.0, 10.5)
    assert (10.0, None) == (check_at(made), made.choose(SITE, PAGE))
    assert made.to_check(10.5) == A
    assert made.doubted(A, PAGE + "other", 10.8)
    made.checked(A, 0.4, 10.9)
    assert made.to_check(10.9) == A
    made.checked(A, None, 11.0)
    assert made.alive == 0
