"""A crawl as a person sees it while it runs: a live view on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kadcrawl.cli.say import silence, tell
from kadcrawl.cli.view.blocked_reasons import blocked_reasons, explained, in_words
from kadcrawl.cli.view.live.estimate import bar_of, time_left
from kadcrawl.cli.view.live.expectation import Expectation
from kadcrawl.cli.view.live.picture import Picture
from kadcrawl.cli.view.live.samples import Samples
from kadcrawl.cli.view.live.sites import SiteReport
from kadcrawl.cli.view.summary import next_due_s
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.peer_state import GONE
from kadcrawl.link.wire.unresolved import still_failed
from kadcrawl.settings.durations import roughly
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.system.plural import counted, plural
from kadcrawl.system.printable import printable

if TYPE_CHECKING:
    from kadcrawl.cli.view.live.draw import LiveView

LINE_INTERVAL_S = 2.0
SAME_INTERVAL_S = 300.0
"""Seconds between two equal lines: the log of a crawl of months is read for events."""
SITES_INTERVAL_S = 2.0
"""Seconds between two looks at the sites while a terminal shows them."""
SITES_INTERVAL_PLAIN_S = 20.0
"""Seconds between two looks at the sites elsewhere, where they serve only to correct the expectation."""


class Progress:
    """Shows rows of peers as they change. A context manager; `update` as often as there is news."""

    def __init__(self, title: str, *, sees_all: bool = True) -> None:
        """With `sees_all`, `update` gets the sites of all peers, and else the sites of one peer."""
        self._title = title
        self._sites_head = "largest and slowest sites" + ("" if sees_all else " of this peer")
        self._began = time.monotonic()
        self._samples = Samples()
        self._job = Job()
        self._site_settings = SiteSettings(self._job)
        self._expectation: Expectation | None = None
        self._line_at = 0.0
        self._told: tuple[object, ...] = ()
        """The figures in the last line."""
        self._waiting: dict[str, int] = {}
        self._view: LiveView | None = None

    def __enter__(self) -> "Progress":
        if sys.stderr is not None and sys.stderr.isatty():
            from kadcrawl.cli.view.live.draw import LiveView

            self._view = LiveView()
            self._draw(self._view.start)
        return self

    def __exit__(self, *_: object) -> None:
        if self._view is not None:
            self._draw(self._view.stop)

    @property
    def sites_interval_s(self) -> float:
        """Seconds between two reports of sites that `update` can use."""
        return SITES_INTERVAL_PLAIN_S if self._view is None else SITES_INTERVAL_S

    def say(self, text: str) -> None:
        """Print a sentence above the live view. It stays one line, so that a command in it can be copied."""
        self._print(text, wrap=False)

    def expect(self, job: Job, expectation: Expectation) -> None:
        """Say the expectation of a crawl of this job. Corrections follow later."""
        self._job = job
        self._site_settings = SiteSettings(job)
        if self._expectation is None:  # Peers that all died begin anew, which is the same crawl.
            self._expectation = expectation
            for sentence in expectation.sentences():
                self._print(printable(sentence), wrap=True)

    def update(
        self,
        rows: Sequence[PeerRow],
        sites: SiteReport = SiteReport(),  # noqa: B008 - frozen
        *,
        reads_seeds: bool = False,
    ) -> None:
        """Show the swarm as these rows and sites describe it. `reads_seeds` explains a pause (blocked_reasons.py)."""
        now = time.monotonic()
        self._samples.add(now, rows)
        waiting = blocked_reasons(rows, reads_seeds=reads_seeds)
        sentences = [*explained(waiting.keys() - self._waiting.keys())]
        if self._expectation is not None:
            sentences += self._expectation.corrections(sites, now - self._began)
        for sentence in sentences:
            self._print(printable(sentence), wrap=True)
        self._waiting = waiting
        living = sum(row.state not in GONE for row in rows)
        peers = f"{living} peer{'s' if living != 1 else ''}{in_words(waiting, living)}"
        seconds = int(now - self._began)
        ends = [peers, f"{seconds // 60}:{seconds % 60:02}"]
        if paused := max((row.paused_sites for row in rows), default=0):
            ends.append(f"{paused} site{'s' if paused != 1 else ''} paused by order")
        due_s = next_due_s(rows)
        if due_s is not None and not any(row.pending for row in rows):
            ends.append(f"next page due {'now' if due_s < 1 else f'in {roughly(due_s)}'}")
        if self._view is not None:
            view, picture = self._view, self._picture(rows, sites, ends)
            self._draw(lambda: view.update(picture))
        else:
            self._print_line(now, rows, ends)

    def _print(self, text: str, *, wrap: bool) -> None:
        """Print a sentence. With `wrap` a terminal may break the sentence between two words."""
        if self._view is not None:
            view = self._view
            self._draw(lambda: view.say(text, wrap=wrap))
        else:
            tell(text, err=True)

    def _draw(self, draw: Callable[[], None]) -> None:
        """Draw on the terminal. A terminal that is gone ends the drawing, and not the crawl."""
        try:
            draw()
        except OSError:
            view, self._view = self._view, None
            silence(sys.stderr)
            if view is not None:
                with suppress(OSError):
                    view.stop()

    def _picture(self, rows: Sequence[PeerRow], sites: SiteReport, ends: Sequence[str]) -> Picture:
        pages, pending = sum(row.counters.pages for row in rows), sum(row.pending for row in rows)
        bar = bar_of(rows, self._job.max_pages)
        return Picture(
            headline=[f"{self._title}: {plural(pages, 'page')}", f"{pending:,} pending", *ends],
            rows=rows,
            bar=bar,
            time_left=time_left(bar, self._samples.trend, sites.least_s),
            page_rate=self._samples.page_rate,
            page_rates=self._samples.page_rates,
            sites_head=self._sites_head,
            sites=sites,
            site_settings=self._site_settings,
        )

    def _print_line(self, now: float, rows: Sequence[PeerRow], ends: Sequence[str]) -> None:
        """Print the figures, if they are news or old."""
        pages, pending = sum(row.counters.pages for row in rows), sum(row.pending for row in rows)
        failed = sum(still_failed(row.counters for row in rows).values())
        told = pages, pending, failed, ends[0]
        is_news = self._told != told
        if now >= self._line_at + (0.0 if is_news else SAME_INTERVAL_S):
            self._told = told
            self._line_at = now + LINE_INTERVAL_S
            figures = (
                f"{counted(pages, 'page')} ({self._samples.page_rate:.1f}/s)",
                f"{pending} pending",
                f"{failed} failed",
            )
            tell(f"{self._title}: {', '.join((*figures, *ends))}", err=True)
