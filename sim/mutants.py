"""Planted bugs: each breaks one promise of the peers in one place, and the campaign must find it.

A mutant is a function that takes what stands at a *seam* (a class's method, a module's function, by its path) and
returns what is put there instead while the mutant is planted (`unittest.mock.patch.object`). Its docstring says in
words what is then wrong. Nothing else of kadcrawl is touched, and nothing of it knows of this file; a seam that has
been renamed makes `planted` raise AttributeError, which the tests look for.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Any, NamedTuple
from unittest.mock import patch

Replace = Callable[[Any], Any]
"""What stands at the seam -> what is put there."""


class Mutant(NamedTuple):
    """One planted bug."""

    name: str
    seam: str
    """``package.module:Class.method`` or ``package.module:function``."""
    breaks: str
    """What is wrong, in words."""
    replace: Replace


MUTANTS: dict[str, Mutant] = {}
"""By name, in the order of a URL's life."""

QUICK = (
    "robots_ignored",
    "crawl_delay_ignored",
    "released_and_still_crawled",
    "second_closest_owner",
    "backup_skipped",
    "backups_not_distinct",
    "newcomers_not_told",
    "opened_before_caught_up",
    "done_not_merged",
)
"""Those a quick look plants: found within a few seeds, and of every room."""


def mutant(seam: str) -> Callable[[Replace], Replace]:
    """Enter the decorated function under its name."""

    def enter(replace: Replace) -> Replace:
        assert replace.__doc__, "a mutant says what it breaks"
        MUTANTS[replace.__name__] = Mutant(replace.__name__, seam, replace.__doc__, replace)
        return replace

    return enter


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """While open, the bug of this name is in kadcrawl; none for None. Raises KeyError, AttributeError."""
    if name is None:
        yield
        return
    bug = MUTANTS[name]
    path, _, attribute = bug.seam.replace(":", ".").rpartition(".")
    owner = resolve_name(path)
    with patch.object(owner, attribute, bug.replace(getattr(owner, attribute))):
        yield


# --- links on their way ----------------------------------------------------------------------------------------------


@mutant("kadcrawl.crawl.forward:Forwarder._offer")
def links_lost_on_refusal(offer: Any) -> Any:
    """An offer that failed, or that the other peer did not take, counts as acknowledged."""

    async def offer_once(self: Any, owner: Any, batch: Any) -> Any:
        for link, place in await offer(self, owner, batch):
            self._settle(link, place)
        return []

    return offer_once


@mutant("kadcrawl.crawl.forward:Forwarder.forward")
def done_before_links_are_safe(forward: Any) -> Any:
    """A page is finished at once, while its links are still on their way."""

    def forward_and_forget(self: Any, *links: Any) -> Any:
        receipt = forward(self, *links)
        if not receipt.acknowledged.done():
            receipt.acknowledged.set_result(None)
        return receipt

    return forward_and_forget


@mutant("kadcrawl.history.journal:Journal.durable")
def acknowledged_before_durable(_: Any) -> Any:
    """What is to be on disk first is acknowledged before it is there."""

    def durable(self: Any) -> Any:
        self._dirty.set()
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    return durable


@mutant("kadcrawl.history.journal:Journal.__init__")
def journal_never_synced(init: Any) -> Any:
    """Commits are not synced: a power cut takes what the system had not written yet."""

    def init_without_sync(self: Any, directory: Any, commit_interval_s: Any, sync: Any = None) -> None:
        init(self, directory, commit_interval_s, lambda fds: None)

    return init_without_sync


@mutant("kadcrawl.history.page_log:PageLog.__init__")
def page_lines_not_written_again(init: Any) -> Any:
    """Page lines that were journaled but not in the file when the power went are forgotten."""

    def init_without_outbox(self: Any, path: Any, outbox: Any) -> None:
        init(self, path, ())

    return init_without_outbox


# --- fetching --------------------------------------------------------------------------------------------------------


@mutant("kadcrawl.crawl.robots:Rules.allowed")
def robots_ignored(_: Any) -> Any:
    """What robots.txt forbids is fetched."""
    return lambda self, url: True


@mutant("kadcrawl.crawl.frontier:Frontier.set_delay")
def crawl_delay_ignored(_: Any) -> Any:
    """The delay robots.txt asks for is not kept."""
    return lambda self, name, delay_s, now: None


@mutant("kadcrawl.crawl.frontier:Frontier.open")
def not_held_after_crash(open_cell: Any) -> Any:
    """A cell whose owner died is crawled at once, not after a full delay."""
    return lambda self, cell, now, *, hold: open_cell(self, cell, now, hold=False)


@mutant("kadcrawl.crawl.frontier:Frontier.clocks")
def clocks_forgotten_on_release(_: Any) -> Any:
    """Who releases a cell tells no clock of its sites."""
    return lambda self, cell, now: []


@mutant("kadcrawl.crawl.frontier:Frontier.learn_clock")
def delays_forgotten_on_move(learn_clock: Any) -> Any:
    """A site's own delay does not come with its cell."""
    return lambda self, name, wait_s, delay_s, now: learn_clock(self, name, wait_s, 0.0, now)


@mutant("kadcrawl.crawl.frontier:Frontier.close")
def released_and_still_crawled(_: Any) -> Any:
    """A cell that another owns now is crawled on."""
    return lambda self, cell: None


@mutant("kadcrawl.crawl.frontier:Frontier.in_flight")
def released_while_in_flight(_: Any) -> Any:
    """A cell is released while requests to its sites are under way."""
    return lambda self, cell: 0


@mutant("kadcrawl.peer.cells:Cells.is_stalled")
def stall_not_noticed(_: Any) -> Any:
    """A peer that was frozen goes on as if nothing had been."""
    return lambda self: False


# --- who owns what ---------------------------------------------------------------------------------------------------


@mutant("kadcrawl.overlay.overlay:Overlay.owns")
def second_closest_owner(_: Any) -> Any:
    """The peer second nearest to a cell takes itself for the owner."""

    def owns(self: Any, cell: Any) -> bool:
        from kadcrawl.keys import anchor

        nearest = self.nearest_known(anchor(cell, self._cell_bits), 2)
        return bool(nearest[-1].id == self.me.id)

    return owns


@mutant("kadcrawl.history.catch_up:holders")
def backup_skipped(holders: Any) -> Any:
    """The second backup gets nothing."""
    return lambda nearest: holders(nearest)[:2]


@mutant("kadcrawl.history.catch_up:holders")
def backups_not_distinct(_: Any) -> Any:
    """A backup may be the owner itself, as plain double hashing has it."""

    def holders(nearest: Any) -> Any:
        owner, *backups = [candidates[0] for candidates in nearest if candidates]
        return [owner, *{one.id: one for one in backups if one.id != owner.id}.values()]

    return holders


@mutant("kadcrawl.history.holdings:Holdings.lost")
def orphans_forgotten(lost: Any) -> Any:
    """When an owner dies its backups do not tell the next one."""
    return lambda self, peer: (lost(self, peer)[0], [])


@mutant("kadcrawl.history.holdings:Holdings.joined")
def newcomers_not_told(_: Any) -> Any:
    """Nobody tells a newcomer what is now its own."""
    return lambda self, newcomer: []


# --- copies and sync -------------------------------------------------------------------------------------------------


@mutant("kadcrawl.history.copies:Copies.changed")
def changes_not_copied(_: Any) -> Any:
    """Backups hear of a cell when it is synced, and then of no change of it."""
    return lambda self, cell, key: None


@mutant("kadcrawl.history.copies:Copies.delivered")
def copies_not_awaited(_: Any) -> Any:
    """A link is acknowledged before the backups have it."""

    async def delivered(self: Any, contact: Any) -> bool:
        return True

    return delivered


@mutant("kadcrawl.crawl.intake:Intake.merge_done")
def done_not_merged(_: Any) -> Any:
    """That a URL is DONE elsewhere is not learned."""
    return lambda self, key, now: None


@mutant("kadcrawl.history.tally:contribution")
def digest_without_state(contribution: Any) -> Any:
    """Digests do not tell PENDING from DONE, so copies that differ in that seem alike."""
    return lambda key, state: contribution(key, 1)


@mutant("kadcrawl.history.exchange:Exchanger.reconcile")
def opened_before_caught_up(_: Any) -> Any:
    """A cell is opened without what the others have of it."""

    async def reconcile(self: Any, *_: Any, **__: Any) -> None:
        return None

    return reconcile


@mutant("kadcrawl.history.tell:Telling.settle")
def dropped_unseen(settle: Any) -> Any:
    """A peer told to drop a cell does so, even if it has more of it than the owner has seen."""

    def settle_blindly(self: Any, message: Any) -> Any:
        from kadcrawl.keys import Cell

        settled = settle(self, message)
        if message.role == 0:
            for held in settled.unlike:
                self._holdings.let_go(Cell(held.cell))
                self._forget_soon(Cell(held.cell))
        return settled

    return settle_blindly


@mutant("kadcrawl.history.tell:Telling.handed_over")
def left_without_handing_over(_: Any) -> Any:
    """A leaving peer does not wait until others have its cells."""

    async def handed_over(self: Any) -> None:
        return None

    return handed_over


# --- the end ---------------------------------------------------------------------------------------------------------


@mutant("kadcrawl.overlay.quiescence:Quiescence.observe")
def ends_after_one_wave(_: Any) -> Any:
    """One wave that finds everybody idle is taken for proof."""
    return lambda self, tally: tally.pending == 0 and tally.unacknowledged == 0 and tally.missing == 0


@mutant("kadcrawl.overlay.quiescence:Quiescence.observe")
def silence_taken_for_idleness(observe: Any) -> Any:
    """Parts of the swarm that do not answer count as having nothing to do."""

    def observe_who_answers(self: Any, tally: Any) -> Any:
        from kadcrawl.link.messages import Tally

        return observe(self, Tally(tally.members, tally.view, tally.pending, tally.unacknowledged, 0))

    return observe_who_answers


@mutant("kadcrawl.crawl.forward:Forwarder.unacknowledged")
def links_on_their_way_not_counted(_: Any) -> Any:
    """The end is sought while links are on their way to their owners."""
    return property(lambda self: 0)


@mutant("kadcrawl.crawl.crawler:Crawler.pending")
def only_open_cells_counted(_: Any) -> Any:
    """The end is sought while PENDING copies are left of cells nobody has opened yet."""
    return property(lambda self: self._frontier.pending)
