"""Test the samples of a crawl: its rate, its sparkline, and the trend of the last minutes."""

import pytest

from kadcrawl.cli.view.live.samples import BUCKET_S, BUCKETS_MAX, TREND_BUCKETS_MIN, Samples, Trend, sparkline
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState

START = 1_000.0


def sampled_row(pages: int, *, done: int = 0, urls: int = 0, number: int = 1) -> PeerRow:
    counters = PeerCounters(pages=pages, done=done, urls=urls)
    return PeerRow(Contact(id_bytes(number), "10.0.0.1", 1), PeerState.CRAWLING, 3, 0, 1, counters, 0, 0)


def test_each_bucket_has_the_pages_of_its_seconds() -> None:
    samples = Samples()
    pages = 0
    for second in range(int(4 * BUCKET_S) + 1):
        samples.add(START + second, [sampled_row(pages)])
        pages += 2 if second < 2 * BUCKET_S else 6
    assert [2.0, 2.0, 6.0, 6.0] == samples.page_rates


def test_buckets_that_nobody_saw_are_empty() -> None:
    samples = Samples()
    samples.add(START, [sampled_row(0)])
    samples.add(START + 3.5 * BUCKET_S, [sampled_row(10)])
    assert [0.0, 0.0, 10 / BUCKET_S] == samples.page_rates
    samples.add(START + 1e9, [sampled_row(10)])
    assert BUCKETS_MAX == len(samples.page_rates)


def test_the_buckets_are_bounded() -> None:
    samples = Samples()
    for number in range(BUCKETS_MAX + 50):
        samples.add(START + number * BUCKET_S, [sampled_row(number)])
    assert BUCKETS_MAX == len(samples.page_rates)


def test_earlier_pages_of_a_peer_that_comes_are_no_rate() -> None:
    samples = Samples()
    samples.add(START, [sampled_row(100)])
    samples.add(START + BUCKET_S, [sampled_row(105), sampled_row(9_000, number=2)])
    samples.add(START + 2 * BUCKET_S, [sampled_row(110), sampled_row(9_005, number=2)])
    assert [5 / BUCKET_S, 10 / BUCKET_S] == samples.page_rates


def test_a_trend_is_known_after_some_full_buckets() -> None:
    samples = Samples()
    for number in range(TREND_BUCKETS_MIN):
        samples.add(START + number * BUCKET_S, [sampled_row(0, done=number * 10, urls=100 + number * 5)])
    assert samples.trend is None
    samples.add(START + TREND_BUCKETS_MIN * BUCKET_S, [sampled_row(0, done=60, urls=130)])
    assert Trend(2.0, 1.0, 60) == samples.trend


@pytest.mark.parametrize(
    ("rates", "width", "expected"),
    [
        ([], 10, ""),
        ([0, 0, 0], 10, "▁▁▁"),
        ([0, 1, 2, 3, 4, 5, 6, 7], 10, "▁▂▃▄▅▆▇█"),
        ([900, 1, 1, 2], 3, "▅▅█"),
        ([1, 2], 0, ""),
    ],
    ids=["nothing yet", "nothing fetched", "all heights", "only the last count", "no room"],
)
def test_the_sparkline_rises_to_its_largest_rate(rates: list[float], width: int, expected: str) -> None:
    assert expected == sparkline(rates, width)


def test_the_sparkline_has_other_blocks_for_a_terminal_of_plain_characters() -> None:
    assert "_=#" == sparkline([0, 3, 5], 10, "_.-=*#")
