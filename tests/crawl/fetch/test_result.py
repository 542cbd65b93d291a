"""Test the headers and redirects of a `FetchResult`, and whether another try may help."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kadcrawl.crawl.fetch.result import PASSING, REDIRECTS, FetchError, FetchResult

ANSWER = FetchResult(
    url="http://example.com/",
    status=200,
    error=None,
    detail="",
    request_head=b"",
    http_version="1.1",
    reason="OK",
    headers=((b"X-Robots-Tag", b"noindex"), (b"x-robots-tag", b"nofollow"), (b"Location", b"/next")),
    body=b"",
    content=b"",
    content_type="",
    mime="",
    retry_after_s=None,
    address="",
    started_at=datetime(2026, 1, 1, tzinfo=UTC),
    seconds=0.0,
    first_byte_at=0.0,
)


def test_repeated_headers_are_joined_whatever_their_case() -> None:
    assert ANSWER.header(b"x-robots-tag") == "noindex, nofollow"
    assert ANSWER.header(b"server") is None


@pytest.mark.parametrize("status", [None, 200, 201, 300, 301, 302, 303, 304, 305, 307, 308, 404])
def test_only_a_redirect_has_a_location(status: int | None) -> None:
    expected = "/next" if status in (301, 302, 303, 307, 308) else None
    assert replace(ANSWER, status=status).location == expected
    assert (status in REDIRECTS) is (expected is not None)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"http://example.org/a?b#c", "http://example.org/a?b#c"),
        ("/é".encode(), "/é"),
        ("/é".encode("latin-1"), "/%E9"),
        (b"/a%20b&c=\xff\xfe", "/a%20b&c=%FF%FE"),
        (b"", ""),
    ],
)
def test_a_location_is_text_in_any_encoding(sent: bytes, expected: str) -> None:
    assert replace(ANSWER, status=302, headers=((b"LOCATION", sent),)).location == expected


def test_a_redirect_without_location_has_none() -> None:
    assert replace(ANSWER, status=302, headers=()).location is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, False), (304, False), (404, False), (410, False), (428, False), (429, True), (430, False), (499, False),
     (500, True), (503, True), (599, True)],
)  # fmt: skip
def test_which_statuses_are_worth_another_try(status: int, expected: bool) -> None:
    assert replace(ANSWER, status=status).passing is expected


@pytest.mark.parametrize("failure", FetchError)
def test_which_failures_are_worth_another_try(failure: FetchError) -> None:
    lasting = {
        "bad_url",
        "address_refused",
        "tls",
        "tls_expired",
        "tls_name",
        "tls_self_signed",
        "tls_unknown_ca",
        "protocol",
        "headers_too_large",
        "body_too_large",
        "bad_encoding",
        "inflated_too_large",
        "no_memory",
        "inflated_no_memory",
        "no_socket",
        "not_sent",
        "no_proxy",
        "verifying",
        "proxy",
        "unsure",
        "no_opinion",
    }
    assert replace(ANSWER, status=None, error=failure).passing is (failure not in lasting)
    assert (failure in PASSING) is (failure not in lasting)


@pytest.mark.parametrize(
    ("status", "failure", "answered"),
    [
        (200, None, True),
        (503, None, True),
        (200, FetchError.TRUNCATED, True),
        (None, FetchError.TIMEOUT, False),
        (None, FetchError.CONNECT, False),
        (200, FetchError.TIMEOUT, False),
        (200, FetchError.IDLE, False),
        (200, FetchError.TOO_SLOW, False),
        (None, FetchError.UNSURE, None),
    ],
)
def test_a_site_answered_if_it_said_anything_in_time(
    status: int | None, failure: FetchError | None, answered: bool | None
) -> None:
    assert replace(ANSWER, status=status, error=failure).answered is answered
