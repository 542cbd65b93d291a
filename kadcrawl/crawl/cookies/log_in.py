"""Sends the login form of a site in the slot of one of its entries, while no other request goes to the site.

Neither the request nor its answer goes into a file.

Tests: tests/peer/test_site_login.py
"""

import logging
from collections.abc import Awaitable, Callable

from kadcrawl.crawl.cookies.sessions import Sessions
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.system.clock import Clock

log = logging.getLogger(__name__)

Send = Callable[[str, bytes], Awaitable[FetchResult | None]]
"""Sends a form to a URL in the slot of an entry. Returns None if no request went out."""


async def log_in(site: str, login: SiteLogin, sessions: Sessions, frontier: Frontier, clock: Clock, send: Send) -> None:
    """Send a login form, and note what became of it."""
    if frontier.is_blocked(site):
        return
    frontier.block(site)
    try:
        answer = await send(login.url, sessions.form(login))
    finally:
        frontier.unblock(site, clock.now())
    if answer is None or answer.error is FetchError.UNSURE:
        return
    now = clock.now()
    wait_s = sessions.note_login(site, login, answer, now)
    frontier.hold(site, now + wait_s, now)
    if wait_s or sessions.is_given_up(site, now):
        log.warning("login.failed site=%s status=%s why=%s", site, answer.status, answer.error)
    else:
        log.info("login.done site=%s", site)
