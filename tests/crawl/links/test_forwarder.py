"""Test that links travel to their owners and are sent once.

A page is finished only when all of its links have arrived.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from kadcrawl.crawl.links.forwarder import AckCountdown, Forwarder
from kadcrawl.crawl.scope.partitioner import Partitioner, UrlLocation
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Accepted, Contact, DatedLink, DatedOffer, Link, Offer, Redirect
from kadcrawl.settings.limits import Limits
from kadcrawl.system import spaced_batches

ME, OTHER, THIRD = (Contact(bytes([n]) * 20, f"10.0.0.{n}", 1) for n in (1, 2, 3))


@dataclass
class ForwarderWorld:
    """Simulate the owners, the link and the intake for the forwarder. Each site has the name of its owner."""

    owners: dict[str, Contact] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    """Put straight into the store."""
    kept: list[list[str]] = field(default_factory=list)
    """Batches taken here until they are safe."""
    postponed: set[str] = field(default_factory=set)
    """URLs that cannot be taken here the first time."""
    closed: set[str] = field(default_factory=set)
    """Sites whose cell is not open here."""
    offers: list[tuple[Contact, list[str]]] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    dates: list[float | None] = field(default_factory=list)
    """The dates of all links in offers with dates."""
    faults: int = 0
    elsewhere: Contact | None = None
    hints: list[tuple[Cell, Contact]] = field(default_factory=list)
    suspected: list[Contact] = field(default_factory=list)
    me: Contact = ME
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.partitioner = Partitioner("host", 16)
        self.cells: dict[Cell, str] = {}
        self.answer.set()

    def own(self, host: str, owner: Contact) -> None:
        self.owners[host] = owner
        self.cells[self.partitioner.locate(f"http://{host}/").cell] = host

    def is_open(self, cell: Cell) -> bool:
        return self.owners[self.cells[cell]] == ME and self.cells[cell] not in self.closed

    async def accept_here(self, links: list[tuple[Link, UrlLocation]]) -> list[int]:
        self.asked.set()
        await self.answer.wait()
        self.kept.append([link.url for link, _ in links])
        left = [index for index, (link, _) in enumerate(links) if link.url in self.postponed]
        self.postponed.clear()
        return left

    async def owner(self, cell: Cell) -> Contact:
        return self.owners[self.cells[cell]]

    def known_owner(self, cell: Cell) -> Contact:
        return self.owners[self.cells[cell]]

    def learn_owner(self, cell: Cell, owner: Contact) -> None:
        self.hints.append((cell, owner))
        self.owners[self.cells[cell]] = owner

    def suspect(self, contact: Contact) -> None:
        self.suspected.append(contact)

    def accept(self, link: Link, location: UrlLocation, now: float) -> None:
        self.taken.append(link.url)

    async def ask(
        self, to: Contact, offer: Offer | DatedOffer, expected: type[Accepted], deadline_s: float
    ) -> Accepted:
        contact = next(one for one in (ME, OTHER, THIRD) if one == to)
        if self.faults:
            self.faults -= 1
            raise RemoteError(contact, "broken")
        self.asked.set()
        await self.answer.wait()
        self.offers.append((contact, [link.url for link in offer.links]))
        self.depths += [link.depth for link in offer.links]
        if isinstance(offer, DatedOffer):
            self.dates += [link.modified for link in offer.links]
        if self.elsewhere is not None:
            hint, self.elsewhere = self.elsewhere, None
            return Accepted([Redirect(index, hint) for index in range(len(offer.links))])
        return Accepted([])


@asynccontextmanager
async def forwarder(
    world: Any, *, by_depth: bool = False, hurries: Callable[[], bool] = lambda: True, **limits: Any
) -> AsyncIterator[Forwarder]:
    made = Forwarder(
        world,
        world,
        world,
        world.partitioner,
        Limits(batch_spacing_s=0, **limits),
        by_depth,
        lambda: 0.0,
        is_open=world.is_open,
        accept_here=world.accept_here,
        hurries=hurries,
    )
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def links_of_host(host: str, *numbers: int, depth: int = 1) -> list[Link]:
    return [Link(f"http://{host}/{number}", depth, 0) for number in numbers]


@pytest.fixture
def world() -> ForwarderWorld:
    world = ForwarderWorld()
    for host, owner in (("mine", ME), ("too", ME), ("other", OTHER), ("another", OTHER), ("third", THIRD)):
        world.own(host, owner)
    return world


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kadcrawl.crawl.links.forwarder.RETRY_FIRST_S", 0.0)


def cell_of_host(host: str) -> Cell:
    return Partitioner("host", 16).locate(f"http://{host}/").cell


async def test_links_within_an_open_cell_are_taken_at_once_without_a_message(world: ForwarderWorld) -> None:
    async with forwarder(world) as forward:
        receipt = forward.forward(links_of_host("mine", 1, 2), cell_of_host("mine"))
        assert receipt.acknowledged.done()
        assert world.taken == ["http://mine/1", "http://mine/2"]
        assert (world.offers, world.kept) == ([], [])


@pytest.mark.parametrize(
    ("page", "closed"), [("too", set()), ("other", set()), (None, set()), ("mine", {"mine"})], ids=str
)
async def test_other_links_of_this_peer_are_waited_for_until_they_are_safe(
    page: str | None, closed: set[str], world: ForwarderWorld
) -> None:
    world.answer.clear()
    world.closed = closed
    async with forwarder(world) as forward:
        receipt = forward.forward(links_of_host("mine", 1, 2), None if page is None else cell_of_host(page))
        await world.asked.wait()
        assert (False, 2) == (receipt.acknowledged.done(), forward.unacknowledged)
        world.answer.set()
        await receipt.acknowledged
        assert (world.taken, world.offers) == ([], [])
        assert world.kept == [["http://mine/1", "http://mine/2"]]


async def test_a_page_does_not_wait_for_the_cells_of_links_that_other_pages_found(
    world: ForwarderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart some cells open seconds after others, and all links of a while are one batch."""
    world.own("third", ME)
    world.closed = {"too", "third"}
    opened, accept_here = {"too": asyncio.Event(), "third": asyncio.Event()}, world.accept_here

    async def accept_once_open(links: list[tuple[Link, UrlLocation]]) -> list[int]:
        for site in {location.site for _, location in links} & opened.keys():
            await opened[site].wait()
        return await accept_here(links)

    monkeypatch.setattr(world, "accept_here", accept_once_open)
    async with forwarder(world) as forward:
        of_open, *of_closed = (forward.forward(links_of_host(host, 1, 2), None) for host in ("mine", "too", "third"))
        await of_open.acknowledged
        assert [["http://mine/1", "http://mine/2"]] == world.kept
        assert not any(receipt.acknowledged.done() for receipt in of_closed)
        opened["third"].set()
        await of_closed[1].acknowledged
        assert not of_closed[0].acknowledged.done()
        opened["too"].set()
        await of_closed[0].acknowledged


async def test_the_links_of_many_closed_cells_are_accepted_in_few_groups(
    world: ForwarderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kadcrawl.crawl.links.forwarder.GROUPS_MAX", 4)
    hosts = [f"closed-{number}" for number in range(20)]
    for host in hosts:
        world.own(host, ME)
    world.closed = set(hosts)
    async with forwarder(world) as forward:
        await forward.forward([link for host in hosts for link in links_of_host(host, 1)], None).acknowledged
    assert 4 < len(world.kept) + 1 <= 4 + 2
    assert len(hosts) == sum(map(len, world.kept))


async def test_links_of_this_peer_that_cannot_be_taken_now_are_tried_again(world: ForwarderWorld) -> None:
    world.postponed = {"http://mine/2"}
    async with forwarder(world) as forward:
        await forward.forward([*links_of_host("mine", 1, 2), *links_of_host("too", 3)], None).acknowledged
        assert world.kept == [["http://mine/1", "http://mine/2", "http://too/3"], ["http://mine/2"]]


async def test_links_of_others_travel_in_one_batch_per_owner(world: ForwarderWorld) -> None:
    async with forwarder(world) as forward:
        receipt = forward.forward(
            [*links_of_host("other", 1), *links_of_host("third", 2), *links_of_host("another", 3)], None
        )
        assert (False, 3) == (receipt.acknowledged.done(), forward.unacknowledged)
        await receipt.acknowledged
        assert forward.unacknowledged == 0
        assert world.offers == [(OTHER, ["http://other/1", "http://another/3"]), (THIRD, ["http://third/2"])]


async def test_a_batch_is_no_larger_than_its_limit(world: ForwarderWorld) -> None:
    async with forwarder(world, batch_links_max=2) as forward:
        await forward.forward(links_of_host("other", 1, 2, 3, 4, 5), None).acknowledged
        assert [len(urls) for _, urls in world.offers] == [2, 2, 1]


async def test_a_link_met_before_costs_no_message(world: ForwarderWorld) -> None:
    async with forwarder(world) as forward:
        await forward.forward(links_of_host("other", 1), None).acknowledged
        assert forward.forward(links_of_host("other", 1), None).acknowledged.done()
        assert len(world.offers) == 1


async def test_a_link_that_all_holders_have_costs_no_message_unless_it_is_nearer(world: ForwarderWorld) -> None:
    url = "http://other.example/1"
    async with forwarder(world, by_depth=True) as forward:
        forward.note_safe(url, 2)
        assert forward.forward([Link(url, 2, 0)], None).acknowledged.done()
        assert [[], [url]] == [forward.not_recently_sent([url], depth) for depth in (2, 1)]
        forward.note_safe(url, 1)
        forward.note_safe(url, 3)
        assert [] == forward.not_recently_sent([url], 1)
        assert [] == world.offers


async def test_a_link_on_its_way_is_waited_for_by_both_pages_and_sent_once(world: ForwarderWorld) -> None:
    world.answer.clear()
    async with forwarder(world) as forward:
        first, second = (
            forward.forward(links_of_host("other", 1), None),
            forward.forward(links_of_host("other", 1), None),
        )
        await asyncio.sleep(0)
        assert not first.acknowledged.done()
        assert not second.acknowledged.done()
        world.answer.set()
        await asyncio.gather(first.acknowledged, second.acknowledged)
        assert world.offers == [(OTHER, ["http://other/1"])]


async def test_a_broken_delivery_is_tried_until_it_succeeds(world: ForwarderWorld) -> None:
    world.faults = 3
    async with forwarder(world) as forward:
        await forward.forward(links_of_host("other", 1), None).acknowledged
        assert world.suspected == [OTHER] * 3
        assert world.offers == [(OTHER, ["http://other/1"])]


async def test_a_link_sent_to_the_wrong_peer_goes_where_that_one_says(world: ForwarderWorld) -> None:
    world.elsewhere = THIRD
    async with forwarder(world) as forward:
        await forward.forward(links_of_host("other", 1), None).acknowledged
        assert [OTHER, THIRD] == [contact for contact, _ in world.offers]


async def test_a_link_whose_range_came_here_meanwhile_is_taken_here(world: ForwarderWorld) -> None:
    world.elsewhere = ME
    async with forwarder(world) as forward:
        await forward.forward(links_of_host("other", 1), None).acknowledged
        assert world.kept == [["http://other/1"]]


async def test_memory_of_recent_links_is_bounded(world: ForwarderWorld) -> None:
    async with forwarder(world, recent_links_max=3) as forward:
        forward.forward(links_of_host("mine", *range(10)), cell_of_host("mine"))
        assert len(forward._recently_sent) == 3


async def test_characters_of_recent_links_and_dates_are_bounded(world: ForwarderWorld) -> None:
    async with forwarder(world, recent_chars_max=3 * len("http://mine/0")) as forward:
        forward.forward([dated_link("mine", number, 5.0) for number in range(10)], cell_of_host("mine"))
        assert ([f"http://mine/{number}" for number in (7, 8, 9)],) * 2 == (
            list(forward._recently_sent),
            list(forward._dates),
        )
        forward.forward([dated_link("mine", 7, 6.0)], cell_of_host("mine"))
        forward.forward([dated_link("mine", 1, 6.0)], cell_of_host("mine"))
        assert ["http://mine/9", "http://mine/7", "http://mine/1"] == list(forward._dates)


@pytest.mark.parametrize(("by_depth", "messages"), [(True, 2), (False, 1)])
async def test_a_shorter_path_is_news_only_where_depth_counts(
    world: ForwarderWorld, by_depth: bool, messages: int
) -> None:
    async with forwarder(world, by_depth=by_depth) as forward:
        for depth in (5, 6, 2):
            await forward.forward(links_of_host("other", 1, depth=depth), None).acknowledged
        assert len(world.offers) == messages


@pytest.mark.parametrize("when", ["queued", "offered"])
@pytest.mark.parametrize(("by_depth", "depths"), [(True, [5, 2]), (False, [5])])
async def test_a_shorter_path_met_in_transit_reaches_the_owner_before_the_acks(
    world: ForwarderWorld, by_depth: bool, depths: list[int], when: str
) -> None:
    world.answer.clear()
    async with forwarder(world, by_depth=by_depth) as forward:
        far = forward.forward(links_of_host("other", 1, depth=5), None)
        if when == "offered":
            await world.asked.wait()
        near = forward.forward(links_of_host("other", 1, depth=2), None)
        farther = forward.forward(links_of_host("other", 1, depth=7), None)
        world.answer.set()
        await asyncio.gather(far.acknowledged, near.acknowledged, farther.acknowledged)
        assert world.depths == depths
        assert forward.unacknowledged == 0


@pytest.mark.parametrize(("when", "offers"), [("on its way", 2), ("acknowledged", 2), ("never", 1)])
async def test_a_link_found_again_after_all_were_forgotten_is_sent_again(
    world: ForwarderWorld, when: str, offers: int
) -> None:
    """An owner may have refused the first offer by an order that no longer stands."""
    world.answer.clear()
    async with forwarder(world) as forward:
        first = forward.forward(links_of_host("other", 1), None)
        await world.asked.wait()
        forward.forget()
        again = [forward.forward(links_of_host("other", 1), None)] if when == "on its way" else []
        world.answer.set()
        await asyncio.gather(first.acknowledged, *(countdown.acknowledged for countdown in again))
        if when == "acknowledged":
            await forward.forward(links_of_host("other", 1), None).acknowledged
        assert offers == len(world.offers)
        assert forward.unacknowledged == 0


@pytest.mark.parametrize(
    ("by_depth", "depth", "fresh"),
    [(False, 1, []), (False, 2, []), (False, 3, []), (True, 1, ["http://mine/a"]), (True, 2, []), (True, 3, [])],
)
async def test_a_url_is_sent_until_its_owner_has_it_and_again_if_nearer_a_seed(
    by_depth: bool, depth: int, fresh: list[str]
) -> None:
    world = ForwarderWorld()
    world.own("mine", ME)
    async with forwarder(world, by_depth=by_depth) as forward:
        urls = ["http://mine/a", "http://mine/b"]
        assert forward.not_recently_sent(urls, depth) == urls
        await forward.forward([Link("http://mine/a", 2, 0)], None).acknowledged
        assert forward.not_recently_sent(urls, depth) == [*fresh, "http://mine/b"]


async def test_a_url_on_its_way_is_still_fresh() -> None:
    """Otherwise a page would be finished before its link has arrived."""
    world = ForwarderWorld()
    world.own("theirs", OTHER)
    world.answer.clear()
    async with forwarder(world) as forward:
        receipt = forward.forward([Link("http://theirs/a", 1, 0)], None)
        assert forward.not_recently_sent(["http://theirs/a"], 1) == ["http://theirs/a"]
        world.answer.set()
        await receipt.acknowledged
        assert forward.not_recently_sent(["http://theirs/a"], 1) == []


def dated_link(host: str, number: int, date: float | None, depth: int = 1) -> Link:
    return DatedLink(f"http://{host}/{number}", depth, 0, modified=date)


async def test_a_link_met_before_goes_again_only_with_a_later_date(world: ForwarderWorld) -> None:
    async with forwarder(world) as forward:
        await forward.forward(links_of_host("other", 1), None).acknowledged
        for date in (5.0, 5.0, 4.0, None, 6.0, 5.0, 6.0):
            await forward.forward([dated_link("other", 1, date)], None).acknowledged
        assert (3, [5.0, 6.0]) == (len(world.offers), world.dates)
        assert ["http://other/1"] == forward.newer_lastmod({"http://other/1": 7.0})
        assert [] == forward.newer_lastmod({"http://other/1": 6.0})
        assert [] == forward.not_recently_sent(["http://other/1"], 1)


async def test_a_later_date_in_an_open_cell_is_taken_at_once(world: ForwarderWorld) -> None:
    async with forwarder(world) as forward:
        for date in (5.0, 5.0, 6.0):
            assert forward.forward([dated_link("mine", 1, date)], cell_of_host("mine")).acknowledged.done()
        assert ["http://mine/1"] * 2 == world.taken


async def test_only_an_offer_with_dates_is_one_with_dates(world: ForwarderWorld) -> None:
    async with forwarder(world) as forward:
        await forward.forward(
            [*links_of_host("other", 1, 2), dated_link("third", 3, 5.0), *links_of_host("third", 4)], None
        ).acknowledged
        assert [5.0, None] == world.dates


@pytest.mark.parametrize("when", ["queued", "offered"])
@pytest.mark.parametrize(("before", "met", "dates"), [(None, 5.0, [5.0]), (5.0, 6.0, [5.0, 6.0]), (6.0, 5.0, [6.0])])
async def test_a_later_date_met_in_transit_reaches_the_owner_before_the_acks(
    world: ForwarderWorld, before: float | None, met: float, dates: list[float], when: str
) -> None:
    world.answer.clear()
    async with forwarder(world) as forward:
        first = forward.forward(links_of_host("other", 1) if before is None else [dated_link("other", 1, before)], None)
        if when == "offered":
            await world.asked.wait()
        second = forward.forward([dated_link("other", 1, met)], None)
        third = forward.forward(links_of_host("other", 1), None)
        world.answer.set()
        await asyncio.gather(first.acknowledged, second.acknowledged, third.acknowledged)
        assert dates == world.dates
        assert forward.unacknowledged == 0
        assert [] == forward.newer_lastmod({"http://other/1": max(met, before or 0.0)})


async def test_a_shorter_path_and_a_later_date_are_told_together(world: ForwarderWorld) -> None:
    world.answer.clear()
    async with forwarder(world, by_depth=True) as forward:
        first = forward.forward([dated_link("other", 1, 5.0, depth=9)], None)
        await world.asked.wait()
        near = forward.forward(links_of_host("other", 1, depth=2), None)
        late = forward.forward([dated_link("other", 1, 6.0, depth=3)], None)
        world.answer.set()
        await asyncio.gather(first.acknowledged, near.acknowledged, late.acknowledged)
        assert ([9, 2], [5.0, 6.0]) == (world.depths, world.dates)
        await forward.forward([dated_link("other", 1, 7.0, depth=8)], None).acknowledged
        assert [] == forward.not_recently_sent(["http://other/1"], 2), "it was met nearer before"


async def test_memory_of_dates_is_bounded(world: ForwarderWorld) -> None:
    async with forwarder(world, recent_links_max=3) as forward:
        forward.forward([dated_link("mine", number, 5.0) for number in range(10)], cell_of_host("mine"))
        assert 3 == len(forward._dates)
        assert ["http://mine/0"] == forward.newer_lastmod({f"http://mine/{number}": 5.0 for number in (0, 7, 8, 9)})


async def test_links_sent_in_portions_have_arrived_when_all_of_them_have(
    world: ForwarderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kadcrawl.crawl.links.forwarder.LINKS_PER_TURN_MAX", 2)
    sent: list[tuple[int, AckCountdown]] = []

    def one_portion(links: Sequence[Link], cell: Cell) -> AckCountdown:
        receipt = AckCountdown()
        receipt.expect()
        sent.append((len(links), receipt))
        return receipt

    async def still() -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async with forwarder(world) as forward:
        monkeypatch.setattr(forward, "forward", one_portion)
        sending = asyncio.create_task(forward.forward_all(links_of_host("mine", 1, 2, 3, 4, 5), cell_of_host("mine")))
        await still()
        assert [2, 2, 1] == [count for count, _ in sent]
        for _, receipt in sent:
            await still()
            assert not sending.done()
            receipt.settle()
        await sending


async def test_the_next_links_to_an_owner_wait_for_its_answer_and_no_longer(
    world: ForwarderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spaced_batches, "BUSY_S", 0.01)
    monkeypatch.setattr(spaced_batches, "UNANSWERED_S", 600.0)
    world.answer.clear()
    async with asyncio.timeout(60), forwarder(world, hurries=lambda: False) as made:
        first = made.forward(links_of_host("other", 0), None)
        await world.asked.wait()
        later = made.forward(links_of_host("other", 1), None)
        world.answer.set()
        await first.acknowledged
        await later.acknowledged
    assert [(OTHER, ["http://other/0"]), (OTHER, ["http://other/1"])] == world.offers


async def test_links_of_a_busy_peer_wait_for_company_and_those_of_an_idle_peer_do_not(world: ForwarderWorld) -> None:
    world.own("b.test", OTHER)
    busy = True
    async with forwarder(world, hurries=lambda: not busy) as made:
        for number in range(3):
            await asyncio.sleep(0.01)
            made.forward(links_of_host("b.test", number), None)
        await asyncio.sleep(0.01)
        assert [(OTHER, ["http://b.test/0"])] == world.offers
        busy = False
        await made.forward(links_of_host("b.test", 3), None).acknowledged
    assert [1, 3] == [len(urls) for _, urls in world.offers]
