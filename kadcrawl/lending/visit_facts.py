"""Turns visits into the facts that travel with a loan, and back. The receiver checks the facts. A decision.

Tests: tests/lending/test_visit_facts.py
"""

from collections.abc import Iterable

from kadcrawl.crawl.recrawl.policy import sanitized
from kadcrawl.keys import Key
from kadcrawl.link.wire.messages import VisitFacts
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit


def facts_of(visit: Visit) -> VisitFacts:
    """Return the facts about a visit."""
    return VisitFacts(
        *(visit.etag, visit.last_modified, visit.digest, visit.captured, visit.gone, visit.period_s),
        is_due_again=visit.due is not None,
        answer=visit.answer,
    )


def visit_of(facts: VisitFacts, entry: FrontierEntry) -> Visit:
    """Return the visit to the page of an entry that another peer describes, without values that cannot be true."""
    told = Visit(
        *(entry.key, entry.site, entry.url, entry.depth, 0.0 if facts.is_due_again else None, facts.period_s),
        *(facts.etag, facts.last_modified, facts.digest, facts.captured, facts.gone),
        answer=facts.answer,
    )
    return sanitized(told)


def reported_visits(store: Store, done: Iterable[Key]) -> dict[bytes, VisitFacts]:
    """Return the facts about the visits to fetched pages, as their fetcher has journaled them."""
    visits = [visit for key in done if (visit := store.last_visit(key)) is not None]
    return {bytes(visit.key): facts_of(visit) for visit in visits}
