"""The target of a declarative refresh: a meta element, or the header field of the same name.

A refresh is a link: browsers go there after some seconds, and show the page until then. The syntax is that of HTML
("shared declarative refresh steps"). A decision: no I/O, no clock.

Tests: tests/crawl/content/test_html_links.py, tests/crawl/content/test_link_finder.py
"""

import re
from typing import Final

_REFRESH: Final = re.compile(
    r"\s*(?:\d[\d.]*|\.[\d.]*)(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(?:'([^']*)|\"([^\"]*)|(.+))",
    re.IGNORECASE | re.DOTALL,
)


def refresh_target(content: str) -> str | None:
    """Return the URL of a refresh as sent, or None if the page only loads itself again."""
    found = _REFRESH.match(content)
    return (found[1] or found[2] or found[3]) if found else None
