"""Logs in at a site in the slot of one of its entries, while no other request goes to the site.

A form is one request. With a hook the page of the form is a request of its own, and the hook is called in the slot of a
later entry. Neither the requests nor their answers go into a file.

Tests: tests/peer/test_site_login.py, tests/peer/test_login_hook.py
"""

import logging
from collections.abc import Awaitable, Callable

from kadcrawl.crawl.cookies.login_hook import CallHook
from kadcrawl.crawl.cookies.login_request import LoginHookError, LoginRequest
from kadcrawl.crawl.cookies.sessions import Sessions
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.system.clock import Clock

log = logging.getLogger(__name__)

Send = Callable[[LoginRequest], Awaitable[FetchResult | None]]
"""Sends a request in the slot of an entry. Returns None if no request went out."""


class LoggingIn:
    """The login at sites of one crawler."""

    def __init__(self, sessions: Sessions, frontier: Frontier, clock: Clock, call_hook: CallHook, limits: Limits):
        self._sessions = sessions
        self._frontier = frontier
        self._clock = clock
        self._call_hook = call_hook
        self._limits = limits

    async def log_in(self, site: str, login: SiteLogin, send: Send) -> None:
        """Take the next step of a login, and note what became of it."""
        if self._frontier.is_blocked(site):
            return
        self._frontier.block(site)
        try:
            wait_s = await self._step(site, login, send)
        finally:
            self._frontier.unblock(site, self._clock.now())
        if wait_s:
            now = self._clock.now()
            self._frontier.hold(site, now + wait_s, now)

    async def _step(self, site: str, login: SiteLogin, send: Send) -> float:
        """Send a request, and return the seconds for which the site is left alone."""
        sessions = self._sessions
        if not login.hook:
            return self._told(site, login, await send(sessions.form(login)))
        if (page := sessions.take_page(site, self._clock.now())) is None:
            answer = await send(LoginRequest(login.url))
            if answer is None or answer.error is FetchError.UNSURE:
                return 0.0
            wait_s = sessions.note_page(site, login, answer, self._clock.now())
            if answer.status is None:
                log.warning("login.failed site=%s status=%s why=%s", site, answer.status, answer.error)
            return wait_s
        try:
            result = await self._call_hook(login.hook, page, self._limits)
            request = sessions.note_hook(site, login, result, self._clock.now())
        except LoginHookError as error:
            log.warning("login.failed site=%s status=None why=%s", site, f"hook {login.hook}: {error}")
            return sessions.note_failure(site, self._clock.now())
        if request is not None:
            return self._told(site, login, await send(request))
        wait_s = sessions.note_cookies(site, self._clock.now())
        log.info("login.done site=%s", site)
        return wait_s

    def _told(self, site: str, login: SiteLogin, answer: FetchResult | None) -> float:
        """Note the answer to a request that logs in. Return the seconds for which the site is left alone."""
        if answer is None or answer.error is FetchError.UNSURE:
            return 0.0
        now = self._clock.now()
        wait_s = self._sessions.note_login(site, login, answer, now)
        if wait_s or self._sessions.is_given_up(site, now):
            log.warning("login.failed site=%s status=%s why=%s", site, answer.status, answer.error)
        else:
            log.info("login.done site=%s", site)
        return wait_s
