"""`KeptCookies`: the cookies of one site, as its holders keep them. `crawl/cookies/jar.py` reads them.

Tests: tests/store/test_store.py, tests/crawl/cookies/test_site_cookies.py
"""

from typing import NamedTuple


class KeptCookies(NamedTuple):
    """The jar of one site."""

    jar: bytes
    """The encoded cookies."""
    version: int
    """Number of changes. Of two states of a site the larger version counts."""


NO_COOKIES = KeptCookies(b"", 0)
"""The state of a site without cookies."""
