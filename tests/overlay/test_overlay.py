"""The overlay's promises: exact ownership, quick recovery, no live peer lost; most in simulated time."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from kadcrawl.errors import StartError
from kadcrawl.keys import ID_BITS, Cell, NodeId, anchor, firstdiff, id_bytes
from kadcrawl.link.wire.messages import BacklogRecord, Contact, FindNode, GetRange, Leave, Message, Nodes, Ping, Pong
from kadcrawl.overlay import Overlay, OverlaySettings
from kadcrawl.overlay.datagrams import encode
from sim.loop import SimLoop
from sim.overlays import CELL_BITS, OverlaySwarm, simulate
from tests.support.swarm.overlay_peers import PORT, ip, our_peer, scripted_peer

ANNE, BERT, CARL, DORA = (n << 150 for n in (1, 2, 3, 4))


def wrong_claims(swarm: OverlaySwarm, cells: int = 200) -> int:
    """Count the cells that are not claimed by exactly their true owner."""
    wrong = 0
    for _ in range(cells):
        cell = Cell(swarm.random.getrandbits(CELL_BITS))
        claims = [overlay.me.number for overlay in swarm.overlays if overlay.owns(cell)]
        wrong += claims != [swarm.true_owner(cell)]
    return wrong


def wrong_siblings(swarm: OverlaySwarm) -> int:
    return sum(
        [contact.number for contact in overlay.siblings()] != swarm.true_siblings(overlay) for overlay in swarm.overlays
    )


@pytest.mark.parametrize("peers", [1, 2, 3, 8, 16])
def test_a_small_swarm_knows_every_owner_at_once_without_asking(peers: int) -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(peers)
        sent = swarm.loop.network.sent
        await asyncio.sleep(0.1)  # The others' pings of the last comer are on their way.
        assert wrong_claims(swarm) == 0
        pings = swarm.loop.network.sent - sent
        assert await swarm.wrong_owners(50) == 0
        assert pings == swarm.loop.network.sent - sent, "owners were looked up"

    simulate(story)


@pytest.mark.worlds
@pytest.mark.parametrize("seed", [1, 2])
def test_in_a_quiet_network_all_name_the_same_true_owner(seed: int) -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(80)
        await asyncio.sleep(30)
        assert 0 == wrong_siblings(swarm) == wrong_claims(swarm)
        assert await swarm.wrong_owners(20) == 0
        assert await swarm.wrong_owners(20) == 0, "from the cache"

    simulate(story, seed)


@pytest.mark.worlds
def test_many_join_at_the_same_moment() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(3)
        async with asyncio.TaskGroup() as group:
            for _ in range(40):
                group.create_task(swarm.grow(1))
        await asyncio.sleep(60)
        assert 0 == wrong_siblings(swarm) == wrong_claims(swarm)
        assert await swarm.wrong_owners(10) == 0

    simulate(story)


@pytest.mark.worlds
@pytest.mark.parametrize("seed", [1, 2])
def test_after_thirty_percent_die_silently_all_is_right_in_thirty_seconds(seed: int) -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(80)
        await asyncio.sleep(30)
        await swarm.wrong_owners(20)  # Fills the caches with owners about to die.
        dead = {overlay.me.number for overlay in swarm.kill(24)}
        for _ in range(10):
            begin = swarm.loop.time()
            await swarm.wrong_owners(5)
            # Each dead peer that a look-up meets costs it half a second, and a third of all are dead.
            assert swarm.loop.time() - begin < 2.5
            await asyncio.sleep(2)
        assert 0 == wrong_siblings(swarm) == wrong_claims(swarm)
        assert await swarm.wrong_owners(20) == 0
        await asyncio.sleep(90)
        assert dead.isdisjoint(c.number for overlay in swarm.overlays for c in overlay.contacts())

    simulate(story, seed)


@pytest.mark.worlds
def test_no_live_peer_is_evicted_in_ten_minutes_at_one_percent_loss() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(50)
        lost: list[Contact] = []
        for overlay in swarm.overlays:
            overlay.on_lost.append(lost.append)
        swarm.loop.network.conditions.loss = 0.01
        await asyncio.sleep(600)
        assert sum(overlay.evictions for overlay in swarm.overlays) == 0
        assert len(lost) <= 2, "hardly one is so much as suspected"
        swarm.loop.network.conditions.loss = 0.0
        assert wrong_claims(swarm) == 0

    simulate(story)


@pytest.mark.worlds
def test_two_sides_of_a_partition_find_each_other_again() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(30)
        sides = [[host.ip for host, _ in swarm.peers[part::2]] for part in (0, 1)]
        swarm.loop.network.cut(*sides)
        await asyncio.sleep(120)
        assert all(len(overlay.contacts()) == 14 for overlay in swarm.overlays)
        swarm.loop.network.heal()
        await asyncio.sleep(90)
        assert 0 == wrong_siblings(swarm) == wrong_claims(swarm)

    simulate(story)


def test_who_leaves_is_forgotten_at_once_and_not_taken_back() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(20)
        host, leaver = swarm.peers.pop()
        begin = swarm.loop.time()
        await host.spawn(leaver.leave())
        assert swarm.loop.time() - begin < 0.2
        for _ in range(20):
            assert all(leaver.me not in overlay.contacts() for overlay in swarm.overlays)
            assert wrong_claims(swarm, 20) == 0
            await asyncio.sleep(0.5)
        for host, overlay in swarm.peers:
            host.context.copy().run(overlay.suspect, leaver.me)
        await asyncio.sleep(5)
        assert all(leaver.me not in overlay.contacts() for overlay in swarm.overlays)
        await leaver.close()
        assert sum(overlay.evictions for overlay in swarm.overlays) == 0

    simulate(story)


def test_who_leaves_still_hears_of_those_who_come_and_is_not_taken_back() -> None:
    """A newcomer may be the next owner of the cells that the leaving peer holds."""

    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(8)
        host, leaver = swarm.peers.pop()
        await host.spawn(leaver.leave())
        await swarm.grow(2)
        await asyncio.sleep(5)
        newcomers = swarm.overlays[-2:]
        assert all(newcomer.me in leaver.contacts() for newcomer in newcomers)
        assert all(leaver.me not in overlay.contacts() for overlay in swarm.overlays)
        assert wrong_claims(swarm) == 0
        await leaver.close()

    simulate(story)


def test_who_missed_the_goodbye_hears_it_when_it_asks(loop: SimLoop) -> None:
    async def story() -> None:
        leaver = await our_peer(loop, 0, ANNE)
        newcomer = await scripted_peer(loop, 1)
        await leaver.leave()
        for question in (Ping(id_bytes(BERT), 0), FindNode(id_bytes(BERT), id_bytes(CARL))):
            newcomer.send(question, 0)
            await asyncio.sleep(0.1)
        assert [Leave(leaver.me.id)] * 2 == newcomer.heard
        await leaver.close()

    loop.run_until_complete(story())


def test_leaving_ends_in_time_when_nobody_answers() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(20)
        swarm.loop.network.conditions.loss = 1.0
        begin = swarm.loop.time()
        await swarm.overlays[0].leave()
        assert swarm.loop.time() - begin <= 3.1

    simulate(story)


def test_a_dead_contact_far_away_is_noticed_in_time(loop: SimLoop) -> None:
    """Not a sibling, so nobody asks it anything but the check of other contacts."""

    async def story() -> None:
        settings = OverlaySettings(siblings=1, check_s=20)
        anne = await our_peer(loop, 0, ANNE, settings=settings)
        far = await our_peer(loop, 1, 1 << 159, bootstrap=0)
        near = await our_peer(loop, 2, ANNE + 1, bootstrap=0)
        await asyncio.sleep(1)
        assert {contact.number for contact in anne.contacts()} == {far.me.number, near.me.number}
        loop.kill(loop.network.hosts[ip(1)])
        await asyncio.sleep(40)
        assert anne.contacts() == [near.me]
        await asyncio.gather(anne.close(), near.close())

    loop.run_until_complete(story())


def test_a_peer_restarted_elsewhere_under_its_id_is_found_there(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        await our_peer(loop, 1, BERT, bootstrap=0)
        loop.kill(loop.network.hosts[ip(1)])
        again = await our_peer(loop, 2, BERT, bootstrap=0)
        await asyncio.sleep(15)
        assert [again.me] == anne.contacts()
        await asyncio.gather(anne.close(), again.close())

    loop.run_until_complete(story())


def test_events_tell_what_contacts_shows() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(1)
        watcher = swarm.overlays[0]
        shown: list[Contact] = []
        watcher.on_joined.append(shown.append)
        watcher.on_lost.append(shown.remove)
        await swarm.grow(19)
        swarm.peers.reverse()  # The watcher comes last and is spared.
        for _ in range(5):
            swarm.loop.kill(swarm.peers.pop(0)[0])
        for _ in range(40):
            await asyncio.sleep(0.5)
            assert sorted(shown, key=str) == sorted(watcher.contacts(), key=str)
        assert len(shown) == 14

    simulate(story)


def test_joining_where_nobody_answers_names_the_addresses(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        with pytest.raises(StartError, match=r"10\.0\.0\.9:4160, nowhere\.example:1"):
            await anne.join([("10.0.0.9", PORT), ("nowhere.example", 1)])
        with pytest.raises(StartError, match=r"10\.0\.0\.1:4160"):
            await anne.join([anne.me.address])
        await anne.close()

    loop.run_until_complete(story())


def test_joining_waits_for_a_peer_that_is_just_starting(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        joining = asyncio.ensure_future(anne.join([(ip(1), PORT)]))
        await asyncio.sleep(1.5)
        bert = await our_peer(loop, 1, BERT)
        await joining
        assert [bert.me] == anne.contacts()
        await asyncio.gather(anne.close(), bert.close())

    loop.run_until_complete(story())


def test_a_port_in_use_is_an_oserror(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        other = Overlay(NodeId(BERT), Random(1), cell_bits=16)
        with pytest.raises(OSError, match="in use"):
            await loop.network.hosts[ip(0)].spawn(other.listen(ip(0), PORT))
        await other.close()
        await anne.close()

    loop.run_until_complete(story())


def knowing(contacts: list[Contact], me: int) -> Message:
    """Return a script that answers pings as `me` and names `contacts` for any target."""

    def script(message: Message) -> Message | None:
        if isinstance(message, Ping):
            return Pong(id_bytes(me), 0)
        return Nodes(id_bytes(me), contacts) if isinstance(message, FindNode) else None

    return script  # type: ignore[return-value]


def test_a_hint_is_followed_once_its_peer_has_answered() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(60)
        await asyncio.sleep(20)
        host, asker = swarm.peers[0]
        cell, stale = next(
            (cell, contact)
            for cell in map(Cell, range(0, 1 << CELL_BITS, 7))
            for contact in asker.contacts()
            if asker._membership.owner(cell, swarm.loop.time()) is None
            and not asker.owns(cell)
            and contact.number != swarm.true_owner(cell)
        )
        truth = next(o.me for o in swarm.overlays if o.me.number == swarm.true_owner(cell))
        asker._membership.owners.put(cell, stale, swarm.loop.time())
        host.context.copy().run(asker.learn_owner, cell, truth)
        assert truth == await host.spawn(asker.owner(cell))
        assert truth == await host.spawn(asker.owner(cell)), "and is remembered"

    simulate(story)


def test_a_hint_at_a_peer_that_does_not_exist_changes_nothing() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(20)
        host, asker = swarm.peers[0]
        cell = next(cell for cell in map(Cell, range(1 << CELL_BITS)) if not asker.owns(cell))
        for number in range(5):
            ghost = Contact(id_bytes(anchor(cell, CELL_BITS) + number), "10.9.9.9", 1)
            host.context.copy().run(asker.learn_owner, cell, ghost)
            assert swarm.true_owner(cell) == (await host.spawn(asker.owner(cell))).number
            assert ghost not in asker.contacts()

    simulate(story)


def test_questions_for_one_cell_share_one_lookup() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(60)
        host, asker = swarm.peers[0]
        now = swarm.loop.time()
        cell = next(
            cell for cell in map(Cell, range(0, 1 << CELL_BITS, 7))
            if not asker.owns(cell) and asker._membership.owner(cell, now) is None
        )  # fmt: skip
        questions = [host.spawn(asker.owner(cell)) for _ in range(100)]
        await asyncio.sleep(0)
        assert len(asker._looks._resolving) == 1
        questions[0].cancel()
        answers = await asyncio.gather(*questions[1:])
        assert {swarm.true_owner(cell)} == {answer.number for answer in answers}

    simulate(story)


def test_nearest_known_includes_ourselves_and_buckets_hold_their_firstdiff() -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(40)
        overlay = swarm.overlays[0]
        known = [overlay.me, *overlay.contacts()]
        for _ in range(20):
            target = swarm.random.getrandbits(ID_BITS)
            expected = sorted(known, key=lambda contact: contact.number ^ target)[:5]
            assert expected == overlay.nearest_known(target, 5)
        by_bucket = [contact for members in overlay.subtrees().values() for contact in members]
        assert sorted(by_bucket, key=str) == sorted(overlay.contacts(), key=str)
        for index, members in overlay.subtrees().items():
            assert {index} == {firstdiff(overlay.me.number, c.number) for c in members}
            below = {other: found for other, found in overlay.subtrees().items() if other < index}
            assert overlay.subtrees(index) == below

    simulate(story)


def test_load_levels_travel_with_the_heartbeats(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        bert = await our_peer(loop, 1, BERT, bootstrap=0)
        backlog = BacklogRecord(30, 0.5, 2.0)
        anne.set_load(150, backlog)
        bert.set_load(-7)
        await asyncio.sleep(10)
        assert {bert.me.id: (-7, None)} == {peer: load[1:] for peer, load in anne.loads.items()}
        assert {anne.me.id: (150, backlog)} == {peer: load[1:] for peer, load in bert.loads.items()}
        assert all(loop.time() - 4 < load.at <= loop.time() for load in (*anne.loads.values(), *bert.loads.values()))
        await asyncio.gather(anne.close(), bert.close())

    loop.run_until_complete(story())


def test_state_fingerprints_and_times_travel_with_the_heartbeats_of_live_contacts(loop: SimLoop) -> None:
    async def story() -> None:
        heard: set[tuple[str, bytes, int, int]] = set()

        def listener(name: str) -> Callable[[Contact, int, int], None]:
            return lambda contact, fingerprint, crawl_ms: heard.add((name, contact.id, fingerprint, crawl_ms))

        anne = await our_peer(loop, 0, ANNE, on_heartbeat=listener("anne"))
        bert = await our_peer(loop, 1, BERT, bootstrap=0, on_heartbeat=listener("bert"))
        heard.clear()
        anne.set_state_fingerprint(7)
        bert.set_crawl_ms(5000)
        await asyncio.sleep(10)
        assert {("anne", bert.me.id, 0, 5000), ("bert", anne.me.id, 7, 0)} == heard
        heard.clear()
        anne._socket.datagram_received(encode(1, Ping(id_bytes(CARL), 0, 9)), (ip(7), PORT))
        assert not heard, "nobody has answered there yet"
        await asyncio.gather(anne.close(), bert.close())

    loop.run_until_complete(story())


def test_a_lookup_survives_a_liar(loop: SimLoop) -> None:
    """The invented peers cost a bounded number of requests and nothing else."""

    async def story() -> None:
        ghosts = [Contact(id_bytes(DORA + n), "10.9.9.9", n + 1) for n in range(20)]
        await scripted_peer(loop, 1, knowing(ghosts, BERT))  # type: ignore[arg-type]
        anne = await our_peer(loop, 0, ANNE, bootstrap=1)
        found = await loop.network.hosts[ip(0)].spawn(anne.lookup(DORA, 1))
        assert [anne.me] == found
        assert [contact.number for contact in anne.contacts()] == [BERT]
        await anne.close()

    loop.run_until_complete(story())


def test_after_closing_nothing_can_be_asked(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        bert = await our_peer(loop, 1, BERT, bootstrap=0)
        await bert.close()
        with pytest.raises(RuntimeError, match="closed"):
            await bert.lookup(ANNE, 1)
        await anne.close()

    loop.run_until_complete(story())


@pytest.mark.parametrize(
    ("listening", "host", "why"),
    [
        ("127.0.0.1", "::1", "which is not IPv6"),
        ("127.0.0.1", "192.0.2.1", "where only this machine reaches it"),
        ("127.0.0.1", "127.0.0.1", "is UDP let through"),
    ],
)
async def test_joining_says_what_may_be_wrong(listening: str, host: str, why: str) -> None:
    overlay = Overlay(
        NodeId(ANNE), Random(1), cell_bits=CELL_BITS, settings=OverlaySettings(join_tries=1, resend_s=0.01)
    )
    await overlay.listen(listening, 0)
    with pytest.raises(StartError, match=why):
        await overlay.join([(host, 9)])
    await overlay.close()


async def test_peers_join_and_leave_on_real_sockets() -> None:
    overlays = [Overlay(NodeId(n << 155), Random(n), cell_bits=CELL_BITS) for n in range(1, 9)]
    for overlay in overlays:
        await overlay.listen("127.0.0.1", 0)
        if overlay is not overlays[0]:
            await overlay.join([("localhost", overlays[0].me.port)])
    while not all(len(overlay.contacts()) == 7 for overlay in overlays):
        await asyncio.sleep(0.01)
    for cell in map(Cell, range(0, 1 << CELL_BITS, 4099)):
        target = anchor(cell, CELL_BITS)
        truth = min((overlay.me for overlay in overlays), key=lambda contact: contact.number ^ target)
        for overlay in overlays:
            assert truth == await overlay.owner(cell)
            assert overlay.owns(cell) == (overlay.me == truth)
    await overlays[0].leave()
    assert all(overlays[0].me not in overlay.contacts() for overlay in overlays[1:])
    for overlay in overlays:
        await overlay.close()
    assert {asyncio.current_task()} == asyncio.all_tasks()


# --- before there is an ID -------------------------------------------------------------------------------------------


def test_a_peer_without_an_id_answers_nobody_and_joins_under_its_later_id(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        host = loop.network.host(ip(1))
        bert = Overlay(NodeId(BERT), Random(1), cell_bits=CELL_BITS)
        await host.spawn(bert.listen(host.ip, PORT))
        bert.withhold_answers()
        stranger = await scripted_peer(loop, 2)
        for message in (Ping(id_bytes(DORA), 0), FindNode(id_bytes(DORA), id_bytes(DORA)), GetRange(id_bytes(DORA))):
            stranger.send(message, 1)
        host.context.copy().run(anne.suspect, bert.me)
        await asyncio.sleep(1)
        assert [] == stranger.heard == bert.contacts() == anne.contacts()
        bert.identify(NodeId(CARL))
        await host.spawn(bert.join([(ip(0), PORT)]))
        await asyncio.sleep(1)
        assert Contact(id_bytes(CARL), ip(1), PORT) == bert.me
        assert [bert.me] == anne.contacts()
        assert [anne.me] == bert.contacts()
        assert [anne.owns(Cell(0)), bert.owns(Cell(0))] == [ANNE < CARL, CARL < ANNE]
        await anne.close()
        await bert.close()

    loop.run_until_complete(story())


@pytest.mark.parametrize("peers", [1, 10, 60])
def test_everybody_finds_out_whose_range_an_id_falls_into(peers: int) -> None:
    async def story(swarm: OverlaySwarm) -> None:
        await swarm.grow(peers)
        await asyncio.sleep(30)
        ids = [overlay.me.number for overlay in swarm.overlays]
        for host, overlay in swarm.peers[:5]:
            target = swarm.random.getrandbits(ID_BITS)
            found = await host.spawn(overlay.range_at(target))
            assert found is not None
            owner = min(ids, key=lambda number: number ^ target)
            buckets = {firstdiff(owner, other) for other in ids if other != owner}
            assert (owner, sum(1 << bucket for bucket in buckets)) == (found[0].number, found[1])

    simulate(story)


def test_a_range_is_not_known_of_who_does_not_tell(loop: SimLoop) -> None:
    def script(message: Message) -> Message | None:
        if isinstance(message, FindNode):
            return Nodes(id_bytes(BERT), [])
        return Pong(id_bytes(BERT), 0) if isinstance(message, Ping) else None

    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        stranger = await scripted_peer(loop, 1, script)
        stranger.send(Ping(id_bytes(BERT), 0), 0)
        await asyncio.sleep(1)
        assert await loop.network.hosts[ip(0)].spawn(anne.range_at(BERT)) is None
        assert anne.contacts()[0].number == BERT, "one question unanswered is no death"
        await anne.close()

    loop.run_until_complete(story())
