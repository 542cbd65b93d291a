"""The benchmark of the link extractors measures both on the same pages, and fails if they see different links."""

import pytest

from kadcrawl.crawl.content.native_links import NativeLinks
from scripts.bench_links import ENGINES, Page, measured
from tests.support.native import native

PAGES = [Page(f"http://h/{number}", b"<a href='x'><a href=y>" * 20) for number in range(20)]


class Blind:
    """Native code that sees no links."""

    SOURCES = ""

    def __init__(self) -> None:
        self.plain, self.join, self.tags = native().plain, native().join, native().tags

    def meanings(self, *_: object) -> tuple[list[object], list[bytes], dict[bytes, object], list[int]]:
        return [], [], {}, []


def test_both_engines_are_measured_on_the_same_pages() -> None:
    cost = measured(PAGES, native(), 1)
    assert (20, 0.44) == (cost.pages, cost.kilobytes)
    for times in (cost.walk_us, cost.links_us):
        assert [*ENGINES] == [*times]
        assert min(times.values()) > 0


def test_other_links_are_no_figures() -> None:
    blind: NativeLinks = Blind()
    with pytest.raises(ValueError, match="different links"):
        measured(PAGES, blind, 1)
