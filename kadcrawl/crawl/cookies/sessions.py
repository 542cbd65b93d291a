"""The sessions of sites with a login: when to log in, when a session is lost, and when to give up. A decision.

With a hook a login takes two requests, each in its turn at the site: first the page of the form, which is kept here for
`PAGE_KEPT_S`, then the request that the hook makes of it.

That a site is logged in stands in its jar, so it moves with the site. A site whose answers show that the session is
over, by a 401 or a redirect to the form, is logged in again before its next page. After `TRIES_MAX` logins in a row
that opened nothing, the site is given up for `GIVEN_UP_S`. A page that is closed although the session is new and opens
other pages is final, so that one page that needs more rights costs no login each time. Times are wall-clock seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kadcrawl.crawl.cookies.login_request import (
    LoginAnswer,
    LoginPage,
    LoginRequest,
    page_of,
    request_of,
    set_cookie_values,
)
from kadcrawl.crawl.cookies.site_cookies import SiteCookies
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.urls import canonical, path_of, site_of

TRIES_MAX = 3
"""Logins in a row that open no page, before a site is given up."""
GIVEN_UP_S = 3600.0
"""Seconds for which the URLs of such a site fail without a request."""
RETRY_S = 30.0
"""Seconds before a login that failed is tried again. The wait doubles each time."""
NEW_S = 60.0
"""Seconds for which a session counts as new."""
PAGE_KEPT_S = 600.0
"""Seconds for which the page of a form is kept for a hook. Its hidden fields may be good for no longer."""
SESSIONS_MAX = 10_000
"""Limit on the sites with a state in memory. The next site forgets them all: they may be tried again."""


@dataclass(slots=True)
class Session:
    """The state of one site."""

    failures: int = 0
    """Logins in a row that have opened nothing so far."""
    opened_at: float = 0.0
    """Second of the last login."""
    has_shown: bool = False
    """A page was shown since the last login."""
    given_up_until: float = 0.0
    page: LoginPage | None = None
    """The page of the form, until a hook reads it. It is here and in no file, as it has the secrets for the hook."""
    page_at: float = 0.0


class Sessions:
    """The sessions of the sites of one peer."""

    def __init__(self, cookies: SiteCookies, site_settings: SiteSettings, secrets: Mapping[str, str]) -> None:
        self._cookies = cookies
        self._site_settings = site_settings
        self._secrets = secrets
        self._sessions: dict[str, Session] = {}

    def login_before(self, site: str, url: str) -> SiteLogin | None:
        """Return the form to send before a page of this site is requested, or None if the site is logged in."""
        login = self._site_settings.login(url)
        return None if login is None or self._cookies.is_logged_in(site) else login

    def form(self, login: SiteLogin) -> LoginRequest:
        """Return the request of a form as it is sent."""
        return LoginRequest(login.url, form=login.body(self._secrets))

    def take_page(self, site: str, now: float) -> LoginPage | None:
        """Return the page of the form for its hook, once, or None if it must be fetched first."""
        session = self._session(site)
        page, session.page = session.page, None
        return page if now < session.page_at + PAGE_KEPT_S else None

    def note_page(self, site: str, login: SiteLogin, result: FetchResult, now: float) -> float:
        """Keep the page of a form for a hook. Return the seconds for which the site is left alone: none if it came."""
        session = self._session(site)
        if result.status is None:
            return self._failed(session, now)
        cookies = self._cookies.header(site, login.url, now)
        session.page, session.page_at = page_of(login, result, cookies, self._secrets), now
        return 0.0

    def note_hook(self, site: str, login: SiteLogin, answer: LoginAnswer, now: float) -> LoginRequest | None:
        """Set the cookies of a hook, and return its request, or None if the cookies are the login.

        Raises LoginHookError for an answer that may not be followed.
        """
        request = request_of(answer, login, self._site_settings)
        self._cookies.set(site, login.url, set_cookie_values(answer, login), now)
        return request

    def note_cookies(self, site: str, now: float) -> float:
        """Note that a hook has logged in by cookies alone. Return the seconds for which the site is left alone."""
        session = self._session(site)
        session.opened_at, session.has_shown = now, False
        return 0.0 if self._cookies.set_logged_in(site, is_logged_in=True) else self._failed(session, now)

    def note_failure(self, site: str, now: float) -> float:
        """Note that a hook has failed. Return the seconds for which the site is left alone."""
        return self._failed(self._session(site), now)

    def is_given_up(self, site: str, now: float) -> bool:
        """Return whether the URLs of a site fail, as nobody can log in there."""
        return now < self._session(site).given_up_until

    def note_login(self, site: str, login: SiteLogin, result: FetchResult, now: float) -> float:
        """Note the answer to a form. Return the seconds for which the site is left alone: none if the login worked."""
        session = self._session(site)
        session.opened_at, session.has_shown = now, False
        refused = result.status is None or result.status >= 400 or leads_to(result, login)
        if not refused and self._cookies.set_logged_in(site, is_logged_in=True):
            return 0.0
        return self._failed(session, now)

    def is_lost(self, site: str, url: str, result: FetchResult, now: float) -> bool:
        """Note the answer to the request for a page. Return whether the page is to be requested again after a login."""
        login = self._site_settings.login(url)
        if login is None or result.status is None:
            return False
        session = self._session(site)
        is_closed = result.status == 401 or leads_to(result, login)
        if not is_closed:
            if result.status < 400:
                session.has_shown, session.failures = True, 0
            return False
        if session.has_shown and now < session.opened_at + NEW_S:
            return False
        if not session.has_shown and session.opened_at:
            self._failed(session, now)
        self._cookies.set_logged_in(site, is_logged_in=False)
        return True

    def _failed(self, session: Session, now: float) -> float:
        session.failures += 1
        if session.failures < TRIES_MAX:
            return RETRY_S * 2.0 ** (session.failures - 1)
        session.failures, session.given_up_until = 0, now + GIVEN_UP_S
        return 0.0

    def _session(self, site: str) -> Session:
        if site not in self._sessions and len(self._sessions) >= SESSIONS_MAX:
            self._sessions.clear()
        return self._sessions.setdefault(site, Session())


def leads_to(result: FetchResult, login: SiteLogin) -> bool:
    """Return whether an answer is a redirect to the page of a form, whatever its query."""
    target = canonical(result.location, result.url) if result.location else None
    if target is None or site_of(target, "host") != site_of(login.url, "host"):
        return False
    return path_of(target).partition("?")[0] == path_of(login.url).partition("?")[0]
