"""The back-off of sites that refuse requests: the length of each wait, its end, and the sites that the crawl gives up.

A site refuses a request with status 429 or 503. If the answer names a wait (Retry-After), that wait counts. Otherwise
the first wait is `Limits.back_off_s`, and each further refusal doubles it, up to `Limits.back_off_max_s`. Each answer
that is no refusal halves it. Requests that were in flight as the wait began change nothing: they are no sign of what
the site does after the wait. A decision: times are wall-clock seconds given by the caller.
"""

from kadcrawl.settings.limits import Limits
from kadcrawl.store.back_off import NO_REFUSALS, BackOff

REFUSALS_COUNTED_MAX = 1_000_000
"""Refusals in a row beyond which the count stands still, the limit of the wire."""
VERSION_MAX = 2**53
"""Changes beyond which the count stands still, the limit of the wire."""


def refused(known: BackOff, status: int, asked_s: float, now: float, limits: Limits) -> BackOff:
    """Return the state after a refusal. `asked_s` is the wait that the site asks for, or 0."""
    if now < known.until:
        until = max(known.until, now + asked_s)
        return known if until == known.until else _counted(known._replace(until=until))
    wait_s = known.wait_s
    if not asked_s:
        wait_s = min(max(limits.back_off_s, 2 * wait_s), limits.back_off_max_s)
    refusals = min(known.refusals + 1, REFUSALS_COUNTED_MAX)
    return _counted(BackOff(refusals, wait_s, status, now + (asked_s or wait_s), known.version))


def answered(known: BackOff, now: float, limits: Limits) -> BackOff:
    """Return the state after an answer that is no refusal."""
    if known is NO_REFUSALS or now < known.until or not (known.refusals or known.wait_s):
        return known
    half_s = known.wait_s / 2
    return _counted(known._replace(refusals=0, wait_s=half_s if half_s >= limits.back_off_s else 0.0))


def newer(known: BackOff, told: BackOff, now: float, limits: Limits) -> BackOff:
    """Return the newer of two copies. `told` comes from another holder, so its instants and waits have limits."""
    if told.version <= known.version:
        return known
    until = min(told.until, now + max(limits.back_off_max_s, limits.retry_after_max_s))
    return told._replace(wait_s=min(told.wait_s, limits.back_off_max_s), until=until)


def _counted(changed: BackOff) -> BackOff:
    return changed._replace(version=min(changed.version + 1, VERSION_MAX))
