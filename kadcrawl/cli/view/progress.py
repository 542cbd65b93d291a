"""A crawl as a person sees it while it runs: a live table on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kadcrawl.cli.view.blocked_reasons import blocked_reasons, explained, in_words
from kadcrawl.cli.view.summary import next_due_s
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.peer_state import GONE
from kadcrawl.settings.durations import roughly

if TYPE_CHECKING:
    from kadcrawl.cli.view.table import LiveTable

LINE_INTERVAL_S = 2.0
SAME_INTERVAL_S = 300.0
"""Seconds between two equal lines: the log of a crawl of months is read for events."""
RATE_OVER_S = 5.0


class Progress:
    """Shows rows of peers as they change. A context manager; `update` as often as there is news."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = time.monotonic()
        self._samples: list[tuple[float, int]] = []
        """Instants, and pages fetched by then since this began to look."""
        self._seen: dict[tuple[bytes, bool], int] = {}
        """Pages of each peer, or leaf, as last shown."""
        self._line_at = 0.0
        self._told: tuple[object, ...] = ()
        """The figures in the last line."""
        self._waiting: dict[str, int] = {}
        self._table: LiveTable | None = None

    def __enter__(self) -> "Progress":
        if sys.stderr is not None and sys.stderr.isatty():
            from kadcrawl.cli.view.table import LiveTable

            self._table = LiveTable()
            self._table.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._table is not None:
            self._table.stop()

    def say(self, text: str) -> None:
        """Print a sentence above the table."""
        if self._table is not None:
            self._table.say(text)
        else:
            click.echo(text, err=True)

    def update(self, rows: Sequence[PeerRow]) -> None:
        """Show the swarm as these rows describe it."""
        now = time.monotonic()
        pages = sum(row.counters.pages for row in rows)
        fetched = (self._samples[-1][1] if self._samples else 0) + self._more(rows)
        self._samples = [sample for sample in self._samples if now - sample[0] < RATE_OVER_S] + [(now, fetched)]
        pending = sum(row.pending for row in rows)
        failed = sum(sum(row.counters.failed.values()) for row in rows)
        living = sum(row.state not in GONE for row in rows)
        waiting = blocked_reasons(rows)
        for sentence in explained(waiting.keys() - self._waiting.keys()):
            self.say(sentence)
        self._waiting = waiting
        what = in_words(waiting, living)
        line = self._line((pages, pending, failed, living), self._rate(), what, int(now - self._began))
        due_s = next_due_s(rows)
        if due_s is not None and not pending:
            line += f", next page due {'now' if due_s < 1 else f'in {roughly(due_s)}'}"
        if self._table is not None:
            self._table.update(line, rows)
            return
        told = pages, pending, failed, living, what
        is_news = self._told != told
        if now >= self._line_at + (0.0 if is_news else SAME_INTERVAL_S):
            self._told = told
            self._line_at = now + LINE_INTERVAL_S
            click.echo(line, err=True)

    def _more(self, rows: Sequence[PeerRow]) -> int:
        """Return the pages fetched since the last look, without earlier pages of peers that come or come back."""
        before, self._seen = (
            self._seen,
            {(row.contact.id, row.hosted_leaf): row.counters.pages for row in rows},
        )
        return sum(max(0, pages - before.get(which, pages)) for which, pages in self._seen.items())

    def _rate(self) -> float:
        (first_at, first), (last_at, last) = self._samples[0], self._samples[-1]
        return max(0, last - first) / (last_at - first_at) if last_at > first_at else 0.0

    def _line(self, counts: tuple[int, int, int, int], rate: float, what: str, seconds: int) -> str:
        pages, pending, failed, living = counts
        peers = f"{living} peer" + ("s" if living != 1 else "")
        return (
            f"{self._title}: {pages} pages ({rate:.1f}/s), {pending} pending, {failed} failed, "
            f"{peers}{what}, {seconds // 60}:{seconds % 60:02}"
        )
