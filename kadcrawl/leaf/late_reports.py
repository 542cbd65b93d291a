"""`LateReports`: reports of pages that a leaf finishes after their loan is over.

A cell that moves takes back pages whose links are still on their way. A full peer that finishes such a page tells the
cell's new owner (replication/holder_side.py). A leaf is trusted only about pages it was lent, so it tells its lender,
who passes the news on (lending/lender.py). If the lender is gone, the page is fetched again.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Key
from kadcrawl.lending.visit_facts import reported_visits
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import BATCH_MAX, Contact, LeaseRenewed, Lend, LoanReport, RenewLease, SiteRecord
from kadcrawl.store.store import Store
from kadcrawl.system.event import Event

LENT_MAX = 5_000
"""Pages whose lender is remembered."""
LATE_REPORT_TRIES = 3
LATE_REPORT_RETRY_S = 2.0
LATE_REPORT_DEADLINE_S = 5.0

log = logging.getLogger(__name__)


class LateLoan(NamedTuple):
    """The loan that lent a page."""

    id: bytes
    lender: Contact
    site: SiteRecord


class LateReports:
    """The late reports of one leaf."""

    def __init__(self, me: Contact, client: LinkClient, store: Store, forget: Callable[[Iterable[Key]], None]) -> None:
        """`forget` is called with the keys of pages that their lender knows to be done."""
        self._me = me
        self._client = client
        self._store = store
        self._forget = forget
        self._lent: dict[Key, LateLoan] = {}
        self._finished: dict[Key, str] = {}
        """Pages to be reported -> the reason of a failure, or empty."""
        self._report_now = Event()

    def note_lent(self, keys: Iterable[Key], lend: Lend) -> None:
        """Remember the loan of these pages."""
        self._lent.update(dict.fromkeys(keys, LateLoan(lend.loan, lend.lender, lend.clock)))
        while len(self._lent) > LENT_MAX:
            del self._lent[next(iter(self._lent))]

    def forget(self, key: Key) -> None:
        """Forget a page that its lender knows to be done."""
        self._lent.pop(key, None)

    def note_finished(self, key: Key, failed: str = "") -> None:
        """Report soon a page that was finished after its loan was over."""
        if key in self._lent:
            self._finished[key] = failed
            self._report_now.set()

    async def run(self) -> None:
        """Report finished pages, until cancelled."""
        while True:
            await self._report_now.wait()
            self._report_now.clear()
            keys, self._finished = self._finished, {}
            await self._store.journal.durable()
            for _ in range(LATE_REPORT_TRIES):
                keys = await self._report(keys)
                if not keys:
                    break
                await asyncio.sleep(LATE_REPORT_RETRY_S)

    async def _report(self, keys: Mapping[Key, str]) -> dict[Key, str]:
        """Report these pages to their lenders, and return the pages that no lender has acknowledged.

        A lender that fails once is not asked again in this round.
        """
        by_loan: defaultdict[LateLoan, list[Key]] = defaultdict(list)
        for key in keys:
            if (loan := self._lent.get(key)) is not None:
                by_loan[loan].append(key)
        unacknowledged: list[Key] = []
        silent: set[bytes] = set()
        for loan, done in by_loan.items():
            for start in range(0, len(done), BATCH_MAX):
                some = done[start : start + BATCH_MAX]
                if loan.lender.id in silent:
                    unacknowledged += some
                    continue
                failed = {bytes(key): keys[key] for key in some if keys[key]}
                visits = reported_visits(self._store, some)
                report = LoanReport(loan.id, loan.site, [*some], [], over=True, failed=failed, visits=visits)
                try:
                    await self._client.ask(
                        loan.lender, RenewLease(self._me, [report]), LeaseRenewed, LATE_REPORT_DEADLINE_S
                    )
                    self._forget(some)
                except RemoteError as error:
                    log.info("leaf.late_page_unreported to=%s why=%s", loan.lender, error.why)
                    unacknowledged += some
                    silent.add(loan.lender.id)
        return {key: keys[key] for key in unacknowledged}
