"""The rules of a simulated job for single sites, as data that a plan, the web and the judges share.

Shares no code with kadcrawl, whose own rules `sim/job_rules.py` makes of these.
"""

from collections.abc import Iterable

import msgspec

EVERY = -1
"""In place of a site's number: all sites that have no treatment of their own."""
TREATED_MOST = 9
"""Sites that may have a treatment of their own: the smallest. No other site hangs from them (`sim/synthetic_sites.py`),
so that all others are reached without them."""


class SiteTreatment(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The treatment of one site in a job."""

    site: int = EVERY
    """The number of the site, counted from the smallest."""
    is_starred: bool = False
    """The rule says `*.host` and not `host`."""
    off: bool = False
    """The site is no part of the crawl."""
    delay_s: float | None = None
    """Seconds between two requests, in place of the job's. A robots.txt may ask for more."""
    connections: int | None = None
    """Requests that may be under way at a time, without a delay."""
    retries: int | None = None
    """Further tries of a page that keeps failing, in place of the job's."""
    pages_max: int | None = None
    """URLs of the site that are crawled at most. Which they are depends on the order of the links."""
    sitemaps: bool | None = None
    """The site's sitemaps are followed, or not, whatever the job does."""
    header: str = ""
    """The value of the header `RULE_HEADER` in each request."""
    cookies: bool = False
    """The site shows its pages only to a visitor with a cookie (`sim/wall.py`), and its cookies are kept."""
    login: bool = False
    """It gives the cookie to whoever sends a form with a password."""
    refuses: bool = False
    """The site refuses every request for a page, and the job gives it up."""
    ignores_robots: bool = False
    """The robots.txt of the site, which forbids everything, is not obeyed."""


USUAL_TREATMENT = SiteTreatment()
"""The treatment of a site without a rule."""
RULE_HEADER = "X-Rule"


def by_number(treatments: Iterable[SiteTreatment], sites: int, seeds: int) -> list[SiteTreatment]:
    """Return the treatment of each of the `sites` sites, the largest first, of which the first `seeds` are seeds."""
    treatments = list(treatments)
    usual = next((one for one in treatments if one.site == EVERY), USUAL_TREATMENT)
    found = [usual] * sites
    room = min(TREATED_MOST, sites - seeds)
    for one in treatments:
        if one.site != EVERY and room:
            found[sites - 1 - one.site % room] = one
    return found
