"""The requests of a leaf: accepted and returned loans, and peers of another swarm."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from kadcrawl.errors import RemoteError
from kadcrawl.keys import id_bytes
from kadcrawl.leaf.peer_selection import FullPeers
from kadcrawl.leaf.work_requests import WorkRequester
from kadcrawl.link.wire.leaf_messages import LeafDetails, SwarmActivity, leaf_contact
from kadcrawl.link.wire.messages import (
    Contact,
    GetSwarmState,
    GotSwarmState,
    Hello,
    LeaseRenewed,
    Lend,
    Message,
    PeerCounters,
    PeerRow,
    PendingRecord,
    RenewLease,
    SiteRecord,
    Welcome,
    WorkGrant,
    WorkRequest,
)
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.peer_row import PeerDetails
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.swarm.swarm_state import fingerprint_of_seeds
from kadcrawl.settings.job import Job
from sim.loop import world

LEAF = leaf_contact(id_bytes(9))
HOME = Contact(id_bytes(1), "10.0.0.1", 4160)
JOB = Job(name="ours", seeds=("http://a.example/",))
SITE = SiteRecord("a.example", 0.0, 1.0)
PENDING = [PendingRecord("http://a.example/", 0, 0, 0, 0.0)]
LENDS = [Lend(HOME, bytes([number]) * 8, SITE, 1, PENDING, []) for number in (1, 2)]

DETAILS = LeafDetails(PeerDetails("1.0", -2.0, 2**25, 0))


class WorkRequestsBench:
    """A leaf that knows one full peer, by the name of its machine."""

    def __init__(self, job: Job = JOB) -> None:
        self.job = job
        """The job that the full peer names."""
        self.asked: list[Message] = []
        self.lends = LENDS
        self.taken: list[Lend] = []
        self.heard: list[str] = []
        self.drawing = WorkRequester(
            me=LEAF,
            client=self,  # type: ignore[arg-type]
            peers=FullPeers([("one.example", 4160)], Random(1)),
            take=self.take,
            row=lambda: PeerRow(LEAF, PeerState.IDLE, 0, 0, 0, PeerCounters(), 0, 0, borrowed=self.borrowed),
            room=lambda: 100,
            job=lambda: JOB,
            on_seeds=lambda seeds: self.heard.append(f"{len(seeds)} seeds"),
            reach=self,
            on_activity=self.heard.append,
            on_time=lambda crawl_ms: None,
            settings=self,
            details=lambda: DETAILS,
        )
        self.borrowed = 0
        """Pages that the leaf has on loan."""
        self.activity: SwarmActivity = "crawling"
        self.is_watched = False
        """Somebody looks at the swarm."""

    @property
    def fingerprint(self) -> int:
        """Know no changed settings."""
        return 0

    def hear(self, orders: Sequence[StandingOrder]) -> None:
        """Note that settings have changed."""
        self.heard.append(f"{len(orders)} settings")

    def lacking(self, ids: bytes) -> list[bytes]:
        """Lack no segment."""
        return []

    def add(self, segments: Sequence[bytes]) -> bool:
        """Take no segment."""
        return False

    def take(self, lend: Lend) -> bool:
        """Take only the first."""
        self.taken.append(lend)
        return lend.loan == LENDS[0].loan

    async def ask(
        self, to: Contact | tuple[str, int], message: Message, expected: object, deadline_s: float
    ) -> Message:
        assert ("one.example", 4160) == (to.address if isinstance(to, Contact) else to)
        self.asked.append(message)
        match message:
            case Hello():
                return Welcome(self.job, False, 0.0)
            case WorkRequest():
                lends, self.lends = self.lends, []
                return WorkGrant(
                    HOME, lends, self.activity, fingerprint_of_seeds(self.job.seeds), [], is_watched=self.is_watched
                )
            case GetSwarmState():
                return GotSwarmState(0, False, [])
            case _:
                return LeaseRenewed([])

    def of(self, kind: type[Any]) -> list[Any]:
        return [message for message in self.asked if isinstance(message, kind)]


def run_requester(
    bench: Callable[[], WorkRequestsBench],
    seconds: float = 1.0,
    then: Callable[[WorkRequestsBench], None] | None = None,
) -> WorkRequestsBench:
    async def whole() -> WorkRequestsBench:
        made = bench()
        task = asyncio.create_task(made.drawing.run())
        await asyncio.sleep(seconds)
        if then is not None:
            then(made)
            await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return made

    with world(0) as loop:
        return loop.run_until_complete(whole())


def test_what_a_leaf_cannot_take_it_hands_back_at_once() -> None:
    bench = run_requester(WorkRequestsBench)
    assert [lend.loan for lend in LENDS] == [lend.loan for lend in bench.taken]
    (report,) = bench.of(RenewLease)
    assert LEAF == report.borrower
    assert [(LENDS[1].loan, True)] == [(one.loan, one.over) for one in report.loans]


def test_a_lender_is_reported_to_at_the_address_that_has_answered() -> None:
    bench = run_requester(WorkRequestsBench)
    assert {Contact(HOME.id, "one.example", 4160)} == {lend.lender for lend in bench.taken} | {bench.drawing.home}


def test_the_job_is_asked_for_first_and_again_when_it_has_more_seeds() -> None:
    def more(bench: WorkRequestsBench) -> None:
        assert isinstance(bench.asked[0], Hello)
        assert 1 == len(bench.of(Hello))
        bench.job = Job(name="ours", seeds=("http://a.example/", "http://b.example/"))

    bench = run_requester(WorkRequestsBench, then=more, seconds=3.0)
    assert 2 == len(bench.of(Hello))
    assert ["1 seeds", "crawling"] == bench.heard[:2]
    assert "2 seeds" in bench.heard


def test_nothing_is_drawn_of_another_swarm() -> None:
    def lost(bench: WorkRequestsBench) -> None:
        assert bench.drawing.is_lost

    bench = run_requester(lambda: WorkRequestsBench(Job(name="theirs")), seconds=5.0, then=lost)
    assert [] == bench.of(WorkRequest)
    assert 1 < len(bench.of(Hello)) < 8, "it is left alone for longer each time"


@pytest.mark.parametrize(("borrowed", "known"), [(0, "ended"), (3, "crawling")])
def test_a_leaf_with_pages_left_is_to_hear_again_of_the_end_at_once(borrowed: int, known: str) -> None:
    def end(bench: WorkRequestsBench) -> None:
        bench.borrowed, bench.activity = borrowed, "ended"

    bench = run_requester(WorkRequestsBench, then=end)
    assert ["crawling", known] == [bench.of(WorkRequest)[at].known_activity for at in (0, -1)]


def test_a_leaf_whose_peers_are_gone_after_the_end_hears_of_the_end_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had a page on loan when it heard of the end first, so it could not end then."""

    async def gone(*_: object) -> Message:
        raise RemoteError("one.example:4160", "does not answer")

    async def story() -> list[list[str]]:
        bench, found = WorkRequestsBench(), []
        task = asyncio.create_task(bench.drawing.run())
        for activity in ("crawling", "ended"):
            bench.activity, bench.borrowed = activity, 1
            with monkeypatch.context() as patched:
                await asyncio.sleep(60.0)
                patched.setattr(bench, "ask", gone)
                await asyncio.sleep(0.5)  # For a request that is under way.
                bench.heard.clear()
                bench.borrowed = 0
                await asyncio.sleep(60.0)
                found.append(sorted({*bench.heard}))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    with world(0) as loop:
        assert [[], ["ended"]] == loop.run_until_complete(story())


def test_a_leaf_tells_its_details_once_it_hears_that_somebody_watches() -> None:
    def watch(bench: WorkRequestsBench) -> None:
        assert {None} == {request.details for request in bench.of(WorkRequest)}
        bench.is_watched = True

    bench = run_requester(WorkRequestsBench, then=watch, seconds=5.0)
    assert DETAILS == bench.of(WorkRequest)[-1].details
