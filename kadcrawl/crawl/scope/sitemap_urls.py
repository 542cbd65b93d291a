"""URLs of sitemaps: where a site keeps one, and which URLs look like one. Pure.

Tests: tests/crawl/content/test_sitemap.py
"""

from kadcrawl.urls import origin_of, path_of

AHEAD_S = 86_400.0
"""Seconds that a date may lie in the future: a day begins in Tokyo before it begins in Greenwich, and clocks differ."""

SITEMAP_PATH = "/sitemap.xml"
"""The path of a site's sitemap if its robots.txt names none."""


def of_origin(url: str, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sitemaps of this canonical URL's origin. `named` are the sitemaps in its robots.txt."""
    return named or (origin_of(url) + SITEMAP_PATH,)


def named_like_one(url: str) -> bool:
    """Say whether a canonical URL looks like that of a sitemap: /sitemap.xml, /sitemaps/posts-1.txt, /part.xml.gz."""
    path = path_of(url).partition("?")[0].lower()
    return path.endswith(".xml.gz") or ("sitemap" in path and path.endswith((".xml", ".txt", ".txt.gz")))
