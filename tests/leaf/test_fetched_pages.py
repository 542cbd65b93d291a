"""The pages of a leaf that no lender knows to be done: bounded, and each page once."""

import pytest

from kadcrawl.keys import Key
from kadcrawl.leaf import fetched_pages
from kadcrawl.leaf.fetched_pages import FetchedPages

A, B, C = (Key(bytes([number]) * 20) for number in (1, 2, 3))


def test_a_page_is_remembered_with_its_failure_until_it_is_acknowledged() -> None:
    pages = FetchedPages()
    assert pages.note(A, "http_503")
    assert not pages.note(A, "http_503")
    assert ("http_503", None) == (pages.get(A), pages.get(B))
    pages.forget(A)
    assert (None, 0) == (pages.get(A), len(pages))


def test_of_too_many_pages_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_pages, "FETCHED_MAX", 2)
    pages = FetchedPages()
    for key in (A, B, C):
        pages.note(key, "")
    assert [None, "", ""] == [pages.get(key) for key in (A, B, C)]
