"""The wishes of a page to crawlers: the header field X-Robots-Tag, and the robots meta elements of a page.

A decision: no I/O, no clock. Only directives for all crawlers, or for this crawler by its name, count.

Tests: tests/crawl/content/test_html_links.py, tests/crawl/content/test_link_finder.py
"""

import re
from typing import NamedTuple

from kadcrawl.settings.request_headers import TOKEN_DEFAULT

_WORD = re.compile(r"[\w-]+")
_WITH_VALUE = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))
"""Words of X-Robots-Tag that are followed by a colon without being a crawler's name."""


class RobotsDirectives(NamedTuple):
    """The directives of one page."""

    noindex: bool
    nofollow: bool


def directives(x_robots_tag: str, meta: str = "", agent: str = TOKEN_DEFAULT) -> RobotsDirectives:
    """Return the directives of these header values and of these contents of meta elements, each joined by commas.

    `agent` is our name where a page speaks to one crawler, as in ``X-Robots-Tag: kadcrawl: nofollow``.
    """
    if not x_robots_tag and not meta:
        return _NONE
    asked = set(_WORD.findall(f"{_addressed_to_us(x_robots_tag, agent.lower())},{meta.lower()}"))
    return RobotsDirectives(bool(asked & {"noindex", "none"}), bool(asked & {"nofollow", "none"}))


_NONE = RobotsDirectives(noindex=False, nofollow=False)


def _addressed_to_us(x_robots_tag: str, us: str) -> str:
    """Return the value of an X-Robots-Tag without the parts addressed to other crawlers."""
    words = []
    ours = True
    for word in x_robots_tag.lower().split(","):
        agent, colon, rule = word.partition(":")
        if colon and agent.strip() not in _WITH_VALUE:
            ours = agent.strip() == us
            word = rule
        if ours:
            words.append(word)
    return ",".join(words)
