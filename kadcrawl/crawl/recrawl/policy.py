"""Decides when a page is fetched again, and whether the page has changed since.

A decision made from the job. The crawler asks when a page is finished (`next_visit`, `unasked`) and when it is
requested again (`validators`). The period of a page is that of its site's rule, or else of the job. If the job adapts
the period, it becomes shorter when the page had changed and longer when it had not, as in Nutch's
AdaptiveFetchSchedule. A page that is gone (404, 410) is requested after twice the time, each time, and then no more.
Any other failure may pass, so it changes nothing.

A sitemap may say that a page changed after its last visit, which brings the next visit forward (`hastened`). Whatever
sitemaps say, no page is visited again within the shortest period of the job.
"""

from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from re import ASCII, compile as pattern
from typing import Final

from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.scope.sitemap_urls import AHEAD_S
from kadcrawl.link.wire.messages import VALIDATOR_CHARS_MAX
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_rules import RECRAWL_LEAST_S, RECRAWL_MOST_S
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.last_answer import decoded
from kadcrawl.store.visit import Visit

SHORTER, LONGER = 0.8, 1.4
"""The factors for an adapted period (Nutch: db.fetch.schedule.adaptive.dec_rate, inc_rate)."""
GONE_MAX = {404: 4, 410: 2}
"""Visits in a row to a gone page after which visits end, by the status of the last visit."""

GONE_REASONS = {f"http_{status}": status for status in GONE_MAX}
"""The reasons of failures of gone pages, with their status."""

_ETAG = pattern(r'(?:W/)?"[\x21\x23-\x7e]*"')
"""Entity tags by RFC 9110 8.8.3, without the bytes that are not ASCII."""
_DIGEST = pattern(r"sha1:[A-Z2-7]{32}")
_WARC_DATE = pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", ASCII)


class Recrawl:
    """The recrawl rules of one job."""

    def __init__(self, job: Job) -> None:
        assert job.recrawl_after_s is not None, "the job fetches each page once"
        self._after_s = job.recrawl_after_s
        self._site_settings = SiteSettings(job)
        self._adapts = job.recrawl_adaptive

    def validators(self, visit: Visit) -> Sequence[tuple[str, str]]:
        """Return the header fields that make a GET conditional (RFC 9110 13.1), as far as the server sent
        validators."""
        if not visit.digest:
            return ()
        fields = (("If-None-Match", visit.etag), ("If-Modified-Since", visit.last_modified))
        return [(name, value) for name, value in fields if value]

    def is_unchanged(self, visit: Visit, result: FetchResult, digest: str) -> bool:
        """Return whether the page is the same as when it was last received whole.

        `digest` is the digest of the new body.
        """
        if not visit.digest:
            return False
        if result.status == 304:
            return bool(self.validators(visit))  # Without validators the request was not conditional.
        return result.status == 200 and result.error is None and digest == visit.digest

    def next_visit(
        self, entry: FrontierEntry, last: Visit | None, result: FetchResult, digest: str, captured: str, now: float
    ) -> Visit:
        """Return the visit to journal after a final answer.

        `captured` is the WARC-Date of the answer's record, and `now` is in wall-clock seconds.
        """
        visit = self._next_visit(entry, last, result, digest, captured, now)
        return visit if self._site_settings.recrawl_after_s(entry.url) else visit._replace(due=None)

    def _next_visit(
        self, entry: FrontierEntry, last: Visit | None, result: FetchResult, digest: str, captured: str, now: float
    ) -> Visit:
        last = last or self._first(entry)
        last = last._replace(depth=min(last.depth, entry.depth))
        if result.status in GONE_MAX:
            return self._gone(last, result.status, now)
        if result.why_failed is not None:
            return last._replace(due=now + last.period_s, gone=0)
        if result.status != 200 and not self.is_unchanged(last, result, digest):
            # A redirect, or an answer to no request: the earlier content does not matter.
            return _without_content(last, now)
        fields = _etag(result.header(b"etag")), _date(result.header(b"last-modified"))
        if self.is_unchanged(last, result, digest):
            if result.status == 200 or any(map(result.header, (b"etag", b"last-modified"))):
                # A server that is set up anew has other tags for the same bytes.
                last = last._replace(etag=fields[0], last_modified=fields[1])
            return self._unchanged(last, now)
        fresh = last._replace(etag=fields[0], last_modified=fields[1], digest=digest, captured=captured)
        return self._changed(last, fresh, now)

    def reported(
        self, entry: FrontierEntry, last: Visit | None, told: Visit | None, failed: str | None, now: float
    ) -> Visit | None:
        """Return the visit to journal after a borrower's report, or None if none is to be journaled.

        `told` is the visit as the borrower saw it, or None if it told nothing. Its facts count, and neither its period
        nor its due time.
        """
        known = last or self._first(entry)
        known = known._replace(depth=min(known.depth, entry.depth))
        if failed in GONE_REASONS and told is not None:
            visit = self._gone(known, GONE_REASONS[failed], now)
        elif failed and (told is None or told.due is None or _may_pass(failed)):
            return self.unasked(entry, last, failed, now)
        elif failed or told is None:
            visit = known._replace(due=now + known.period_s, gone=0)
        elif not told.digest:
            visit = _without_content(known, now)
        elif (told.digest, told.captured) == (known.digest, known.captured):
            visit = self._unchanged(known._replace(etag=told.etag, last_modified=told.last_modified), now)
        else:
            fields = {name: getattr(told, name) for name in ("etag", "last_modified", "digest", "captured")}
            visit = self._changed(known, known._replace(**fields), now)
        return visit if self._site_settings.recrawl_after_s(entry.url) else visit._replace(due=None)

    def unasked(self, entry: FrontierEntry, last: Visit | None, why: str, now: float) -> Visit | None:
        """Return the visit to journal for a page without a request, or None if none is to be journaled.

        A robots.txt may change, a site may refuse for an hour, and a bug here may be fixed. URLs that the job excludes,
        or that crashed a peer, are left out for good.
        """
        passes = _may_pass(why) and self._site_settings.recrawl_after_s(entry.url) > 0
        if last is None and not passes:
            return None
        last = last or self._first(entry)
        return last._replace(due=now + self._wait_s(last) if passes else None)

    def hastened(self, visit: Visit, modified: float, now: float) -> float | None:
        """Return the new time of the next visit after a sitemap reported a change, or None to keep the time.

        `visit` is the visit of a DONE page, and all times are wall-clock seconds. A visit has no date of its own, but
        the due time of the next visit and the period: their difference is the date, as long as the next visit has not
        been brought forward. A visit brought forward is due within the shortest period from then on, and a page due
        within that period is left alone. So no visit is brought forward twice, the difference is right where it is
        used, and two visits are never nearer than the shortest period.

        The date of a page given up as gone is unknown. Such a page comes back if it changed within its last period,
        which is about the time since its sitemap was read before. It comes back after the shortest period, not now, as
        it may just have been visited.
        """
        least_s, _ = self._site_settings.recrawl_bounds_s(visit.url)
        soon = now + least_s
        if modified > now + AHEAD_S:
            return None
        if visit.due is None:
            return soon if visit.gone and modified > now - visit.period_s else None
        visited = visit.due - self._wait_s(visit)
        if visit.due <= soon or modified <= visited:
            return None
        return max(now, visited + least_s)

    def _unchanged(self, last: Visit, now: float) -> Visit:
        period_s = self._adapted(last.url, last.period_s, LONGER)
        return last._replace(due=now + period_s, period_s=period_s, gone=0)

    def _changed(self, last: Visit, fresh: Visit, now: float) -> Visit:
        """Return `fresh`, the visit with the new content, with its next time. The first visit is no change."""
        period_s = self._adapted(last.url, last.period_s, SHORTER) if last.digest else last.period_s
        return fresh._replace(due=now + period_s, period_s=period_s, gone=0)

    def _first(self, entry: FrontierEntry) -> Visit:
        period_s = self._period_s(entry.url)
        return Visit(entry.key, entry.site, entry.url, entry.depth, None, period_s, "", "", "", "", 0)

    def _period_s(self, url: str) -> float:
        """Return the period with which a page begins. A page that is fetched once has that of the job."""
        return self._site_settings.recrawl_after_s(url) or self._after_s

    def _gone(self, last: Visit, status: int, now: float) -> Visit:
        gone = last.gone + 1
        if gone >= GONE_MAX[status]:
            return last._replace(due=None, gone=gone)
        last = last._replace(gone=gone)
        return last._replace(due=now + self._wait_s(last))

    def _wait_s(self, visit: Visit) -> float:
        """Return the seconds between a visit and the next visit: the page's period, or longer if the page is gone."""
        return min(
            visit.period_s * 2.0**visit.gone,
            max(self._site_settings.recrawl_bounds_s(visit.url)[1], 2 * visit.period_s),
        )

    def _adapted(self, url: str, period_s: float, factor: float) -> float:
        if not self._adapts:
            return self._period_s(url)
        least_s, most_s = self._site_settings.recrawl_bounds_s(url)
        return min(max(period_s * factor, least_s), most_s)


_PASSING: Final = frozenset({"internal_error", "site_refused", "address_refused", "login_failed"})
"""Reasons without a request that a later visit may not meet again, beside those of robots.txt.

A site that refuses requests for a while, or whose name leads to a private address for a while, comes back by itself."""


def _may_pass(why: str) -> bool:
    """Return whether a page was left out for a reason that may pass."""
    return why.startswith("robots") or why in _PASSING


def _without_content(last: Visit, now: float) -> Visit:
    return last._replace(etag="", last_modified="", digest="", captured="", gone=0, due=now + last.period_s)


def sanitized(visit: Visit) -> Visit:
    """Return a visit reported by another peer, without values that no server's answer can have produced.

    The fields go into requests, WARC records and page lines as they are.
    """
    captured = _DIGEST.fullmatch(visit.digest) and _WARC_DATE.fullmatch(visit.captured)
    return visit._replace(
        period_s=min(max(visit.period_s, RECRAWL_LEAST_S), RECRAWL_MOST_S),
        etag=_etag(visit.etag),
        last_modified=_date(visit.last_modified),
        digest=visit.digest if captured else "",
        captured=visit.captured if captured else "",
        gone=min(visit.gone, max(GONE_MAX.values())),
        answer=visit.answer if decoded(visit.answer) is not None else "",
    )


def _etag(value: str | None) -> str:
    """Return an entity tag that may be sent back as it is, or an empty string."""
    value = (value or "").strip()
    return value if len(value) <= VALIDATOR_CHARS_MAX and _ETAG.fullmatch(value) else ""


def _date(value: str | None) -> str:
    """Return a date that may be sent back as it is, or an empty string."""
    value = (value or "").strip()
    if not value.isascii() or not value.isprintable() or len(value) > VALIDATOR_CHARS_MAX:
        return ""
    try:
        parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    return value
