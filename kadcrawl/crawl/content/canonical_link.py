"""The canonical link of a page (RFC 6596) names the URL that should stand for the page.

With `Job.canonical` such a page counts as a redirect to that URL: its other links are not followed, as the links of the
named page are. Pages may name each other, and nothing must be lost by that. No memory is needed for this, only an
order: the named URL must be *simpler* (`simplicity`), so each chain of pages arrives at a page that is followed. A page
that was reached by a redirect, or named by another page, is always followed. So a site keeps its links when its plain
URLs redirect to decorated URLs that name the plain ones. Seeds are followed too, as somebody asked for them.

No I/O, no clock. The link finder calls this module once per HTML page.
"""

import re
from collections.abc import Iterator

from kadcrawl.urls import canonical, site_of

_LINK = re.compile(r'<([^<>]*+)>((?:[ \t]*+;[^,;"<]*+(?>(?:"(?:[^"\\]|\\.)*+")?))*+)')
"""A link of the header field: its target and its parameters (RFC 8288 3)."""
_PARAMETER = re.compile(r';[ \t]*+([\w!#$%&\'*+.^`|~-]++)[ \t]*+(?:=[ \t]*+(?:"((?:[^"\\]|\\.)*+)"|([^\s";,]*+)))?+')


def named_by_header(link: str, url: str) -> Iterator[str]:
    """Yield the canonical URLs a Link header field, several lines joined by commas, says the page at `url` has."""
    for found in _LINK.finditer(link):
        parameters: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(found[2]):
            parameters.setdefault(name.lower(), quoted or plain)
        # With an anchor it is about another page than this one.
        if "canonical" in parameters.get("rel", "").lower().split() and "anchor" not in parameters:
            target = canonical(found[1], url)
            if target is not None:
                yield target


def simplicity(url: str) -> tuple[bool, int, int, str]:
    """Return the place of a canonical URL in a strict order of all, the simplest first.

    https comes before http, then few parameters of the query before many, then short before long.
    """
    query = url.partition("?")[2]
    return not url.startswith("https:"), query.count("&") + 1 if query else 0, len(url), url


def may_replace(target: str, url: str) -> bool:
    """Say whether the page at a canonical URL may name `target` instead: of its registered domain, and simpler."""
    return simplicity(target) < simplicity(url) and site_of(target, "domain") == site_of(url, "domain")
