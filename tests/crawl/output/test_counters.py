"""Test that the counters fit into one message for any answers of servers, and add up."""

import msgspec
import pytest

from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.output.counters import Counters, counted_as
from kadcrawl.link.wire.basics import REASONS_MAX, PeerCounters

WORDS = (
    *(str(failure) for failure in FetchError),
    *("robots", "robots_unreachable", "bad_redirect", "redirect_limit", "internal_error", "killed_peer"),
    *("length", "depth", "scope", "exclude", "include", "path_segments", "path_repeats", "query_parameters"),
)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("http_404", "http_404"),
        ("http_503", "http_503"),
        ("http_477", "http_4xx"),
        ("http_599", "http_5xx"),
        ("http_600", "http_odd"),
        ("http_999", "http_odd"),
        ("http_4040", "http_odd"),
        ("timeout", "timeout"),
        ("robots", "robots"),
    ],
)
def test_rare_statuses_are_counted_together(reason: str, expected: str) -> None:
    assert counted_as(reason) == expected


def test_all_reasons_there_are_fit_into_one_message_and_add_up() -> None:
    totals = Counters()
    reasons = [*WORDS, *(f"http_{status}" for status in range(400, 1000))]
    for reason in reasons:
        totals.fail(reason)
    counters = totals.to_wire()
    assert len(counters.failed) <= REASONS_MAX
    assert sum(counters.failed.values()) == len(reasons)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(counters), type=PeerCounters) == counters


def test_totals_journaled_with_more_reasons_are_folded_when_read() -> None:
    before = Counters(failed={f"http_{status}": 2 for status in range(400, 500)})
    after = Counters.from_bytes(before.to_bytes())
    assert len(after.failed) < 30
    assert sum(after.failed.values()) == 200


@pytest.mark.parametrize("journaled", [b"", b"{", b"[]", b'{"pages":"x"}', b"\xff"])
def test_totals_that_cannot_be_read_begin_anew(journaled: bytes) -> None:
    assert Counters.from_bytes(journaled) == Counters()
