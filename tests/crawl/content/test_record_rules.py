"""Test the values that fields extract from a page, and the pages that give no record."""

import json
from typing import Any

import pytest

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_rules import RecordError, extract
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import Field, RecordRule
from tests.support import hooks

HTML = """<html><head><title>A shop</title></head><body>
<div class=item><h2>Caf\u00e9</h2><a href=/1>one</a><i>a</i><i>b</i></div>
<div class=item><h2>Tea</h2></div>
<div class=item></div>
</body></html>"""


def html_page(html: str = HTML, content_type: str = "text/html; charset=latin-1") -> Page:
    return Page("http://a.test/", 200, None, {}, html.encode("latin-1"), content_type, 1, ("http://a.test/1",), "")


def extracted_records(rule: RecordRule, of: Page | None = None, limits: Limits | None = None) -> list[Any]:
    hook = getattr(hooks, rule.hook.partition(":")[2]) if rule.hook else None
    return [json.loads(record) for record in extract(rule, hook, of or html_page(), limits or Limits())]


def fields(each: str = "", **selectors: str | list[str]) -> RecordRule:
    made = (
        Field(name, one if isinstance(one, str) else one[0], isinstance(one, list)) for name, one in selectors.items()
    )
    return RecordRule(pattern=".", fields=tuple(made), each=each)


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        (fields(t="css:title::text"), [{"t": "A shop"}]),
        (fields(t="xpath://h2/text()", no="css:h6"), [{"t": "Caf\u00e9", "no": None}]),
        (fields(t=["css:h2::text"], no=["css:h6"]), [{"t": ["Caf\u00e9", "Tea"], "no": []}]),
        (fields(n="xpath:count(//i)"), [{"n": "2.0"}]),
        (fields(no="css:h6", nor=["css:h5"]), []),
        (
            fields("css:div.item", t="css:h2::text", i=["xpath:./i/text()"]),
            [{"t": "Caf\u00e9", "i": ["a", "b"]}, {"t": "Tea", "i": []}],
        ),
        (fields("xpath://div[a]", link="xpath:./a/@href"), [{"link": "/1"}]),
        (RecordRule(pattern=".", hook="hooks:nothing"), []),
        (RecordRule(pattern=".", hook="hooks:several"), [{"link": "http://a.test/1"}]),
        (
            RecordRule(pattern=".", hook="hooks:title"),
            [{"title": "A shop", "role": None, "of": ["text/html", "windows-1252"]}],
        ),
    ],
)
def test_what_is_taken_out_of_a_page(rule: RecordRule, records: list[Any]) -> None:
    assert records == extracted_records(rule)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (fields("css:h2::text", t="css:i"), "each finds texts"),
        (fields(t="xpath:no-such-function()"), "no-such-function"),
        (RecordRule(pattern=".", hook="hooks:a_number"), "the hook returned int, not dict"),
        (RecordRule(pattern=".", hook="hooks:an_object"), "a record is no JSON"),
        (RecordRule(pattern=".", hook="hooks:endless_text"), "1048576 bytes"),
    ],
)
def test_what_is_no_record_says_why(rule: RecordRule, why: str) -> None:
    with pytest.raises(RecordError, match=why):
        extracted_records(rule)


def test_a_page_has_so_many_records_at_most() -> None:
    rule = fields("css:i", t="css:::text")
    assert 2 == len(extracted_records(rule, limits=Limits(records_per_page_max=2)))
    with pytest.raises(RecordError, match="more than 1 records"):
        extracted_records(rule, limits=Limits(records_per_page_max=1))


def test_fields_are_for_html_and_hooks_for_anything() -> None:
    other = html_page(content_type="application/json")
    assert [] == extracted_records(fields(t="css:title::text"), other)
    assert 1 == len(extracted_records(RecordRule(pattern=".", hook="hooks:several"), other))


@pytest.mark.parametrize("bomb", ["<div>" * 200_000, "<table>" * 20_000])
def test_a_tree_of_hostile_html_stays_shallow(bomb: str) -> None:
    assert [{"n": "2048.0"}] == extracted_records(fields(n="xpath:count(//*)"), html_page(bomb))
