"""Pages finished after their loan was over: the lender is told, again if need be, and then they are forgotten."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Key, id_bytes
from kadcrawl.leaf.late_reports import LATE_REPORT_RETRY_S, LATE_REPORT_TRIES, LENT_MAX, LateReports
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import Contact, LeaseRenewed, Lend, PendingRecord, RenewLease, SiteRecord
from sim.loop import world

LEAF = leaf_contact(id_bytes(1))
ONE, TWO = (Contact(id_bytes(number), f"10.0.0.{number}", 4160) for number in (2, 3))


def lend_from(lender: Contact, loan: bytes) -> Lend:
    return Lend(
        lender, loan, SiteRecord("a.example", 0.0, 1.0), 1, [PendingRecord("http://a.example/", 0, 0, 0, 0.0)], []
    )


def numbered_key(number: int) -> Key:
    return Key(id_bytes(number))


class LateReportsBench:
    def __init__(self) -> None:
        self.told: list[tuple[Contact, bytes, list[bytes]]] = []
        self.fails = 0
        """Questions that will get no answer."""
        self.forgotten: list[Key] = []
        self.journal = self
        self.late = LateReports(LEAF, self, self, self.forget)  # type: ignore[arg-type]

    def forget(self, keys: Any) -> None:
        self.forgotten += keys

    def last_visit(self, key: Key) -> None:
        """Return no visit."""

    async def durable(self) -> None:
        assert not self.told, "told of before it is on disk"

    async def ask(self, to: Contact, message: RenewLease, expected: object, deadline_s: float) -> LeaseRenewed:
        if self.fails:
            self.fails -= 1
            raise RemoteError("one", "no answer")
        lender = ONE if to == ONE else TWO
        assert message.borrower == LEAF
        self.told += [(lender, one.loan, one.done) for one in message.loans]
        assert all(one.over for one in message.loans)
        return LeaseRenewed([])


def play_late_reports(scenario: Callable[[LateReportsBench], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        bench = LateReportsBench()
        task = asyncio.create_task(bench.late.run())
        await scenario(bench)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with world(0) as loop:
        loop.run_until_complete(whole())


def test_each_lender_is_told_of_its_own() -> None:
    async def scenario(bench: LateReportsBench) -> None:
        bench.late.note_lent([numbered_key(1), numbered_key(2)], lend_from(ONE, b"loan one"))
        bench.late.note_lent([numbered_key(3)], lend_from(TWO, b"loan two"))
        for number in (1, 3, 4):
            bench.late.note_finished(numbered_key(number))
        await asyncio.sleep(0.1)
        assert [(ONE, b"loan one", [numbered_key(1)]), (TWO, b"loan two", [numbered_key(3)])] == bench.told
        assert [numbered_key(1), numbered_key(3)] == bench.forgotten, "of the fourth nobody knows who lent it"

    play_late_reports(scenario)


def test_what_its_lender_knows_already_it_is_not_told_again() -> None:
    async def scenario(bench: LateReportsBench) -> None:
        bench.late.note_lent([numbered_key(1)], lend_from(ONE, b"loan one"))
        bench.late.forget(numbered_key(1))
        bench.late.note_finished(numbered_key(1))
        await asyncio.sleep(0.1)
        assert [] == bench.told

    play_late_reports(scenario)


def test_who_does_not_answer_is_asked_again_but_not_for_ever() -> None:
    async def scenario(bench: LateReportsBench) -> None:
        bench.late.note_lent([numbered_key(1), numbered_key(2)], lend_from(ONE, b"loan one"))
        bench.fails = LATE_REPORT_TRIES - 1
        bench.late.note_finished(numbered_key(1))
        await asyncio.sleep(LATE_REPORT_TRIES * LATE_REPORT_RETRY_S)
        assert [(ONE, b"loan one", [numbered_key(1)])] == bench.told
        bench.told.clear()
        bench.fails = LATE_REPORT_TRIES
        bench.late.note_finished(numbered_key(2))
        await asyncio.sleep(10 * LATE_REPORT_TRIES * LATE_REPORT_RETRY_S)
        assert [] == bench.told
        assert [numbered_key(1)] == bench.forgotten

    play_late_reports(scenario)


def test_a_silent_borrower_is_not_asked_per_loan_and_delays_no_other() -> None:
    async def scenario(bench: LateReportsBench) -> None:
        for number in range(1, 6):
            bench.late.note_lent([numbered_key(number)], lend_from(ONE, b"loan %d" % number))
        bench.late.note_lent([numbered_key(6)], lend_from(TWO, b"loan 6"))
        bench.fails = 1
        for number in range(1, 7):
            bench.late.note_finished(numbered_key(number))
        await asyncio.sleep(0.1)
        assert [(TWO, b"loan 6", [numbered_key(6)])] == bench.told
        await asyncio.sleep(LATE_REPORT_RETRY_S)
        assert {numbered_key(number) for number in range(1, 7)} == set(bench.forgotten)

    play_late_reports(scenario)


def test_who_lent_what_is_not_remembered_without_bound() -> None:
    async def scenario(bench: LateReportsBench) -> None:
        bench.late.note_lent([numbered_key(number) for number in range(LENT_MAX + 1)], lend_from(ONE, b"loan one"))
        bench.late.note_finished(numbered_key(0))
        bench.late.note_finished(numbered_key(LENT_MAX))
        await asyncio.sleep(0.1)
        assert [(ONE, b"loan one", [numbered_key(LENT_MAX)])] == bench.told

    play_late_reports(scenario)
