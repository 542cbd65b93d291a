"""Visits that travel with loans arrive as they were, and nothing arrives that no server can have answered."""

from msgspec.structs import replace

from kadcrawl.keys import Key
from kadcrawl.lending.visit_facts import facts_of, visit_of
from kadcrawl.settings.site_rules import RECRAWL_MOST_S
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit

ENTRY = FrontierEntry(2, 7, Key(bytes(20)), "a.example", "http://a.example/x", 0, 0, 0.0)
VISIT = Visit(
    *(ENTRY.key, ENTRY.site, ENTRY.url, ENTRY.depth, None, 60.0, '"one"', "Sat, 21 Nov 2026 10:00:00 GMT"),
    *("sha1:" + "A" * 32, "2026-11-21T10:00:00Z", 1),
)


def test_a_visit_arrives_as_it_was() -> None:
    assert VISIT == visit_of(facts_of(VISIT), ENTRY)
    assert visit_of(facts_of(VISIT._replace(due=9.0)), ENTRY).due is not None


def test_of_made_up_facts_only_the_possible_count() -> None:
    lie = replace(
        facts_of(VISIT), etag="a\r\nb", last_modified="soon", digest="sha1:x", gone=9, period_s=1e9, answer="{}"
    )
    told = visit_of(lie, ENTRY)
    assert ("", "", "", "", "") == (told.etag, told.last_modified, told.digest, told.captured, told.answer)
    assert (4, RECRAWL_MOST_S) == (told.gone, told.period_s)
