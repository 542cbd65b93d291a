"""Pages of a leaf that are finished after their loan was over: it tells whoever lent them, who still believes it.

A cell that moves does not wait for pages whose links are on their way, and takes them back. Should they be finished
all the same, a full peer tells whoever owns them by then (replication/holder.py); a leaf, which is believed nothing
but of what it was lent, tells its giver (`lending`), who passes it on. If that one is gone they are fetched again.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Key
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import BATCH_MAX, Contact, LeaseRenewed, Lend, LoanReport, RenewLease, SiteRecord
from kadcrawl.store.store import Store

LENT_MAX = 5_000
"""Pages of which it is remembered who lent them."""
LATE_REPORT_TRIES = 3
LATE_REPORT_RETRY_S = 2.0
LATE_REPORT_DEADLINE_S = 5.0

log = logging.getLogger(__name__)


class LateLoan(NamedTuple):
    """By which a page was lent."""

    id: bytes
    lender: Contact
    site: SiteRecord


class LateReports:
    """Those of one leaf."""

    def __init__(self, me: Contact, client: LinkClient, store: Store, forget: Callable[[Iterable[Key]], None]) -> None:
        """`forget` is called with keys whose giver knows that they are done."""
        self._me = me
        self._client = client
        self._store = store
        self._forget = forget
        self._lent: dict[Key, LateLoan] = {}
        self._finished: list[Key] = []
        self._report_now = asyncio.Event()

    def note_lent(self, keys: Iterable[Key], lend: Lend) -> None:
        """A loan of these was taken."""
        self._lent.update(dict.fromkeys(keys, LateLoan(lend.loan, lend.lender, lend.clock)))
        while len(self._lent) > LENT_MAX:
            del self._lent[next(iter(self._lent))]

    def forget(self, key: Key) -> None:
        """Its giver knows of it."""
        self._lent.pop(key, None)

    def note_finished(self, key: Key) -> None:
        """A page was finished after its loan was over."""
        if key in self._lent:
            self._finished.append(key)
            self._report_now.set()

    async def run(self) -> None:
        """Tell of what is finished; until cancelled."""
        while True:
            await self._report_now.wait()
            self._report_now.clear()
            keys, self._finished = self._finished, []
            await self._store.journal.durable()
            for _ in range(LATE_REPORT_TRIES):
                keys = await self._notify_owners(keys)
                if not keys:
                    break
                await asyncio.sleep(LATE_REPORT_RETRY_S)

    async def _notify_owners(self, keys: Sequence[Key]) -> list[Key]:
        """Tell all givers of these; return those that are left to be told. Who fails once is not asked for the rest."""
        by_loan: defaultdict[LateLoan, list[Key]] = defaultdict(list)
        for key in keys:
            if (loan := self._lent.get(key)) is not None:
                by_loan[loan].append(key)
        left: list[Key] = []
        silent: set[bytes] = set()
        for loan, done in by_loan.items():
            for start in range(0, len(done), BATCH_MAX):
                some = done[start : start + BATCH_MAX]
                if loan.lender.id in silent:
                    left += some
                    continue
                report = LoanReport(loan.id, loan.site, [*some], [], over=True)
                try:
                    await self._client.ask(
                        loan.lender, RenewLease(self._me, [report]), LeaseRenewed, LATE_REPORT_DEADLINE_S
                    )
                    self._forget(some)
                except RemoteError as error:
                    log.info("leaf.late_page_untold to=%s why=%s", loan.lender, error.why)
                    left += some
                    silent.add(loan.lender.id)
        return left
