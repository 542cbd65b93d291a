"""Grants and words about used grants come late, in any order, twice or never, and count as they were given."""

from dataclasses import dataclass, field
from random import Random

import pytest
from msgspec import structs

from kadcrawl.crawl.byte_budget import ByteBudget
from kadcrawl.crawl.page_budget import Budget, share
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import COUNT_MAX, Contact, Departed, Grant, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.membership.departed import departed_row

ME, OTHER = id_bytes(1), id_bytes(2)


def row_of(number: int, pending: int, budget: Budget) -> PeerRow:
    """Return a row by which the budget is shared out, as `WaveAnswers` tells it."""
    contact = Contact(id_bytes(number), "10.0.0.1", 1)
    row = PeerRow(contact, PeerState.CRAWLING, pending, budget.held, 0, PeerCounters(), budget.allowance, budget.told)
    return structs.replace(row, grant_epoch=budget.tell())


def used(budget: Budget, count: int) -> None:
    for _ in range(count):
        assert budget.begin()
        budget.end(fetched=True)


def given_back(budget: Budget) -> None:
    budget.give_back()
    budget.note_journaled(int(budget.to_journal()))


def test_a_grant_that_comes_after_its_peer_gave_it_back_is_not_taken() -> None:
    peer = Budget(100, 0, 0)
    first = peer.tell()
    peer.learn({ME: 50}, ME, spent=False, epochs={ME: first})
    used(peer, 10)
    given_back(peer)
    assert 10 == row_of(1, 0, peer).granted, "the other 40 are given to another peer"
    peer.learn({ME: 50}, ME, spent=False, epochs={ME: first})
    assert 10 == peer.granted
    peer.learn({ME: 30}, ME, spent=False, epochs={ME: peer.epoch})
    assert 30 == peer.granted


def test_a_grant_that_was_decided_by_an_older_row_is_not_taken() -> None:
    """The peer that decided on the later row knew nothing of it."""
    peer = Budget(100, 0, 0)
    first, second = peer.tell(), peer.tell()
    peer.learn({ME: 50}, ME, spent=False, epochs={ME: first})
    assert 0 == peer.granted
    peer.learn({ME: 20}, ME, spent=False, epochs={ME: second})
    assert 20 == peer.granted


def test_a_repeated_grant_changes_nothing_and_a_smaller_total_of_the_same_row_neither() -> None:
    peer = Budget(100, 0, 0)
    epochs = {ME: peer.tell()}
    for total in (50, 50, 0):
        peer.learn({ME: total}, ME, spent=False, epochs=epochs)
    assert (50, {ME: 50}) == (peer.granted, peer.known)


def test_the_first_word_of_a_leaving_peer_does_not_replace_its_last() -> None:
    other = Budget(100, 0, 0)
    other.learn({ME: 80}, OTHER, spent=False, epochs={ME: 7})
    other.learn({ME: 30}, OTHER, spent=False, epochs={ME: 9})
    for epoch, total in ((8, 40), (7, 80)):
        other.learn({ME: total}, OTHER, spent=False, epochs={ME: epoch})
        other.hear({ME: total}, {ME: epoch})
    assert ({ME: 30}, {ME: 9}) == (other.absent([]), other.epochs)


def test_a_newcomer_hears_the_latest_total_of_an_absent_peer_and_not_the_largest() -> None:
    newcomer = Budget(100, 0, 0)
    for epoch, total in ((7, 80), (9, 30), (9, 20), (8, 90)):
        newcomer.hear({ME: total}, {ME: epoch})
    assert ({ME: 30}, {ME: 9}) == (newcomer.known, newcomer.epochs)


def test_totals_without_epochs_are_taken_as_they_come_beside_a_peer_of_an_earlier_release() -> None:
    peer = Budget(100, 0, 0)
    peer.tell()
    peer.learn({ME: 50, OTHER: 20}, ME, spent=False)
    peer.learn({ME: 40, OTHER: 10}, ME, spent=False)
    assert (40, {ME: 40, OTHER: 10}, {}) == (peer.granted, peer.known, peer.epochs)
    peer.hear({OTHER: 15}, {OTHER: 3})
    peer.hear({OTHER: 12})
    assert (15, 3) == (peer.known[OTHER], peer.epochs[OTHER])
    peer.hear({OTHER: 16})
    assert (16, 3) == (peer.known[OTHER], peer.epochs[OTHER]), "it may have been granted since"


def test_a_row_replaces_what_any_peer_has_made_up_about_a_present_peer() -> None:
    sharer = Budget(100, 0, 0)
    sharer.learn({ME: 100}, OTHER, spent=False, epochs={ME: COUNT_MAX})
    row = row_of(1, 5, Budget(100, 10, 10))
    assert {} == sharer.absent([row])
    assert (10, row.grant_epoch) == (sharer.known[ME], sharer.epochs[ME])
    assert {ME: row.grant_epoch} == sharer.epochs_of({ME: 20, OTHER: 5}, [row])


def test_pages_of_peers_that_left_before_there_was_a_limit_count_for_it() -> None:
    sharer = Budget(100, 0, 0)
    sharer.learn({OTHER: 20}, b"", spent=False, epochs={OTHER: 4})
    left = [departed_row(Departed(Contact(one, "h", 1), PeerCounters(), 30)) for one in (ME, OTHER)]
    assert {ME: 30, OTHER: 30} == sharer.absent([], left)
    assert {OTHER: 20} == sharer.absent([row_of(1, 5, Budget(100, 40, 40))], left[:1]), "it is back, and tells more"
    sharer.learn({OTHER: 50}, b"", spent=False, epochs={OTHER: 5})
    assert 50 == sharer.absent([], left)[OTHER], "it came back, was granted more, and died"
    large = departed_row(Departed(Contact(id_bytes(3), "h", 1), PeerCounters(), COUNT_MAX))
    assert 100 == sharer.absent([], [large])[id_bytes(3)]
    assert {} == Budget(100, 0, 0).absent([], [departed_row(Departed(Contact(ME, "h", 1), PeerCounters(pages=9)))])


def test_bytes_of_peers_that_left_before_there_was_a_limit_count_for_it() -> None:
    left = departed_row(Departed(Contact(ME, "h", 1), PeerCounters(bytes=700)))
    assert {ME: 700} == ByteBudget(1_000, 0, lambda: (0, 0)).absent([], [left])


def test_a_leaf_with_the_id_of_a_full_peer_hides_no_total_of_that_peer() -> None:
    """A leaf claims its ID. And a peer that crashed may come back as a leaf, with its key."""
    sharer, leaf = Budget(100, 0, 0), structs.replace(row_of(1, 0, Budget(100, 0, 0)), hosted_leaf=True, grant_epoch=0)
    row = row_of(1, 5, Budget(100, 60, 60))
    for rows in ([row, leaf], [leaf, row]):
        assert {} == sharer.absent(rows)
        assert ({ME: 60}, {ME: row.grant_epoch}) == (sharer.known, sharer.epochs)
        assert {ME: row.grant_epoch} == sharer.epochs_of({ME: 80}, rows)
    assert {ME: 60} == sharer.absent([leaf]), "the peer has crashed"
    stranger = structs.replace(leaf, contact=Contact(id_bytes(3), "10.0.0.1", 1))
    assert {ME: 60} == sharer.absent([stranger])
    assert {ME: 60} == sharer.known, "there is always room for full peers, however many leaves come and go"


def test_no_epoch_is_larger_than_the_wire_allows() -> None:
    peer = Budget(100, 0, 0, epoch=COUNT_MAX - 1)
    assert [COUNT_MAX, COUNT_MAX] == [peer.tell(), peer.tell()]


@dataclass
class Play:
    """A swarm whose grants reach each peer late, in any order, twice or never. Any peer may be the one that shares."""

    random: Random
    limit: int
    budgets: dict[int, Budget] = field(default_factory=dict)
    pending: dict[int, int] = field(default_factory=dict)
    under_way: list[tuple[int, Grant]] = field(default_factory=list)
    """Grants by the number of the peer that they are for."""
    fetched: int = 0
    sharer: int = 0
    spent: bool = False

    def start(self, number: int, pending: int, before: Budget | None = None) -> None:
        """Start a peer, perhaps on the journal of `before`."""
        granted, begun, epoch = (before.granted, before.kept, before.epoch) if before is not None else (0, 0, 0)
        known, epochs = (dict(before.known), dict(before.epochs)) if before is not None else ({}, {})
        self.budgets[number] = Budget(self.limit, granted, begun, known, epochs, epoch)
        self.pending[number] = pending

    def send(self, grant: Grant, sender: int, lost: float) -> None:
        for number in self.budgets:
            if number == sender:
                self.take(number, grant)
            elif self.random.random() >= lost:
                self.under_way += [(number, grant)] * self.random.choice((1, 1, 2))

    def take(self, number: int, grant: Grant) -> None:
        if number in self.budgets:
            self.budgets[number].learn(grant.totals, id_bytes(number), grant.spent, grant.epochs)

    def deliver(self) -> None:
        """Let any of the grants arrive that are under way."""
        if self.under_way:
            self.take(*self.under_way.pop(self.random.randrange(len(self.under_way))))

    def fetch(self, number: int) -> None:
        budget = self.budgets[number]
        if self.pending[number] and budget.begin():
            done = self.random.random() < 0.9
            budget.end(fetched=done)
            self.fetched += done
            self.pending[number] -= done

    def share(self, lost: float = 0.0, of: int | None = None) -> None:
        """Let the owner of the budget's cell, perhaps a new one, take a census and grant shares."""
        number = self.sharer if of is None else of
        budget = self.budgets[number]
        if number != self.sharer:
            for other in self.budgets.values():
                budget.hear(other.known, other.epochs)
            self.sharer = number
        heard = [one for one in self.budgets if one == number or self.random.random() >= lost]
        self.random.shuffle(heard)
        rows = [row_of(one, self.pending[one], self.budgets[one]) for one in heard]
        absent = budget.absent(rows)
        totals, self.spent = share(self.limit, rows, absent=sum(absent.values()))
        told = {**totals, **absent}
        self.send(Grant(told, self.spent, epochs=budget.epochs_of(told, rows)), number, lost)

    def leave(self, number: int) -> None:
        """Let a peer give its grant back, tell that in two words, and go. Another peer takes its URLs over."""
        budget, me = self.budgets[number], id_bytes(number)
        self.send(Grant({me: budget.told}, spent=False, epochs={me: budget.tell()}), number, 0.0)
        given_back(budget)
        self.send(Grant({me: budget.told}, spent=False, epochs={me: budget.tell()}), number, 0.0)
        del self.budgets[number]
        heir = self.random.choice(sorted(self.budgets))
        self.pending[heir] += self.pending.pop(number)

    def restart(self, number: int, journaled: Budget) -> None:
        """Let a peer die and start again. Grants since the last commit are not in its journal."""
        before = self.budgets.pop(number)
        # What a peer fetched is in the journal with the grant it used, and the epoch is later than all before.
        before.granted = max(min(before.granted, journaled.granted), before.begun)
        self.start(number, self.pending[number], before)
        self.budgets[number].epoch = before.epoch + 1


@pytest.mark.parametrize("seed", range(60))
def test_no_grant_is_used_twice_however_late_it_comes_and_all_are_used_in_the_end(seed: int) -> None:
    random = Random(seed)
    play = Play(random, limit=random.randrange(20, 300))
    for number in range(random.randrange(2, 7)):
        play.start(number, random.randrange(200))
    possible, dies = sum(play.pending.values()), random.random() < 0.3
    for _ in range(1_500):
        number = random.choice(sorted(play.budgets))
        move = random.random()
        if move < 0.03:
            play.share(lost=0.1, of=number if random.random() < 0.1 else None)
        elif move < 0.3:
            play.deliver()
        elif move < 0.4:
            if not play.pending[number] or random.random() < 0.3:
                given_back(play.budgets[number])
        elif move < 0.403 and len(play.budgets) > 1 and number != play.sharer:
            play.leave(number)
        elif move < 0.405 and dies:
            play.restart(number, Budget(play.limit, random.randrange(50), 0))
        else:
            play.fetch(number)
        assert play.fetched <= play.limit
    for _ in range(2_000):  # From here on nothing is lost.
        play.share()
        while play.under_way:
            play.deliver()
        for number in play.budgets:
            for _ in range(120):
                play.fetch(number)
            if not play.pending[number]:
                given_back(play.budgets[number])
        if play.spent:
            break
    assert play.fetched == min(play.limit, possible)
