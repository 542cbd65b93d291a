"""The figures of a whole crawl, added up from its peers, for --summary and the last lines.

Tests: tests/cli/view/test_status.py, tests/cli/view/test_last_lines.py, tests/cli/test_parts.py
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from kadcrawl.cli.view.failed_examples import PAGE_LOG, by_counted_reason
from kadcrawl.cli.view.repeats import milliseconds, recurring_visits
from kadcrawl.cli.view.result_files import shown_size
from kadcrawl.link.wire.given_order import GivenOrder, orders_in_force
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.unresolved import still_done, still_failed, urls_found
from kadcrawl.settings.durations import shown
from kadcrawl.settings.job import Job
from kadcrawl.store.log_parts import log_lines
from kadcrawl.system.plural import counted

LINES_COMPARED_MAX = 1_000_000
"""Lines of page logs in which repeats are looked for: about 100 MB of memory and a second or two."""
_TIME_BITS = 48
"""Bits of the time of a page line, in milliseconds since 1970: more than the year 9999 needs."""

_OPTIONS = {
    "depth": " (--max-depth)",
    "path_segments": " (--max-path-segments)",
    "path_repeats": " (--max-path-repeats)",
    "query_parameters": " (--max-parameters)",
    "site_pages": " (--max-site-pages)",
    "path_queries": " (--max-path-queries)",
}
"""The options that move a limit. Fields of `Limits` move the other limits."""


class _Logged(msgspec.Struct):
    """A line of pages.jsonl, as far as it matters here."""

    url: str
    visit: int = 0
    failed: str | None = None


class _DatedLine(_Logged, kw_only=True):
    """A line of pages.jsonl whose visit has no number, and so is told by its time."""

    fetched_at: datetime


@dataclass(frozen=True, slots=True)
class PeerSummary:
    """The figures of one peer in a summary."""

    id: str
    """ID of the peer, 20 bytes in hex."""
    pages: int
    """URLs that the peer fetched and a server answered, with any status."""
    urls: int
    """URLs that the peer accepted as their owner."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all peers, since the crawl's directory was made."""

    pages: int
    """URLs that a server answered, with any status. Another visit counts again."""
    bytes: int
    """Bytes of bodies as received."""
    urls_found: int
    """URLs that the peers accepted as their owners, at least those done and pending. With fingerprints and a recrawl
    each visit counts."""
    urls_done: int
    """URLs that are finished, fetched or failed. A URL that is to be fetched again is out until it is. A URL that two
    peers finished, as after a crash, counts at both. With fingerprints and a recrawl each visit counts."""
    urls_failed: dict[str, int]
    """URLs whose last visit failed, by reason. The reasons are those of pages.jsonl, with rare HTTP statuses taken
    together."""
    duplicates: int
    """Pages that were fetched twice, although no visit was due. With fingerprints and a recrawl no peer knows when a
    visit is due, and a page counts if it was fetched again sooner than any visit is."""
    left_behind: int
    """URLs known only to peers that died for good, and not crawled."""
    links_seen: int
    """Links found on pages, repeats included."""
    links_left_out: dict[str, int]
    """Links that a limit kept from being followed as they were found, by limit, repeats included."""
    peer_messages: int
    """Messages between peers, datagrams included."""
    revisits: int
    """Pages that were fetched again when they were due, or by an order to retry. A retried URL counts also if nobody
    could request it before, as after `address_refused`. 0 with fingerprints, which do not tell a later visit from the
    first."""
    unchanged: int
    """Pages fetched again without a change."""
    records: int | None
    """Lines of records.jsonl, or None if the job has no records."""
    record_errors: int | None
    """Pages whose hook or selectors failed, so that they have no records. None if the job has no records."""
    seconds: float | None
    """Seconds of this run. None if no run has just ended."""
    peers: list[PeerSummary]
    """The figures of each peer, in the order of IDs."""
    limit_reached: str = ""
    """The limit that ended the crawl before its end: `pages`, `bytes` or `time`. Empty otherwise."""
    paused_sites: list[str] = field(default_factory=list)
    """Sites that an order of a person keeps paused, a host or `*.` and a domain, the latest order first."""
    changed_settings: dict[str, float] = field(default_factory=dict)
    """Settings of the job that an order has changed: seconds, bytes or counts, by the name of the option."""
    orders: list[GivenOrder] = field(default_factory=list)
    """The orders of people that stand, the latest first."""
    pages_lost: int = 0
    """Pages of `--max-pages` that were granted to peers that crashed, and not fetched, so that the limit ended the
    crawl early. The same command goes on with them."""
    damaged_journals: list[str] = field(default_factory=list)
    """Directories of peers whose figures are missing, as their journals are damaged. None while a peer answers."""
    failed_examples: dict[str, str] = field(default_factory=dict)
    """The last failed URL of each reason, as far as the page logs were read."""

    def as_json(self) -> dict[str, Any]:
        figures = asdict(self)
        if self.records is None:
            del figures["records"], figures["record_errors"]
        if self.seconds is None:
            del figures["seconds"]
        return figures


def add_up(rows: Iterable[PeerRow], seconds: float | None, job: Job, told: Iterable[StandingOrder] = ()) -> Summary:
    """Return the summary of these peers, which crawl this job and were told these standing orders."""
    orders = orders_in_force(told)
    rows = sorted(rows, key=lambda row: row.contact.id)
    left_out: Counter[str] = Counter()
    for row in rows:
        left_out.update(row.counters.left_out)
    return Summary(
        pages=sum(row.counters.pages for row in rows),
        bytes=sum(row.counters.bytes for row in rows),
        urls_found=urls_found(rows),
        urls_done=still_done(row.counters for row in rows),
        urls_failed=still_failed(row.counters for row in rows),
        duplicates=sum(row.counters.duplicates for row in rows),
        left_behind=0,
        links_seen=sum(row.counters.links_seen for row in rows),
        links_left_out=dict(sorted(left_out.items())),
        peer_messages=sum(row.counters.peer_messages for row in rows),
        revisits=sum(row.counters.revisits for row in rows),
        unchanged=sum(row.counters.unchanged for row in rows),
        records=sum(row.counters.records for row in rows) if job.records else None,
        record_errors=sum(row.counters.record_errors for row in rows) if job.records else None,
        seconds=None if seconds is None else round(seconds, 3),
        peers=[PeerSummary(row.contact.id.hex(), row.counters.pages, row.counters.urls) for row in rows],
        limit_reached=_limit_reached(rows, job),
        paused_sites=[one.about for one in orders if one.kind == "pause" and one.value],
        changed_settings={one.about: one.value for one in orders if one.kind == "set"},
        orders=orders,
    )


def _limit_reached(rows: Sequence[PeerRow], job: Job) -> str:
    """Return the limit of the crawl that is reached and left URLs unfinished, or an empty text."""
    is_left = any(row.pending for row in rows) or job.recrawl_after_s is not None
    return next((row.limit for row in rows if row.limit), "") if is_left else ""


def figures_line(summary: Summary) -> str:
    """Return the figures of a crawl in one line, without its end."""
    failed = sum(summary.urls_failed.values())
    why = f": {reasons(summary.urls_failed)}" if failed else ""
    at_least = "at least " if summary.urls_done > LINES_COMPARED_MAX else ""
    records = "" if summary.records is None else f"{summary.records} records, "
    if summary.record_errors:
        records += f"{summary.record_errors} record_errors, "
    seconds = "" if summary.seconds is None else f", {summary.seconds:.1f} s"
    return (
        f"{counted(summary.pages, 'page')}, {shown_size(summary.bytes)}, {records}"
        f"{summary.urls_done} of {summary.urls_found} URLs done ({failed} failed{why}),"
        f" {at_least}{summary.duplicates} fetched twice{seconds}"
    )


def reasons(failed: Mapping[str, int]) -> str:
    """Return the reasons of failed URLs with their counts, or an empty text."""
    return ", ".join(f"{reason} {count}" for reason, count in sorted(failed.items()))


def failed_before(seeds: int) -> str:
    """Return the words about seeds that a person has named again."""
    return f"{seeds} seed{'s' if seeds != 1 else ''} that failed before {'are' if seeds != 1 else 'is'} fetched again"


def unreachable_sentence(network_wait_s: float) -> str:
    """Return the sentence about a crawl whose peers reached no site for a while."""
    waited = f"; after {shown(network_wait_s)} (--network-wait) URLs fail" if network_wait_s else ""
    return f"network unreachable: for a while no peer reached any site{waited}; kadcrawl retry has failed URLs fetched"


def next_due_s(rows: Iterable[PeerRow]) -> float | None:
    """Return the seconds until the first page of these peers is fetched again, or None."""
    return min((row.due_s for row in rows if row.due_s is not None), default=None)


def limits_met(links_left_out: Mapping[str, int]) -> Iterator[str]:
    """Yield sentences on the limits that kept links out, with the options that move them."""
    counts = dict(links_left_out)
    without_session = counts.pop("session_id", 0)
    without_parameters = counts.pop("parameters", 0)
    left_to_others = counts.pop("canonical", 0)
    of_twins = counts.pop("twins", 0)
    nofollow = counts.pop("nofollow", 0)
    if counts:
        parts = ", ".join(f"{limit} {count}{_OPTIONS.get(limit, '')}" for limit, count in counts.items())
        yield f"limits left out {sum(counts.values())} links, repeats included: {parts}"
    if without_session:
        yield f"{without_session} links were followed without their session IDs (--session-ids)"
    if without_parameters:
        yield f"{without_parameters} links were followed without parameters of their queries (--strip-parameters)"
    if left_to_others:
        yield f"{left_to_others} links, repeats included, were left to the pages named as canonical (--canonical)"
    if nofollow:
        yield f"{nofollow} links, repeats included, were not followed, as they say nofollow (--nofollow)"
    if of_twins:
        yield f"{of_twins} links, repeats included, were not followed on near-identical pages (--twins)"


class PageLogs:
    """The URLs in the page logs of some peers."""

    def __init__(self, directories: Iterable[Path], job: Job | None = None) -> None:
        """Read the page logs in these directories, as far as they are there. `job` is their job, if it is known."""
        self._lines = 0
        self._recurring = recurring_visits(job)
        self._decoder = msgspec.json.Decoder(_Logged if self._recurring is None else _DatedLine)
        self._dated: list[int] = []
        """Hash and time of each line whose visit has no number. One number for both takes half of the memory."""
        # 64 bits each: among a million URLs, two agree by chance in one of ten million crawls.
        self._seen: set[int] = set()
        self._examples: dict[str, str] = {}
        """The last failed URL of each exact reason."""
        for directory in directories:
            for line in log_lines(directory / PAGE_LOG):
                if line.endswith(b"\n"):  # Else its writer was killed in the middle of it.
                    self._note(line)

    def _note(self, line: bytes) -> None:
        """Note a line, unless it is damaged."""
        try:
            logged = self._decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError):
            return
        self._lines += 1
        self._seen.add(hash((logged.url, logged.visit)))
        if isinstance(logged, _DatedLine):
            at = max(0, milliseconds(logged.fetched_at))
            self._dated.append((hash(logged.url) & (1 << 64) - 1) << _TIME_BITS | at)
        if logged.failed is not None:
            self._examples[logged.failed] = logged.url

    @property
    def repeats(self) -> int:
        """The number of lines about a visit to a URL that has another line (repeats.py)."""
        if self._recurring is not None:
            lines = sorted(self._dated)
            return self._recurring.repeats((one >> _TIME_BITS, one & (1 << _TIME_BITS) - 1) for one in lines)
        return self._lines - len(self._seen)

    @property
    def failed_examples(self) -> dict[str, str]:
        """A failed URL of each reason, by the names of the counters."""
        return by_counted_reason(self._examples)

    def lacking(self, urls: Iterable[str]) -> int:
        """Return how many different URLs among these have no line."""
        return len({hash((url, 0)) for url in urls} - self._seen)
