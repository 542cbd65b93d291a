"""The sites that refuse requests, as `kadcrawl status` shows them: why, and when each is asked again.

Tests: tests/cli/view/test_status.py
"""

from collections.abc import Iterator, Sequence

from kadcrawl.link.wire.messages import PeerRow, RefusingSite
from kadcrawl.settings.durations import roughly

SITES_SHOWN_MAX = 5
"""Limit on the sites in the sentence. The JSON has up to this many of each peer."""


def refusing_sites(rows: Sequence[PeerRow]) -> list[RefusingSite]:
    """Return the sites that refuse requests, the longest wait first."""
    return sorted((site for row in rows for site in row.refusing), key=lambda one: (-one.wait_s, one.site))


def sentences(rows: Sequence[PeerRow], refusals_max: int) -> Iterator[str]:
    """Yield a sentence about the sites that refuse requests, and about those that the crawl has given up."""
    sites, count = refusing_sites(rows), sum(row.refusing_count for row in rows)
    if not sites:
        return
    shown = [_in_words(site) for site in sites[:SITES_SHOWN_MAX]]
    rest = max(0, count - len(shown))
    more = f", and {rest} more" if rest else ""
    yield f"{count} site{'s' * (count != 1)} refuse{'s' * (count == 1)} requests: {', '.join(shown)}{more}"
    if refusals_max and any(site.refusals >= refusals_max for site in sites):
        yield f"after {refusals_max} refusals in a row (--refusals) the URLs of a site fail until it is asked again"


def _in_words(site: RefusingSite) -> str:
    when = f"in {roughly(site.wait_s)}" if site.wait_s >= 1 else "now"
    return f"{site.site} ({site.status}, {site.refusals} in a row, asked again {when})"
