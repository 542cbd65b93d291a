"""A wave reaches every peer once, says so when it could not, and needs few steps."""

from collections import Counter
from functools import partial
from random import Random

import pytest
from msgspec.structs import replace

from kadcrawl.errors import RemoteError
from kadcrawl.keys import ID_BITS, firstdiff
from kadcrawl.link.wire.census_rows import read_rows
from kadcrawl.link.wire.codec import pack_part
from kadcrawl.link.wire.messages import Answer, Census, Contact, PeerCounters, PeerRow, Question, Survey, Tally, Wave
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.overlay.waves import wave as wave_module
from kadcrawl.overlay.waves.quiescence import own_view
from kadcrawl.overlay.waves.wave import Waves


class WaveSwarm:
    """Simulate peers with exact tables that each know a few contacts per bucket. `dead` peers do not answer."""

    def __init__(self, peers: int, seed: int, known: int = 3) -> None:
        random = Random(seed)
        self.contacts = [Contact(random.getrandbits(160).to_bytes(20, "big"), "10.0.0.1", n + 1) for n in range(peers)]
        self.dead: set[Contact] = set()
        self.suspected: set[Contact] = set()
        self.answered: Counter[int] = Counter()
        self.steps_max = 0
        self.steps = 0
        self.given_s: list[float] = []
        """The times that were given to contacts."""
        self.waves = {
            contact.port: Waves(Table(self, contact, random, known), self, self.respond(contact))  # type: ignore[arg-type]
            for contact in self.contacts
        }

    def respond(self, contact: Contact):  # type: ignore[no-untyped-def]
        def respond(question: Question) -> tuple[Tally, list[PeerRow]]:
            self.answered[contact.port] += 1
            return Tally(1, own_view(contact.id, b"", 0), contact.port, 0, 0), []

        return respond

    async def ask(self, to: Contact, wave: Wave, expected: type[Answer], deadline_s: float) -> Answer:
        if to in self.dead:
            raise RemoteError(to, "dead")
        assert 0 < wave.deadline_s <= deadline_s
        self.given_s.append(deadline_s)
        self.steps += 1
        self.steps_max = max(self.steps_max, self.steps)
        try:
            return await self.waves[to.port].answer(wave)
        finally:
            self.steps -= 1


class Table:
    def __init__(self, swarm: WaveSwarm, me: Contact, random: Random, known: int) -> None:
        self.swarm = swarm
        self.buckets: dict[int, list[Contact]] = {}
        for contact in random.sample(swarm.contacts, len(swarm.contacts)):
            if contact is not me:
                self.buckets.setdefault(firstdiff(me.number, contact.number), []).append(contact)
        self.buckets = {index: bucket[:known] for index, bucket in sorted(self.buckets.items())}

    def subtrees(self, below: int = ID_BITS) -> dict[int, list[Contact]]:
        return {index: bucket for index, bucket in self.buckets.items() if index < below}

    def suspect(self, contact: Contact) -> None:
        self.swarm.suspected.add(contact)


async def test_the_last_level_of_a_wave_has_time_for_a_new_connection() -> None:
    swarm = WaveSwarm(500, 1)
    answer = await swarm.waves[1].ask_all(Survey())
    assert 500 == answer.tally.members
    assert min(swarm.given_s) > 1.0


@pytest.mark.parametrize("peers", [1, 2, 3, 8, 50, 300])
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_wave_reaches_every_peer_exactly_once(peers: int, seed: int) -> None:
    swarm = WaveSwarm(peers, seed)
    answer = await swarm.waves[1].ask_all(Survey())
    assert (peers, 0) == (answer.tally.members, answer.tally.missing)
    assert answer.tally.pending == sum(range(peers + 1))
    assert set(swarm.answered.values()) == {1}
    assert len(swarm.answered) == peers
    assert swarm.waves[1].surveys == 1


async def test_any_peer_may_start_one_and_all_get_the_same_tally() -> None:
    swarm = WaveSwarm(20, 3)
    tallies = {(await waves.ask_all(Survey())).tally for waves in swarm.waves.values()}
    assert len(tallies) == 1


async def test_a_dead_contact_costs_nothing_while_its_bucket_has_another() -> None:
    swarm = WaveSwarm(60, 4)
    first = next(bucket for bucket in swarm.waves[1]._tree.buckets.values() if len(bucket) > 1)  # type: ignore[attr-defined]
    swarm.dead = {first[0]}
    answer = await swarm.waves[1].ask_all(Survey())
    assert swarm.dead <= swarm.suspected
    assert answer.tally.members + answer.tally.missing >= 59


async def test_a_subtree_nobody_answers_for_is_told_as_missing() -> None:
    swarm = WaveSwarm(2, 5)
    swarm.dead = {swarm.contacts[1]}
    answer = await swarm.waves[1].ask_all(Survey())
    assert (1, 1) == (answer.tally.members, answer.tally.missing)
    assert swarm.suspected == swarm.dead


def described(rows: list[PeerRow], question: Question) -> tuple[Tally, list[PeerRow]]:
    return Tally(1, bytes(16), 0, 0, 0), rows


async def test_rows_of_peers_that_left_take_the_place_of_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A liar may invent any number of such rows, and a crawl of years may have as many. The page budget needs the
    other rows."""
    swarm = WaveSwarm(40, seed=5)
    here = [PeerRow(contact, PeerState.IDLE, 0, 0, 1, PeerCounters(), 0, 0) for contact in swarm.contacts]
    gone = [replace(row, contact=Contact(row.contact.id[::-1], "10.9.9.9", 1), state=PeerState.LEFT) for row in here]
    for waves, row in zip(swarm.waves.values(), here, strict=True):
        waves._respond = partial(described, [*gone, row])
    monkeypatch.setattr(wave_module, "ROWS_BYTES_MAX", sum(len(pack_part(row)) for row in here))
    monkeypatch.setattr(wave_module, "LEFT_BYTES_MAX", 10 * len(pack_part(gone[0])))
    answer = await swarm.waves[1].ask_all(Census())
    assert {row.contact for row in here} == {row.contact for row in await read_rows(answer.rows)}
    assert {"left"} == {row.state for row in await read_rows(answer.left)}
    assert len(answer.left) == 10


async def test_a_few_may_be_asked_for_themselves_alone() -> None:
    swarm = WaveSwarm(40, seed=5)
    waves = swarm.waves[1]
    known = {contact.port for bucket in waves._tree.subtrees().values() for contact in bucket}
    tallies = await waves.ask_some(Survey(), 3, Random(1), 2.0)
    assert [1, 1, 1] == [tally.members for tally in tallies]
    assert set(swarm.answered) == {tally.pending for tally in tallies} <= known
    # Nobody takes that for a wave that asks all.
    assert not any(one.surveys for one in swarm.waves.values())


async def test_asking_a_few_passes_over_the_dead_and_asks_nobody_twice() -> None:
    swarm = WaveSwarm(3, seed=6)
    swarm.dead.add(swarm.contacts[1])
    tallies = await swarm.waves[1].ask_some(Survey(), 5, Random(1), 2.0)
    assert [0, 1] == sorted(tally.members for tally in tallies)
    assert {swarm.contacts[1]} == swarm.suspected
