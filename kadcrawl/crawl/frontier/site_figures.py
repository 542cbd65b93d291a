"""The figures of the active sites, for a person who watches the crawl: URLs left, pace, and wait.

The number of PENDING URLs of a site needs no look into the store. It is known if all of them are in memory. Otherwise
the digest of the site's cell counts the others, which belong to this site unless more sites of the cell wait there.
Then they share the number. A decision.

Tests: tests/crawl/frontier/test_site_figures.py
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kadcrawl.crawl.frontier.site import Site
from kadcrawl.keys import Cell
from kadcrawl.store.cell_digest import CellDigest


class SiteFigures(NamedTuple):
    """The figures of one active site."""

    site: str
    pending: int
    """URLs not finished, those in flight or lent included. An estimate if the site shares its cell with others."""
    delay_s: float
    """Least seconds between two requests."""
    wait_s: float
    """Seconds before the site may be asked again. 0 if a request is in flight or due."""
    request_s: float
    """Seconds that a request takes lately. 0 if unknown."""
    refusals: int = 0
    """Answers 429 or 503 in a row."""
    status: int = 0
    """Status of the last of them, or 0."""
    adapts: bool = False
    """The delay follows the time of the last answer."""
    takes_turns: bool = False
    """The site waits for its turn on a shared clock."""


def site_figures(
    sites: Mapping[Cell, Mapping[str, Site]],
    cells: Mapping[Cell, CellDigest],
    unread: Collection[Cell],
    now: float,
) -> list[SiteFigures]:
    """Return the figures of the sites with PENDING URLs, given the sites by cell.

    `unread` names the cells with further sites that are not active.
    """
    figures: list[SiteFigures] = []
    for cell, neighbors in sites.items():
        digest = cells.get(cell)
        elsewhere = (digest.pending if digest is not None else 0) - sum(len(site.loaded) for site in neighbors.values())
        sharers = sum(site.has_stored for site in neighbors.values()) + (cell in unread)
        share = max(0, elsewhere) // sharers if sharers else 0
        for site in neighbors.values():
            pending = len(site.loaded) + (share if site.has_stored else 0)
            if pending and not site.closed:
                due = site.due() if not site.in_flight else None
                wait_s = max(0.0, due - now) if due is not None else 0.0
                pace = (site.delay_s, wait_s, site.request_s, site.back_off.refusals, site.back_off.status)
                adapts = site.adaptive_s > site.least_s
                figures.append(SiteFigures(site.name, pending, *pace, adapts=adapts, takes_turns=site.parked))
    return figures
