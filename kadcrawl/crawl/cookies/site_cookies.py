"""The cookies of the sites that keep some (``cookies = "keep"``), over the store of the sites' owner.

The URLs of such sites are never lent, as one peer must know all cookies of a site. A jar is journaled when it changes,
goes to the backups of the site's cell, and moves with the cell.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from kadcrawl.crawl.cookies.jar import Jar
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.keys import Cell, Key, site_hash
from kadcrawl.settings.job import COUNT_MAX
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.kept_cookies import KeptCookies
from kadcrawl.store.site_table import SiteTable


class SiteCookies:
    """The cookies of all sites of one peer."""

    def __init__(self, sites: SiteTable, cell_of: Callable[[Key], Cell], site_settings: SiteSettings) -> None:
        self._sites = sites
        self._cell_of = cell_of
        self._site_settings = site_settings

    def keeps(self, url: str) -> bool:
        """Return whether the cookies of the host of a canonical URL are kept and sent."""
        return self._site_settings.keeps_cookies(url)

    def header(self, site: str, url: str, now: float) -> str:
        """Return the value of the Cookie header of a request for a URL of this site, or an empty text."""
        if not self.keeps(url):
            return ""
        return Jar.from_bytes(self._sites.cookies(site).jar).header(url, now)

    def learn(self, site: str, result: FetchResult, now: float) -> tuple[FetchResult, bool]:
        """Keep the cookies of an answer. Return the answer without them, and whether the jar of the site has changed.

        The answer goes into files, which are no place for the secrets of a session.
        """
        if not self.keeps(result.url) or result.status is None:
            return result, False
        values = [value.decode("latin-1") for name, value in result.headers if name.lower() == b"set-cookie"]
        if not values:
            return result, False
        jar = Jar.from_bytes(self._sites.cookies(site).jar)
        if changed := jar.learn(result.url, values, now):
            self._keep(site, jar)
        headers = tuple(header for header in result.headers if header[0].lower() != b"set-cookie")
        return replace(result, headers=headers), changed

    def set(self, site: str, url: str, values: Iterable[str], now: float) -> None:
        """Keep cookies, each a Set-Cookie value, as if the server of this URL had set them."""
        jar = Jar.from_bytes(self._sites.cookies(site).jar)
        if jar.learn(url, values, now):
            self._keep(site, jar)

    def is_logged_in(self, site: str) -> bool:
        """Return whether the cookies of a site are those of a session that a login form has begun."""
        return Jar.from_bytes(self._sites.cookies(site).jar).is_logged_in

    def set_logged_in(self, site: str, *, is_logged_in: bool) -> bool:
        """Note that a session has begun or is over. Return False for a session without a cookie, which is none."""
        jar = Jar.from_bytes(self._sites.cookies(site).jar)
        if is_logged_in and not len(jar):
            return False
        if jar.is_logged_in != is_logged_in:
            self._keep(site, jar.with_login(is_logged_in=is_logged_in))
        return True

    def _keep(self, site: str, jar: Jar) -> None:
        cell = self._cell_of(Key(site_hash(site)))
        self._sites.set_cookies(
            site, cell, KeptCookies(jar.to_bytes(), min(self._sites.cookies(site).version + 1, COUNT_MAX))
        )
