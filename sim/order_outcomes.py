"""The outcomes of URLs that a person leaves out of the running crawl: sentences about those that are wrong. No I/O."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from math import inf
from typing import NamedTuple

from kadcrawl.urls import origin_of

from .judges import HEARD_S, UNDER_WAY_S, Facts, Line, StoppedSites, known_at
from .reachable import LinkedPages

DROPPED = "site_dropped"
"""The failure of a URL that an order to drop has ended."""


class LeftOut(NamedTuple):
    """An order that leaves URLs out."""

    reason: str
    """The failure of a URL that ends because of the order."""
    urls: frozenset[str]
    """The URLs of its site."""
    stopped: StoppedSites
    owed: frozenset[str] = frozenset()
    """URLs of the site that finished pages led to before the order."""
    pending: frozenset[str] = frozenset()
    """Those of them that had not ended."""


def odd_outcomes(facts: Facts, orders: Sequence[LeftOut]) -> Iterator[str]:
    """Yield sentences about left-out URLs with other than one outcome, but for changes of their owner."""
    lines: defaultdict[str, list[Line]] = defaultdict(list)
    for line in facts.lines:
        lines[line.url].append(line)
    for order in orders:
        told = f"{order.stopped.from_s:.3f} s, {order.reason}"
        yield from (f"{url} was found before the order at {told}, and has no line" for url in order.owed - lines.keys())
    reasons = {order.reason for order in orders}
    for url, found in lines.items():
        ended = [line.failed for line in found if line.failed in reasons]
        for reason in dict.fromkeys(ended):
            # A site that refuses everything, or forbids everything, has URLs that no crawl of the whole web asks for.
            if not any(one.reason == reason and origin_of(url) in one.stopped.sites for one in orders):
                yield f"{url} ended as {reason}, and no order says so"
        changes = max(facts.changes.get(origin_of(url), 0), facts.changes.get(url, 0))
        most = (1 + max(changes, len({line.machine for line in found}) - 1)) * (1 + facts.orders)
        if ended and len(found) > most:
            told = ", ".join(f"{count} {how}" for how, count in Counter(_outcome(line) for line in found).items())
            yield f"{url} has {len(found)} lines, with {changes} changes of owner: {told}"


def dropped_in_vain(
    facts: Facts, orders: Sequence[LeftOut], pages: LinkedPages, seeds: Collection[str]
) -> Iterator[str]:
    """Yield sentences about URLs that were pending at an order to drop and fetched all the same, or found later."""
    first_s: dict[str, float] = {}
    for fetch in facts.fetches:
        first_s.setdefault(fetch.url, fetch.at_s)
    found_s: dict[str, float] = dict.fromkeys(seeds, -inf)
    for page, at_s in first_s.items():
        for url in pages.links(page):
            found_s[url] = min(found_s.get(url, inf), at_s)
    dropped = {line.url for line in facts.lines if line.failed == DROPPED}
    for order in orders:
        from_s, others = order.stopped.from_s, {url for one in orders if one is not order for url in one.urls}
        for fetch in facts.fetches:
            # An order to retry may bring a URL back that was fetched before, and failed.
            is_first = not facts.orders or first_s[fetch.url] == fetch.at_s
            is_late = fetch.at_s > known_at(facts, order.stopped, fetch) + UNDER_WAY_S
            if fetch.url in order.pending and is_late and is_first:
                yield f"{fetch.url} was fetched by {fetch.machine} at {fetch.at_s:.3f} s, dropped at {from_s:.3f} s"
        # A peer that was not there as all others heard may come back without the order. One that joins later has it.
        is_calm = not any(begun_s <= from_s <= until_s + HEARD_S for begun_s, until_s in facts.disturbed)
        for url in sorted((dropped & order.urls) - others):
            at_s = found_s.get(url, -inf)
            if order.stopped.all_heard and is_calm and at_s > from_s:
                yield f"{url} was dropped by an order of {from_s:.3f} s, and found at {at_s:.3f} s"


def _outcome(line: Line) -> str:
    return line.failed or str(line.status)
