"""Test the cell of each URL, and the memory for sites that others make up."""

from typing import get_args

import pytest

from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.urls import SITE_CHARS_CACHED, Partition, _registered_domain


@pytest.mark.parametrize(
    ("url", "has_place"),
    [
        ("http://a.test/", True),
        ("http://" + "a" * 5000 + "/", True),
        ("http://\u00fc.test/", False),
        ("http://a.test/\U0001f600", False),
        ("http://a.test", False),
        ("", False),
        ("http:/", False),
    ],
)
def test_what_is_offered_has_a_place_or_is_no_url(url: str, has_place: bool) -> None:
    place = Partitioner("host", 16).locate_offered(url)
    assert has_place == (place is not None)


@pytest.mark.parametrize("partition", get_args(Partition))
def test_sites_that_nobody_has_fill_no_cache(partition: Partition) -> None:
    partitioner, before = Partitioner(partition, 16), _registered_domain.cache_info().currsize
    for chars in (SITE_CHARS_CACHED, SITE_CHARS_CACHED + 1):
        url = "http://a.test/".ljust(chars, "b") if partition == "url" else f"http://{'b' * (chars - 5)}.test/"
        assert chars == len(partitioner.locate(url).site)
    assert 1 == partitioner._cached_hash.cache_info().currsize
    assert before + (partition == "domain") == _registered_domain.cache_info().currsize


def test_a_site_is_placed_alike_whether_it_is_remembered_or_not() -> None:
    partitioner = Partitioner("host", 16)
    for name in ("a.test", "a" * 400 + ".test"):
        first, again = (partitioner.locate(f"http://{name}/{number}") for number in (1, 2))
        assert (first.cell, first.key[:12]) == (again.cell, again.key[:12])
        assert first.cell == partitioner.cell(name)
