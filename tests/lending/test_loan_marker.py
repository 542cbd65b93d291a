"""Test that the journal says whether pages are on loan before a borrower can know it."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from kadcrawl.balance.leases import LEASE_S
from kadcrawl.crawl.frontier.other_requests import LOANS, LOANS_OUT, NO_LOANS
from kadcrawl.lending.loan_marker import LoanMarker
from kadcrawl.store.store import Store


def opened(directory: Path) -> Store:
    store = Store(directory, 0.0)
    store.begin(4)
    return store


def marker_of(store: Store, loans: list[str], now: Callable[[], float]) -> LoanMarker:
    return LoanMarker(store, lambda: bool(loans), now)


async def next_run(directory: Path, store: Store, now: float) -> Store:
    """End a run, and open its journal again."""
    store.saved_time.save(now)
    await store.journal.commit()
    store.close()
    store = opened(directory)
    store.saved_time.restore(now)
    return store


def on_disk(directory: Path) -> bytes:
    """Return the entry as another process reads it."""
    with closing(sqlite3.connect(directory / "peer.sqlite")) as db:
        value: bytes = db.execute("SELECT value FROM meta WHERE name=?", (LOANS_OUT,)).fetchone()[0]
    return value


def test_a_loan_is_noted_on_disk_before_its_offer(tmp_path: Path) -> None:
    async def note() -> None:
        store = opened(tmp_path)
        commits = asyncio.create_task(store.journal.run())
        marker = marker_of(store, ["loan"], lambda: 9.0)
        await marker.noted()
        assert LOANS == on_disk(tmp_path)
        commits.cancel()
        await asyncio.gather(commits, return_exceptions=True)
        store.close()

    asyncio.run(note())


def test_the_entry_follows_the_loans(tmp_path: Path) -> None:
    store, loans = opened(tmp_path), list[str]()
    marker = marker_of(store, loans, lambda: 9.0)
    marker.update()
    assert NO_LOANS == store.meta.get(LOANS_OUT)
    loans.append("loan")
    marker.update()
    assert LOANS == store.meta.get(LOANS_OUT)
    loans.clear()
    marker.update()
    assert NO_LOANS == store.meta.get(LOANS_OUT)
    store.close()


def test_after_a_run_with_loans_the_entry_stays_until_its_borrowers_have_stopped(tmp_path: Path) -> None:
    """A run that ends at once must not hide the loans of the run before."""

    async def runs() -> None:
        store = opened(tmp_path)
        marker_of(store, ["loan"], lambda: 9.0).update()
        store = await next_run(tmp_path, store, 9.0)
        now = 10.0
        marker = marker_of(store, [], lambda: now)
        marker.update()
        assert LOANS == store.meta.get(LOANS_OUT)
        now = 10.0 + LEASE_S - 0.01
        marker.update()
        assert LOANS == store.meta.get(LOANS_OUT)
        now = 10.0 + LEASE_S
        marker.update()
        assert NO_LOANS == store.meta.get(LOANS_OUT)
        store.close()

    asyncio.run(runs())


def test_a_run_of_a_version_without_the_entry_may_have_lent(tmp_path: Path) -> None:
    async def runs() -> None:
        store = await next_run(tmp_path, opened(tmp_path), 9.0)
        marker_of(store, [], lambda: 10.0).update()
        assert LOANS == store.meta.get(LOANS_OUT)
        store.close()

    asyncio.run(runs())
