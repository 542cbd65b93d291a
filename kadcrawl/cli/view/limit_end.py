"""The sentences about a limit of the whole crawl that ended it and left URLs: --max-pages, --max-bytes or --max-time.

Tests: tests/cli/view/test_limit_end.py, tests/cli/view/test_last_lines.py
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kadcrawl.cli.view.summary import Summary
from kadcrawl.link.wire.census_rows import has_left
from kadcrawl.link.wire.messages import ROWS_MAX, PeerRow
from kadcrawl.settings.durations import shown
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_changes import changed
from kadcrawl.settings.units import shown_size as shown_bytes
from kadcrawl.system.plural import counted


@dataclass(frozen=True, slots=True)
class ReachedLimit:
    """A limit of the whole crawl that left URLs unfinished."""

    option: str
    """The option that moves the limit."""
    shown: str
    """The limit, as the option takes it."""
    more: str
    """A larger limit, with which the crawl goes on."""
    is_ordered: bool = False
    """True if an order moves the limit, whatever the option says."""
    lost: int = 0
    """Pages of the limit that are missing, as they were granted to peers that crashed: the same command goes on."""


def unfinished_summary(summary: Summary, job: Job) -> Iterator[str]:
    """Yield the reasons for which an ended crawl left URLs unfinished."""
    lacking = _lacking(summary)
    if (limit := limit_that_ended(summary, job)) is not None:
        yield limit_sentence(limit, lacking)
    elif lacking > 0 and job.max_pages is None:
        urls = f"{lacking} URL" + ("s" if lacking != 1 else "")
        yield (
            f"at least {urls} found here went to peers that are not counted here: they joined from elsewhere, or their "
            "directories were moved away"
        )


def limit_sentence(limit: ReachedLimit, left: int) -> str:
    """Return the sentence that this limit ended the crawl and left so many URLs."""
    urls = f": {counted(left, 'URL is', 'URLs are')} left" if left > 0 else ""
    early = f" {counted(limit.lost, 'page')} early, granted to peers that crashed" if limit.lost else ""
    return f"{limit.option} {limit.shown}{' by order' if limit.is_ordered else ''} ended it{early}{urls}"


def limit_that_ended(summary: Summary, job: Job, left: int | None = None) -> ReachedLimit | None:
    """Return the limit, of the job or by order, that left URLs of this crawl unfinished, or None.

    `left` is the number of URLs left. By default it is the difference of the URLs found and done.
    """
    is_left = (_lacking(summary) if left is None else left) > 0
    # URLs that failed use the limit as well, and a person may compare the pages with a limit that no peer told.
    max_pages = changed(job, summary.changed_settings).max_pages
    is_full = max_pages is not None and summary.pages >= max_pages
    kind = summary.limit_reached or ("pages" if is_full else "")
    if kind == "pages" and not is_left:
        return None
    limit = reached_limit(kind, job, summary.changed_settings)
    return None if limit is None else replace(limit, lost=summary.pages_lost)


def reached_limit(kind: str, job: Job, orders: Mapping[str, float]) -> ReachedLimit | None:
    """Return the limit of this kind (`PeerRow.limit`), of the job or by order, or None without such a limit."""
    job = changed(job, orders)
    if kind == "time" and job.max_time_s is not None:
        name, now, more = "max-time", shown(job.max_time_s), shown(2 * job.max_time_s)
    elif kind == "bytes" and job.max_bytes is not None:
        now, more = (shown_bytes(size).replace(" ", "") for size in (job.max_bytes, 2 * job.max_bytes))
        name = "max-bytes"
    elif kind == "pages" and job.max_pages is not None:
        name, now, more = "max-pages", str(job.max_pages), str(2 * job.max_pages)
    else:
        return None
    return ReachedLimit(f"--{name}", now, more, is_ordered=name in orders)


def with_pages_lost(summary: Summary, rows: Iterable[PeerRow], job: Job, elsewhere: int = 0) -> Summary:
    """Return the summary with the pages of the limit that none of these peers has begun, as crashed peers had them.

    The row of a crashed peer has the pages that it had begun as its grant, and no allowance. `elsewhere` is the number
    of pages that were granted to peers without a row.
    """
    max_pages = changed(job, summary.changed_settings).max_pages
    if summary.limit_reached != "pages" or max_pages is None:
        return summary
    begun = sum(row.granted - row.allowance for row in rows)
    return replace(summary, pages_lost=max(0, max_pages - begun - elsewhere))


def _lacking(summary: Summary) -> int:
    return summary.urls_found - summary.urls_done - summary.left_behind


class SwarmView:
    """The swarm as the command of one of its peers saw it last, for the last lines of that command."""

    def __init__(self) -> None:
        self._rows: Sequence[PeerRow] = ()
        self._begun: dict[bytes, int] = {}
        """Pages of `--max-pages` that each peer had begun when it was last seen."""

    def see(self, rows: Sequence[PeerRow]) -> None:
        """Note the rows of a census."""
        self._rows = rows
        for row in rows:
            if not row.hosted_leaf and (row.contact.id in self._begun or len(self._begun) < ROWS_MAX):
                self._begun[row.contact.id] = max(self._begun.get(row.contact.id, 0), row.granted - row.allowance)

    @property
    def has_pending(self) -> bool:
        """True if a peer that is there had URLs that were not finished."""
        return any(row.pending for row in self._rows if not has_left(row))

    def pages_lost(self, grants: Mapping[bytes, int]) -> int:
        """Return the most pages that crashed peers may have left of these grants. Each ID has the grant of a peer.

        A peer that is neither there nor has said goodbye has crashed, perhaps after it had begun more pages.
        """
        told = {row.contact.id for row in self._rows if not row.hosted_leaf}
        return sum(max(0, granted - self._begun.get(peer, 0)) for peer, granted in grants.items() if peer not in told)


def swarm_end_sentence(limit: ReachedLimit, lost: int) -> str:
    """Return the sentence of one peer about a limit that ended the crawl of its swarm.

    Crashed peers had at most `lost` pages left of the limit.
    """
    early = f" up to {counted(lost, 'page')} early" if lost else ""
    fetched = ": peers that crashed had them, and go on with them once they are started again" if lost else ""
    return f"{limit.option} {limit.shown} ended the crawl of the swarm{early}{fetched}"
