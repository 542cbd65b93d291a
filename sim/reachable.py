"""What pages lead to, and so which URLs a crawl must find if it may not fetch some of them. No I/O.

A crawl that leaves a site out misses what only this site leads to. Pages of the site that were fetched before have led
on all the same. The links are those of the web's own answers, read without the code of kadcrawl: a link counts if a
correct crawl of the whole web fetches its target.
"""

import re
from collections.abc import Callable, Collection, Iterable
from urllib.parse import urldefrag, urljoin

from .annex import SITEMAP_USUAL, TRACKED
from .scene import ServedWeb

ASKED = 9
"""A page is read as it answers after so many requests, when no page is busy any more."""
OK = 200
_LINK = re.compile(r"""(?:href="|url=|Sitemap: |<link>|<loc>)([^"<\s]+)""")
_TRACKED = re.compile(rf"[?&](?:{'|'.join(name.replace('*', '[a-z]*') for name in TRACKED)})=[^&]*")


class LinkedPages:
    """The pages of one web, and their links."""

    def __init__(self, web: ServedWeb, known: Collection[str]) -> None:
        """`known` are the URLs that a crawl of the whole web asks for."""
        self._web = web
        self._known = frozenset(known)
        self._links: dict[str, tuple[str, ...]] = {}
        self._statuses: dict[str, int] = {}

    def links(self, url: str) -> tuple[str, ...]:
        """Return the known URLs that a page leads to."""
        if url not in self._links:
            self._links[url] = tuple(dict.fromkeys(filter(None, map(self._meant, self._hrefs(url)))))
        return self._links[url]

    def status(self, url: str) -> int:
        """Return the status of the last answer of a page."""
        if url not in self._statuses:
            host, _, path = url.removeprefix("http://").partition("/")
            self._statuses[url] = self._web.answer(host, f"/{path}", ASKED).status
        return self._statuses[url]

    def reached(
        self,
        starts: Iterable[str],
        *,
        through: Collection[str],
        is_left_out: Callable[[str, str], bool] = lambda page, url: False,
    ) -> set[str]:
        """Return the known URLs that these pages lead to.

        Links of the pages in `through` are followed on. `is_left_out` returns whether a link from a page to a URL does
        not count.
        """
        found: set[str] = set()
        waiting = list(starts)
        while waiting:
            page = waiting.pop()
            for url in self.links(page):
                if url not in found and not is_left_out(page, url):
                    found.add(url)
                    if url in through:
                        waiting.append(url)
        return found

    def _hrefs(self, url: str) -> Iterable[str]:
        host, _, path = url.removeprefix("http://").partition("/")
        answer = self._web.answer(host, f"/{path}", ASKED)
        fields = dict(answer.headers)
        said = f"{fields.get('Refresh', '')}\n{answer.body.decode()}"
        hrefs = [fields["Location"]] if "Location" in fields else _LINK.findall(said)
        if answer.status == OK:
            # The crawl takes the sitemaps of a site from its robots.txt, beside each of its pages.
            robots = self._web.answer(host, "/robots.txt", ASKED)
            hrefs += [*_LINK.findall(robots.body.decode()), SITEMAP_USUAL]
        return [urldefrag(urljoin(url, href.replace("&amp;", "&"))).url for href in hrefs]

    def _meant(self, url: str) -> str | None:
        """Return the known URL of a link, whose parameters the job may strip, or None."""
        if url not in self._known:
            url = _TRACKED.sub("", url)
        return url if url in self._known else None
