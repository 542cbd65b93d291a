"""The annex of a site: some twenty URLs that only some jobs follow, and which of them a correct crawl fetches. No I/O.

A link, a page and a header say nofollow, links differ only in tracking parameters or in the order of their parameters,
a header and an element say refresh, and a feed and a sitemap list pages without any other link. Each page but these is
linked from one page only, so a link that a crawler follows or not shows in its requests. Shares no code with kadcrawl.
"""

from collections.abc import Iterator

import msgspec

HOME = "/annex/"
SITEMAP = "/annex/map"
"""The sitemap, if robots.txt names one."""
SITEMAP_USUAL = "/sitemap.xml"
"""The sitemap of a site whose robots.txt names none."""
PAGES = 12
"""URLs that most jobs fetch of an annex."""
TRACKED = ("utm_*", "from")
"""Names of parameters that a job may strip from links."""

_HTML = (("Content-Type", "text/html; charset=utf-8"),)
_XML = (("Content-Type", "application/xml"),)
_TEXT = (("Content-Type", "text/plain"),)


class Annex(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The annex of one site, and the settings of the job that decide what is fetched of it."""

    site: int
    """The number of the site, the largest first."""
    ignores_nofollow: bool = False
    strips: bool = False
    """The job strips the parameters `TRACKED` from links, and links have some."""
    sorts: bool = False
    """The job sorts queries."""
    sitemaps: bool = False
    """The job follows sitemaps and feeds."""

    def paths(self, *, follows_sitemaps: bool, names_sitemap: bool) -> Iterator[str]:
        """Yield the paths that a correct crawl fetches of the annex.

        `follows_sitemaps` is true if the job or its rule for the site follows sitemaps, and `names_sitemap` if
        robots.txt names that of the annex.
        """
        yield from (HOME, "/annex/meta", "/annex/tag", "/annex/refresh", "/annex/refreshed", "/annex/rested")
        yield from ("/annex/feed", "/annex/list?a=1&b=2")
        if not self.sorts:
            yield "/annex/list?b=2&a=1"
        if self.ignores_nofollow:
            yield from ("/annex/of-rel", "/annex/of-meta", "/annex/of-tag")
        if follows_sitemaps:
            yield "/annex/of-feed"
            if names_sitemap:
                yield from (SITEMAP, "/annex/of-map")

    def answer(self, target: str, origin: str, *, is_atom: bool) -> tuple[tuple[tuple[str, str], ...], bytes]:
        """Return the headers and the body at a path that begins as `HOME` does. A crawl may ask for any of them."""
        match target.partition("?")[0].removeprefix(HOME):
            case "":
                return _HTML, self._home()
            case "meta":
                return _HTML, b'<meta name="robots" content="nofollow">' + _anchor("/annex/of-meta")
            case "tag":
                return (*_HTML, ("X-Robots-Tag", "nofollow")), _anchor("/annex/of-tag")
            case "refresh":
                return (*_TEXT, ("Refresh", f"1; url={self._tracked('/annex/refreshed', 'from=there')}")), b"soon"
            case "refreshed":
                return _HTML, b'<meta http-equiv="refresh" content="1; url=/annex/rested">'
            case "feed":
                return _XML, _feed(f"{origin}{self._tracked('/annex/of-feed', 'utm_source=feed')}", is_atom=is_atom)
            case "map":
                return _XML, b"<urlset><url><loc>%s/annex/of-map</loc></url></urlset>" % origin.encode()
        return _HTML, b"<p>nothing leads on</p>"

    def _home(self) -> bytes:
        links = ["/annex/tag", "/annex/refresh", "/annex/feed", "/annex/list?a=1&b=2", "/annex/list?b=2&a=1"]
        links += [self._tracked(path, "utm_source=home") for path in (HOME, "/annex/meta", "/annex/list?b=2&a=1")]
        return b'<a rel="nofollow" href="/annex/of-rel">x</a>' + b"".join(map(_anchor, links))

    def _tracked(self, path: str, parameter: str) -> str:
        """Return a path with a parameter that the job strips, if it strips any."""
        return path + ("&" if "?" in path else "?") + parameter if self.strips else path


def _anchor(path: str) -> bytes:
    return b'<a href="%s">x</a>\n' % path.replace("&", "&amp;").encode()


def _feed(url: str, *, is_atom: bool) -> bytes:
    if is_atom:
        return b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="%s"/></entry></feed>' % url.encode()
    return b"<rss><channel><item><link>%s</link></item></channel></rss>" % url.replace("&", "&amp;").encode()
