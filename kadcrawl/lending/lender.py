"""The giver's side of load balance: pages of ours that other peers fetch for us (link/wire/loan_messages.py).

What is lent stays PENDING here, as if the crawler had it: it is `out` in the frontier, and nothing else is asked of the
site by way of the connections lent. A loan ends when all of it is done or has come back, or when its taker has not been
heard of for so long that it has surely stopped (balance/leases.py). A cell that closes calls its loans back, and is
busy until they have ended; so a range never moves while somebody else may still ask its sites.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any

from kadcrawl.balance.leases import RENEW_S, lender_takes_back_at
from kadcrawl.balance.loan_backoff import LoanBackoff
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    CONNECTIONS_MAX,
    LOANS_MAX,
    ActiveLoan,
    Contact,
    LeaseRenewed,
    Lend,
    Lent,
    LoanReport,
    Recall,
    Recalled,
    RenewLease,
)
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.replication.cells import NotRunningError
from kadcrawl.replication.record_codec import WAIT_MAX_S, Records
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store

LOAN_DEADLINE_S = 5.0
LOAN_BYTES = 8
CONNECTION_WAIT_S = 5.0
"""How long a loan waits for requests of ours that still use its connections."""
CONNECTION_POLL_S = 0.05
RECALLED_MAX_S = 130.0
"""How long after its recall a loan may still be reported on, and how long its site may be asked without anything coming
of it: no request lasts longer (`Limits.fetch_timeout_s`)."""
LOST_SITES_MAX = 1_000
"""Sites remembered as lent and lost."""
LATE_PAGES_MAX = 10_000
"""Pages remembered that have come back."""
RETURNED_WAIT_MAX_S = 3600.0
"""Of a page that came back: longer its taker cannot keep it from being fetched."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Loan:
    """Pages of one site with another peer."""

    id: bytes
    borrower: Contact
    site: str
    cell: Cell
    entries: dict[Key, FrontierEntry]
    """Neither done nor back."""
    connections: int
    """Requests the taker may have under way at a time."""
    moved_at: float
    """Wall-clock second at which something of it was last done or came back, or at which it began."""
    until: float = inf
    """Second of the loop at which it is taken back unless its taker is heard of."""
    hold_until: float = 0.0
    """Wall-clock second before which the site must not be asked, as its taker last said."""
    waits_until: float = 0.0
    """The same, of what the site has asked for beyond its delay, as its taker ever said."""
    recalled_at: float | None = None
    """Second of the loop at which it was called back, ..."""
    stuck: bool = False
    """... as nothing came of it."""
    begun: bool = False
    """A report of it was answered, so that its taker may fetch."""
    made_progress: bool = False
    """Something of it was done by its taker."""


class Lender:
    """All loans of one giver."""

    def __init__(
        self,
        *,
        me: Callable[[], Contact],
        client: LinkClient,
        store: Store,
        frontier: Frontier,
        records: Records,
        activity: Activity,
        now: Callable[[], float],
        random: Random,
        wake: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """`now` gives wall-clock seconds; `wake` is called when entries have come back or are done.

        `spawn` starts a task that ends with the peer.
        """
        self._me = me
        self._client = client
        self._store = store
        self._frontier = frontier
        self._records = records
        self._activity = activity
        self._now = now
        self._random = random
        self._wake = wake
        self._spawn = spawn
        self._loans: dict[bytes, Loan] = {}
        self._any = asyncio.Event()
        """There are loans to be watched."""
        self._late: dict[tuple[bytes, Key], bytes] = {}
        """Takers, by the loan that is over and the page that came back."""
        self.lost: Counter[str] = Counter()
        """By site, how often it was taken back as its taker was not heard of."""
        self._loan_backoff = LoanBackoff()
        """Sites (names) and takers (IDs) whose last loans came to nothing."""
        self.done = 0
        """URLs lent so far that others have fetched."""

    def sites(self) -> list[tuple[str, bytes]]:
        """Return (site, ID of its taker) of each loan."""
        return [(loan.site, loan.borrower.id) for loan in self._loans.values()]

    def loans(self) -> list[Loan]:
        """Return all loans that are not over."""
        return list(self._loans.values())

    @property
    def urls(self) -> int:
        """URLs that are with others just now."""
        return sum(len(loan.entries) for loan in self._loans.values())

    def sites_with_spare_connections(self) -> list[tuple[str, int]]:
        """Return (site, entries ready in memory) of each site of which something may be lent to another peer now."""
        now = self._now()
        return [
            one
            for one in self._frontier.sites_with_spare_connections(now)
            if not self._loan_backoff.is_barred(one[0], now)
        ]

    def may_lend_to(self, borrower: Contact) -> bool:
        """Say whether a peer may be lent something: not for a while after its last loan came to nothing."""
        return not self._loan_backoff.is_barred(borrower.id, self._now())

    async def lend(self, borrower: Contact, site: str, count: int) -> int | None:
        """Offer up to `count` ready URLs of a lendable site, with some connections; return how many it took.

        None if there was nothing to offer: requests of ours did not leave its connections soon.
        """
        for message in await self.offers(borrower, [(site, count)]):
            loan = self._loans[message.loan]
            try:
                taken = (await self._client.ask(borrower, message, Lent, LOAN_DEADLINE_S)).accepted
            except RemoteError as error:
                log.info("loan.failed to=%s why=%s", borrower, error.why)
                taken = loan.begun  # Else it will hear that it has not got it, before it begins.
            if taken:
                log.debug("loan.given to=%s site=%s urls=%d", borrower, site, len(message.pending))
                return len(message.pending)
            if loan.id in self._loans:
                self._end(loan)
            return 0
        return None

    async def offers(self, borrower: Contact, allotment: Iterable[tuple[str, int]]) -> list[Lend]:
        """Return a loan of up to `count` ready URLs each of these (lendable site, count), and let it begin.

        Those are missing whose connections requests of ours do not leave soon.
        """
        loans = [self._reserve(borrower, site, count) for site, count in allotment]
        free = await asyncio.gather(*(self._connections_free(loan) for loan in loans))
        messages = []
        for loan, is_free in zip(loans, free, strict=True):
            if not is_free:
                # Others first: a site that hangs would be tried again and again.
                now = self._now()
                self._loan_backoff.note_failure(loan.site, now, now)
                self._end(loan)
                continue
            loan.until = self._until()
            batch = self._records.lending(list(loan.entries.values()))
            most = min(loan.connections, CONNECTIONS_MAX)
            messages.append(Lend(self._me(), loan.id, batch.sites[0], most, batch.pending, batch.robots))
        return messages

    async def renew_lease(self, message: RenewLease) -> LeaseRenewed:
        """Take in how far some loans are; answer which of them go on."""
        standing: list[Loan] = []
        for one in message.loans:
            loan = self._loans.get(one.loan)
            if loan is None or loan.borrower.id != message.borrower.id:
                self._learn_late(one, message.borrower)
                continue
            if loan.recalled_at is None or asyncio.get_running_loop().time() < loan.recalled_at + RECALLED_MAX_S:
                loan.until = self._until()
            loan.begun = True
            loan.hold_until = self._now() + min(one.clock.wait_s, RETURNED_WAIT_MAX_S)
            if one.clock.wait_s > max(one.clock.delay_s, self._frontier.clock(loan.site, self._now())[1]):
                loan.waits_until = max(loan.waits_until, loan.hold_until)
            self._take_in(loan, one)
            over = one.over or not loan.entries
            # The taker's clock is ours only in the end: what we tell it meanwhile must be news, or both would creep on.
            self._frontier.learn_clock(loan.site, one.clock.wait_s if over else 0.0, one.clock.delay_s, self._now())
            if over:
                if not loan.made_progress and (loan.recalled_at is None or loan.stuck or is_leaf(loan.borrower)):
                    self._note_failure(loan)
                self._end(loan)
            elif self._is_stuck(loan):
                loan.recalled_at, loan.stuck = loan.recalled_at or asyncio.get_running_loop().time(), True
            elif loan.recalled_at is None and self._frontier.is_open(loan.cell) and self._is_first(loan):
                standing.append(loan)
        await self._store.durable()
        # What was taken back meanwhile goes on no more.
        return LeaseRenewed([self._standing(loan) for loan in standing if loan.id in self._loans])

    def _reserve(self, borrower: Contact, site: str, count: int) -> Loan:
        """Take what is to be lent out of the frontier; the loan is not the taker's yet."""
        now = self._now()
        entries, connections = self._frontier.lend(site, min(count, BATCH_MAX), now)
        loan_id = self._random.getrandbits(8 * LOAN_BYTES).to_bytes(LOAN_BYTES, "big")
        cell = self._store.cell_of(entries[0].key)
        loan = Loan(loan_id, borrower, site, cell, {entry.key: entry for entry in entries}, connections, now)
        self._loans[loan_id] = loan
        self._any.set()
        return loan

    async def _connections_free(self, loan: Loan) -> bool:
        """Wait until none of our own requests uses a connection of the loan; return whether it may be given then."""
        give_up_at = asyncio.get_running_loop().time() + CONNECTION_WAIT_S
        while self._frontier.connections_overcommitted(loan.site) and asyncio.get_running_loop().time() < give_up_at:  # noqa: ASYNC110
            await asyncio.sleep(CONNECTION_POLL_S)
        return not self._frontier.connections_overcommitted(loan.site) and loan.recalled_at is None

    def _is_stuck(self, loan: Loan) -> bool:
        """Say whether nothing of a loan has come of it for longer than a site can be slow, whatever its taker says."""
        _, delay_s = self._frontier.clock(loan.site, self._now())
        waits_until = min(loan.waits_until, loan.moved_at + RETURNED_WAIT_MAX_S)
        return self._now() > max(loan.moved_at, waits_until) + delay_s + RECALLED_MAX_S

    def _is_first(self, loan: Loan) -> bool:
        """Say whether a loan may go on beside others of its site: only one may if that turned out to have a delay."""
        _, delay_s = self._frontier.clock(loan.site, self._now())
        return delay_s == 0 or loan is next(one for one in self._loans.values() if one.site == loan.site)

    def recall(self, cell: Cell) -> None:
        """The cell is not crawled here any more: nor is what of it was lent."""
        self._recall_loans([loan for loan in self._loans.values() if loan.cell == cell])

    def recall_all(self) -> None:
        """Nothing is crawled here any more."""
        self._recall_loans(list(self._loans.values()))

    def _recall_loans(self, loans: Sequence[Loan]) -> None:
        takers: dict[Contact, list[bytes]] = {}
        now = asyncio.get_running_loop().time()
        for loan in loans:
            loan.recalled_at = loan.recalled_at or now
            if not is_leaf(loan.borrower):  # It will hear so when it next reports.
                takers.setdefault(loan.borrower, []).append(loan.id)
        for taker, ids in takers.items():
            with suppress(NotRunningError):
                self._spawn(self._recall(taker, ids), f"recall from {taker}")

    async def run(self) -> None:
        """Take back what was not heard of for too long; until cancelled."""
        while True:
            if not self._loans:
                self._any.clear()
            await self._any.wait()
            await asyncio.sleep(RENEW_S / 2)
            now = asyncio.get_running_loop().time()
            for loan in [loan for loan in self._loans.values() if loan.until <= now]:
                log.info("loan.lost to=%s site=%s urls=%d", loan.borrower, loan.site, len(loan.entries))
                # Nobody tells when its last request went out.
                _, delay_s = self._frontier.clock(loan.site, self._now())
                self._frontier.hold(loan.site, max(loan.hold_until, self._now() + delay_s), self._now())
                self.lost[loan.site] += 1
                if len(self.lost) > LOST_SITES_MAX:
                    del self.lost[next(iter(self.lost))]
                self._note_failure(loan)
                self._end(loan)

    def _note_failure(self, loan: Loan) -> None:
        """Let the owner of the site have its turn before another has it, and this taker have no more for a while."""
        now = self._now()
        self._loan_backoff.note_failure(loan.site, now + self._frontier.wait_s(loan.site, now), now)
        self._loan_backoff.note_failure(loan.borrower.id, now, now)

    def _standing(self, loan: Loan) -> ActiveLoan:
        wait_s, delay_s = self._frontier.clock(loan.site, self._now())
        return ActiveLoan(loan.id, min(wait_s, WAIT_MAX_S), min(delay_s, WAIT_MAX_S))

    # --- inside --------------------------------------------------------------------------------------------------

    async def _recall(self, borrower: Contact, loans: Sequence[bytes]) -> None:
        for start in range(0, len(loans), LOANS_MAX):
            try:
                message = Recall(self._me(), list(loans[start : start + LOANS_MAX]))
                await self._client.ask(borrower, message, Recalled, LOAN_DEADLINE_S)
            except RemoteError as error:
                log.info("loan.not_recalled from=%s why=%s", borrower, error.why)  # It ends by itself.

    def _take_in(self, loan: Loan, report: LoanReport) -> None:
        now = self._now()
        for key in map(Key, report.done):
            entry = loan.entries.pop(key, None)
            if entry is not None:
                self.done += 1
                loan.moved_at, loan.made_progress = now, True
                self._loan_backoff.note_success(loan.site)
                self._loan_backoff.note_success(loan.borrower.id)
                self._store.learn_done(key)
                self._frontier.finish(entry, now)
                self._activity.move()
        for one in report.returned:
            entry = loan.entries.pop(Key(one.key), None)
            if entry is not None:
                self._note_late(loan, entry.key)
                loan.moved_at = now
                self._put_back(entry, one.tries, now + min(one.wait_s, RETURNED_WAIT_MAX_S) if one.wait_s else 0.0)

    def _note_late(self, loan: Loan, key: Key) -> None:
        """What comes back its taker may have finished all the same, or be about to."""
        self._late[loan.id, key] = loan.borrower.id
        if len(self._late) > LATE_PAGES_MAX:
            del self._late[next(iter(self._late))]

    def _learn_late(self, report: LoanReport, borrower: Contact) -> None:
        """Of a loan that is over; or of an earlier run of this peer, for which a full peer is believed as ever."""
        for key in map(Key, report.done):
            entry = self._store.entry(key)
            known = self._late.get((report.loan, key)) == borrower.id
            if known or (entry is not None and not is_leaf(borrower)):
                self._late.pop((report.loan, key), None)
                if self._store.learn_done(key) and entry is not None:
                    self._frontier.remove(entry, self._now())
                self._activity.move()
                self._wake()

    def _put_back(self, entry: FrontierEntry, tries: int, due: float) -> None:
        now = self._now()
        if tries > entry.tries or due > now:
            self._frontier.postpone(entry._replace(tries=max(tries, entry.tries) - 1), due, now)  # Counts one more.
        else:
            self._frontier.put_back(entry, now)

    def _end(self, loan: Loan) -> None:
        """What is left of the loan is ours again, and so are the connections."""
        del self._loans[loan.id]
        for entry in loan.entries.values():
            self._note_late(loan, entry.key)
            self._frontier.put_back(entry, self._now())
        self._frontier.end_loan(loan.site, loan.connections, self._now())
        self._activity.move()
        self._wake()

    def _until(self) -> float:
        return lender_takes_back_at(asyncio.get_running_loop().time())
