"""When a page is fetched again, and by what its server can say that it has not changed.

Decides only: made from the job, asked by the crawler when a page is finished (`next_visit`, `left_out`) and when it is
asked for again (`validators`). The period of a page is the job's; if the job adapts, it becomes shorter when the page
had changed and longer when it had not, as Nutch's AdaptiveFetchSchedule has it. A page that is gone (404, 410) is
asked for after twice the time, each time, and then no more. Any other failure may pass, so it changes nothing.

A sitemap that says that a page changed after its last visit brings the next one forward (`hastened`). It is believed
only so far that no page is visited again within the shortest period of the job, whatever sitemaps say and how often.
"""

from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from re import ASCII, compile as pattern

from kadcrawl.crawl.content.sitemap import AHEAD_S
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.link.wire.messages import VALIDATOR_CHARS_MAX
from kadcrawl.settings.job import RECRAWL_LEAST_S, RECRAWL_MOST_S, Job
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit

SHORTER, LONGER = 0.8, 1.4
"""By which an adapted period is multiplied (Nutch: db.fetch.schedule.adaptive.dec_rate, inc_rate)."""
GONE_MAX = {404: 4, 410: 2}
"""After how many visits in a row that found a page gone, the last with this status, it is not visited again."""

_ETAG = pattern(r'(?:W/)?"[\x21\x23-\x7e]*"')
"""RFC 9110 8.8.3, without the bytes that are not ASCII."""
_DIGEST = pattern(r"sha1:[A-Z2-7]{32}")
_WARC_DATE = pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", ASCII)


class Recrawl:
    """The rules of one job."""

    def __init__(self, job: Job) -> None:
        assert job.recrawl_after_s is not None, "the job fetches each page once"
        self._after_s = job.recrawl_after_s
        self._least_s, self._most_s = job.recrawl_bounds_s
        self._adapts = job.recrawl_adaptive

    def validators(self, visit: Visit) -> Sequence[tuple[str, str]]:
        """Return the header fields that make a GET conditional (RFC 9110 13.1), as far as the server gave any."""
        if not visit.digest:
            return ()
        fields = (("If-None-Match", visit.etag), ("If-Modified-Since", visit.last_modified))
        return [(name, value) for name, value in fields if value]

    def is_unchanged(self, visit: Visit, result: FetchResult, digest: str) -> bool:
        """Return whether the page is as it was when it was last received whole; `digest` is of its body now."""
        if not visit.digest:
            return False
        if result.status == 304:
            return bool(self.validators(visit))  # Else nobody asked whether it has changed.
        return result.status == 200 and result.error is None and digest == visit.digest

    def next_visit(
        self, entry: FrontierEntry, last: Visit | None, result: FetchResult, digest: str, captured: str, now: float
    ) -> Visit:
        """Return what is to be kept of a final answer; `captured` is the WARC-Date of its record, `now` in seconds."""
        last = last or self._first(entry)
        last = last._replace(depth=min(last.depth, entry.depth))
        if result.status in GONE_MAX:
            return self._gone(last, result.status, now)
        if result.why_failed is not None:
            return last._replace(due=now + last.period_s, gone=0)
        if result.status != 200 and not self.is_unchanged(last, result, digest):
            # A redirect, or an answer that fits no question: what it was is no matter.
            fresh = last._replace(etag="", last_modified="", digest="", captured="", gone=0)
            return fresh._replace(due=now + last.period_s)
        if self.is_unchanged(last, result, digest):
            period_s = self._adapted(last.period_s, LONGER)
            fields = result.header(b"etag"), result.header(b"last-modified")
            if result.status == 200 or any(fields):
                # A server that is set up anew has other tags for the same bytes.
                last = last._replace(etag=_etag(fields[0]), last_modified=_date(fields[1]))
            return last._replace(due=now + period_s, period_s=period_s, gone=0)
        # Of the first visit nobody knows whether it is a change.
        period_s = self._adapted(last.period_s, SHORTER) if last.digest else last.period_s
        return last._replace(
            due=now + period_s,
            period_s=period_s,
            etag=_etag(result.header(b"etag")),
            last_modified=_date(result.header(b"last-modified")),
            digest=digest,
            captured=captured,
            gone=0,
        )

    def unasked(self, entry: FrontierEntry, last: Visit | None, why: str, now: float) -> Visit | None:
        """Return what is to be kept of a page that was not asked for; None for nothing.

        robots.txt may change, and faults of ours be mended; what the job leaves out, or a peer has died of, is left
        out for good.
        """
        passes = why.startswith("robots") or why == "internal_error"
        if last is None and not passes:
            return None
        last = last or self._first(entry)
        return last._replace(due=now + self._wait_s(last) if passes else None)

    def hastened(self, visit: Visit, modified: float, now: float) -> float | None:
        """Return when to visit a page of which a sitemap says that it was modified; None to leave it at its time.

        `visit` is of a page that is done; all are wall-clock seconds. A visit does not say when it was made, but when
        the next is due and by what period: the difference is when it was made, as long as the next has not been
        brought forward. One that has been is due within the shortest period from then on, and a page due within that
        is left alone. So what was brought forward is not again, the difference is right where it is used, and two
        visits are never nearer than the shortest period.

        Of a page given up as gone nobody knows when that was. It comes back if it changed within its last period,
        which is about the time since its sitemap was looked at before; and after the shortest period, not now, as it
        may just have been visited.
        """
        soon = now + self._least_s
        if modified > now + AHEAD_S:
            return None
        if visit.due is None:
            return soon if visit.gone and modified > now - visit.period_s else None
        visited = visit.due - self._wait_s(visit)
        if visit.due <= soon or modified <= visited:
            return None
        return max(now, visited + self._least_s)

    def _first(self, entry: FrontierEntry) -> Visit:
        return Visit(entry.key, entry.site, entry.url, entry.depth, None, self._after_s, "", "", "", "", 0)

    def _gone(self, last: Visit, status: int, now: float) -> Visit:
        gone = last.gone + 1
        if gone >= GONE_MAX[status]:
            return last._replace(due=None, gone=gone)
        last = last._replace(gone=gone)
        return last._replace(due=now + self._wait_s(last))

    def _wait_s(self, visit: Visit) -> float:
        """Return the seconds between a visit and the next: the page's period, or longer if it is gone."""
        return min(visit.period_s * 2.0**visit.gone, max(self._most_s, 2 * visit.period_s))

    def _adapted(self, period_s: float, factor: float) -> float:
        if not self._adapts:
            return self._after_s
        return min(max(period_s * factor, self._least_s), self._most_s)


def sanitized(visit: Visit) -> Visit:
    """Return what another peer tells of a visit, less what no peer can have made of any answer.

    Its fields go into requests and WARC records as they are.
    """
    captured = _DIGEST.fullmatch(visit.digest) and _WARC_DATE.fullmatch(visit.captured)
    return visit._replace(
        period_s=min(max(visit.period_s, RECRAWL_LEAST_S), RECRAWL_MOST_S),
        etag=_etag(visit.etag),
        last_modified=_date(visit.last_modified),
        digest=visit.digest if captured else "",
        captured=visit.captured if captured else "",
        gone=min(visit.gone, max(GONE_MAX.values())),
    )


def _etag(value: str | None) -> str:
    """Return an entity tag that may be sent back as it is; empty if it may not."""
    value = (value or "").strip()
    return value if len(value) <= VALIDATOR_CHARS_MAX and _ETAG.fullmatch(value) else ""


def _date(value: str | None) -> str:
    """Return a date that may be sent back as it is; empty if it is none."""
    value = (value or "").strip()
    if not value.isascii() or not value.isprintable() or len(value) > VALIDATOR_CHARS_MAX:
        return ""
    try:
        parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    return value
