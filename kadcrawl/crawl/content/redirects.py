"""The fate of a redirect: it leads on, closes a loop, or takes a seed out of the scope.

A browser follows a chain of redirects and sees a loop at once. Here each URL of a chain is fetched by its owner, so a
redirect carries its *trail*: the hashes of the URLs that led there, from one owner to the next. A redirect to a URL of
its own trail closes a loop. A URL that was first found as a link of a page has no trail, so a loop of such URLs is not
seen. It costs nothing, as each URL is fetched once. The target of a redirect is forwarded even if a loop is seen: a
wrong trail costs no more than a wrong reason.

A decision: no I/O, no clock. The link finder calls this module once per redirect.

Tests: tests/crawl/content/test_link_finder.py, tests/peer/test_redirects.py
"""

from typing import Final, Literal

from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.scope.scope import Reason, Scope
from kadcrawl.keys import URL_BYTES, url_hash
from kadcrawl.link.wire.messages import TRAIL_BYTES_MAX
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.urls import site_of

Loop = Literal["redirect_loop", "cookie_wall"]
SEED_LEFT_SCOPE: Final = "seed_left_scope"
LOCATION_CHARS_MAX: Final = 2083
"""Limit on the characters of a target in a page line: as many as a URL to crawl has by default."""


def longer_trail(entry: FrontierEntry) -> bytes:
    """Return the trail of the target of an entry's redirect. Of a very long chain the trail has the end."""
    return (entry.trail + url_hash(entry.url))[-TRAIL_BYTES_MAX:]


def loop_of(entry: FrontierEntry, target: str, result: FetchResult) -> Loop | None:
    """Return the kind of loop that a redirect from the entry to this canonical URL closes, or None.

    A loop that sets a cookie wants the cookie back: a cookie wall.
    """
    trail = longer_trail(entry)
    hashes = {trail[start : start + URL_BYTES] for start in range(0, len(trail), URL_BYTES)}
    if url_hash(target) not in hashes:
        return None
    return "redirect_loop" if result.header(b"set-cookie") is None else "cookie_wall"


def why_seed_left(entry: FrontierEntry, target: str, scope: Scope) -> str | None:
    """Return in words why the redirect of a seed leads nowhere, and what to do, or None if it leads on.

    A URL to which a seed has led counts like the seed.
    """
    if entry.depth or not (entry.hops or scope.is_seed(entry.url)):
        return None
    why = scope.why_not(target, entry.depth)
    if why not in _LEAVING:
        return None
    return f"it leads to {target[:LOCATION_CHARS_MAX]}, {_advice(entry.url, target, scope, why)}"


_LEAVING: Final[frozenset[Reason | None]] = frozenset(
    {"scope", "include", "exclude", "proxy_judge", "site_off", "site_excluded", "scope_removed"}
)
"""Reasons that a person has given. The other reasons are limits."""


def _advice(url: str, target: str, scope: Scope, why: Reason | None) -> str:
    if why == "include":
        return "which matches no include; give that URL as a seed as well"
    if why == "exclude":
        return f"which matches exclude {scope.excluded_by(target)!r}; change that pattern"
    if why == "proxy_judge":
        return "the site of proxy-judge, which is not crawled; use another one"
    if why == "site_off":
        return "a site that the job leaves off; change its rule in [[sites]]"
    if why == "scope_removed":
        return "which a person took out of the scope; kadcrawl scope add brings it back"
    if why == "site_excluded":
        return "a site that a person excluded; kadcrawl site include lifts that"
    option = ""
    if scope.kind == "prefix" and site_of(target, "host") == site_of(url, "host"):
        option = "--scope host, or "
    elif scope.kind in ("host", "prefix") and site_of(target, "domain") == site_of(url, "domain"):
        option = "--scope domain, or "
    return f"which is out of scope; give {option}that URL as a seed as well"
