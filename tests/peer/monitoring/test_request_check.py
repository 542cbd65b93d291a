"""Test which requests the metrics answer."""

from http import HTTPStatus

import pytest

from kadcrawl.peer.monitoring.request_check import refusal
from kadcrawl.system.host_header import is_loopback


@pytest.mark.parametrize(
    "host", [None, "127.0.0.1", "127.0.0.1:14160", "[::1]:14160", "localhost", "LOCALHOST:1", "localhost.", "10.0.0.1"]
)
def test_a_request_to_an_address_is_answered(host: str | None) -> None:
    assert refusal("GET", host, is_loopback=True) is None
    assert refusal("HEAD", host, is_loopback=True) is None


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:14160", "127.0.0.1.evil.example", "localhost.evil.example", "[evil]:1"]
)
def test_a_name_that_a_page_may_have_rebound_is_refused_on_loopback(host: str) -> None:
    refused = refusal("GET", host, is_loopback=True)
    assert refused is not None
    assert HTTPStatus.FORBIDDEN == refused.status
    assert refusal("GET", host, is_loopback=False) is None


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get"])
def test_nothing_but_reading_is_answered(method: str) -> None:
    refused = refusal(method, "127.0.0.1", is_loopback=True)
    assert refused is not None
    assert HTTPStatus.METHOD_NOT_ALLOWED == refused.status


def test_an_address_of_all_networks_is_no_loopback() -> None:
    assert [True, True, False, False] == [is_loopback(host) for host in ("127.0.0.1", "::1", "0.0.0.0", "10.0.0.1")]
