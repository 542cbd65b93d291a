"""A peer lends its sites one after the other: those with free connections first, then those with more URLs."""

from collections.abc import Iterable
from typing import Any

from kadcrawl import Job
from kadcrawl.balance.shedding import BlockOffer
from kadcrawl.lending.blocks import Blocks
from kadcrawl.link.wire.messages import Contact

BORROWER = Contact(bytes(20), "127.0.0.1", 9)
BLOCK_URLS = 5


class Sites:
    """The sites of a lender: their URLs, and those with free connections. It is its own frontier and its own loans."""

    def __init__(self, ready: dict[str, int], free: set[str]) -> None:
        self.lender = self
        self.ready = ready
        self.free = free
        self.looks = 0
        """Sites looked at."""
        self.lent: list[str] = []
        self.spoiled: set[str] = set()
        """Sites that cannot be lent any more once the first site is lent."""

    def sites_with_spare_connections(self, among: Iterable[str] | None = None) -> list[tuple[str, int]]:
        names = [*(self.ready if among is None else among)]
        self.looks += len(names)
        gone = {*self.lent, *(self.spoiled if self.lent else ())}
        return [(name, self.ready[name]) for name in names if name not in gone]

    def has_free(self, site: str) -> bool:
        return site in self.free

    def may_lend_to(self, borrower: Contact) -> bool:
        return True

    def sites(self) -> list[tuple[str, Contact]]:
        return []

    async def lend(self, borrower: Contact, site: str, count: int, backlog: object) -> int:
        self.lent.append(site)
        return min(count, self.ready[site])

    async def lend_blocks(self, blocks: int) -> int:
        parts: dict[str, Any] = dict.fromkeys(("overlay", "client", "now"))
        view = Blocks(
            job=Job(block_urls=BLOCK_URLS),
            frontier=self,  # type: ignore[arg-type]
            loans=self,  # type: ignore[arg-type]
            me=lambda: BORROWER,
            is_paused=lambda: False,
            **parts,
        )
        return await view.lend_blocks(BlockOffer(BORROWER, blocks))


async def test_sites_with_free_connections_come_first_and_then_larger_sites() -> None:
    sites = Sites({"a": 9, "b": 3, "c": 7, "d": 1}, free={"b", "d"})
    assert await sites.lend_blocks(3) == 3
    assert sites.lent == ["b", "d", "a", "c"]


async def test_a_site_that_can_be_lent_no_more_is_passed_over() -> None:
    sites = Sites({"a": 9, "b": 8, "c": 7}, free=set())
    sites.spoiled = {"b"}
    assert await sites.lend_blocks(3) == 3
    assert sites.lent == ["a", "c"]


async def test_each_loan_looks_at_its_own_site_only() -> None:
    """A peer with thousands of sites once looked at all of them before each loan."""
    sites = Sites({f"{number}": 1 for number in range(1_000)}, free=set())
    assert await sites.lend_blocks(10) == 10
    assert len(sites.lent) == 10 * BLOCK_URLS
    assert sites.looks == 1_000 + len(sites.lent)
