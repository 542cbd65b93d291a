"""One peer's place in the swarm: joining, keeping in touch, leaving, and the questions that other rooms ask.

`membership` and `lookup` decide; this file sends the questions that they ask for and brings back the answers. It owns
the socket and every task of the room, and `close` awaits them all. Callers read the place of the peer (`owns`, `owner`,
`siblings`, `subtrees`) and listen for live contacts that come and go.

Tests: tests/overlay/test_overlay.py, tests/overlay/test_repairs.py
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random

from kademlia.node import Node

from kadcrawl.errors import StartError
from kadcrawl.keys import ID_BITS, Cell, NodeId, id_bytes
from kadcrawl.link.peer_score import PeerScore
from kadcrawl.link.process_links import ProcessLinks
from kadcrawl.link.wire.messages import BacklogRecord, Contact
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.sealing import Sealing
from kadcrawl.overlay.addresses import sendable
from kadcrawl.overlay.bootstrap import greet_any, names_of
from kadcrawl.overlay.datagrams import DatagramCounters
from kadcrawl.overlay.flood_sampler import FloodSampler
from kadcrawl.overlay.lookups import Lookups
from kadcrawl.overlay.membership import Membership
from kadcrawl.overlay.pending_requests import Address
from kadcrawl.overlay.protocol import DatagramProtocol
from kadcrawl.overlay.routing import HeardLoad, Neighbor
from kadcrawl.overlay.settings import OverlaySettings
from kadcrawl.system.packet_filter import attach_packet_filter
from kadcrawl.system.task_set import TaskSet

TICK_S = 0.5
"""Interval between two checks for due work: the resolution of all longer intervals of the overlay."""
ROUND_RETRIES = 8
"""Absent contacts pinged in one sibling round: after a short cut all are back within a few rounds."""
ROUND_ASKS = 3
"""Siblings asked in one sibling round."""
LEAVING_ROUND_S = 1.0
"""Interval between two sibling rounds of a peer that leaves."""


class Overlay:
    """One peer's place in the swarm.

    `me` is the contact of this peer, known once `listen` has returned. The callbacks in `on_joined`, `on_lost` and
    `on_left` run on the loop, right when the set of `contacts` changes, and must not raise. Until `join` has returned
    the peer knows hardly any others, so `owns` and `owner` claim too much.
    """

    me: Contact

    def __init__(
        self,
        node_id: NodeId,
        random: Random,
        *,
        cell_bits: int,
        settings: OverlaySettings | None = None,
        credentials: Credentials | None = None,
        peer_score: PeerScore | None = None,
        on_heartbeat: Callable[[Contact, int, int], None] | None = None,
        process_links: ProcessLinks | None = None,
    ) -> None:
        """Datagrams are plain without `credentials` (of the peer with this ID). `peer_score` knows the banned peers.

        `on_heartbeat` receives the state fingerprint and the time of the crawl, in milliseconds, in each heartbeat of a
        live contact; it must not raise. Datagrams to peers that `process_links` knows take no socket.
        """
        self._process_links = process_links
        self._peer_score = peer_score
        self._settings = settings or OverlaySettings()
        self._node_id = node_id
        self._random = random
        self._cell_bits = cell_bits
        self._credentials = credentials
        self._on_heartbeat = on_heartbeat
        self._membership = Membership(node_id, cell_bits, self._settings, random)
        self._protocol: DatagramProtocol | None = None
        self._lookups: Lookups | None = None
        self._tasks = TaskSet("overlay")
        self._verifying: set[bytes] = set()
        self._flood_sampler = FloodSampler()

    def __repr__(self) -> str:
        return f"<Overlay {self._node_id:040x} contacts={len(self.contacts())} closed={self._tasks.closed}>"

    # --- life

    async def listen(self, host: str, port: int) -> None:
        """Open the UDP socket. Port 0 lets the system choose. Raises OSError if the address is not available."""
        loop = asyncio.get_running_loop()
        transport, self._protocol = await loop.create_datagram_endpoint(
            lambda: DatagramProtocol(
                *(self._membership, self._random, self._settings, self._verify),
                *(self._sealing, self._peer_score, self._on_heartbeat, self._process_links),
            ),
            local_addr=(host, port),
        )
        self._transport = transport
        self.update_packet_filter()
        bound = transport.get_extra_info("sockname")
        self.me = Contact(id_bytes(self._node_id), bound[0], bound[1])
        self._lookups = self._make_lookups()
        self._tasks.spawn(self._keep_in_touch(), "keep in touch")

    def set_host(self, host: str) -> None:
        """Name `host` in the own contact: the address at which others reach this peer."""
        self.me = Contact(self.me.id, host, self.me.port)

    def update_packet_filter(self) -> None:
        """Let the kernel drop datagrams that no member can have sent. Call it again after a change of the keys."""
        if self._sealing is not None:
            udp = self._transport.get_extra_info("socket").fileno()
            attach_packet_filter(udp, self._sealing.labels, self._flood_sampler.one_in, self._membership.addresses)

    def withhold_answers(self) -> None:
        """Answer no request until `identify`, as the own ID is not final. Call it right after `listen`."""
        self._socket.set_nameless(True)

    def identify(self, node_id: NodeId) -> None:
        """Take this ID and answer requests from now on. Call it after `withhold_answers`, before anything else."""
        assert self._socket.nameless, "others may know us by our ID"
        self._node_id = node_id
        self._membership = Membership(node_id, self._cell_bits, self._settings, self._random)
        self._socket.use_membership(self._membership, self._sealing)
        self._socket.set_nameless(False)
        self.me = Contact(id_bytes(node_id), self.me.host, self.me.port)
        self._lookups = self._make_lookups()

    def use_cell_bits(self, cell_bits: int) -> None:
        """Count the cells as the swarm does. Call it before the first question about a cell."""
        self._cell_bits = cell_bits
        self._membership.use_cell_bits(cell_bits)
        self._lookups = self._make_lookups()

    async def join(self, bootstrap: Sequence[Address]) -> None:
        """Enter the swarm that the `bootstrap` addresses (name or IP literal, port) belong to.

        Afterwards the siblings are exact and every bucket has been refreshed. Raises StartError when no peer answers,
        or when all that answered have left before they named another peer.
        """
        await self.greet(bootstrap)
        await self.lookup(self._node_id, self._settings.siblings + 1)  # This peer is in the result itself.
        await self._refresh()
        await self._sibling_round()
        if not self.contacts():
            # The peer answered and left. Alone, this peer would take itself for the swarm, and its work for done.
            raise StartError(
                f"the peer that answered at {names_of(bootstrap)} was leaving; join by another peer, or try again"
            )

    async def greet(self, addresses: Sequence[Address]) -> None:
        """Make contacts of the peers at these addresses (name or IP, port). Raises StartError if none answers."""
        await greet_any(self._socket, self._membership, self.me, addresses, self._settings)

    async def leave(self) -> None:
        """Send Leave to every contact, nearest first and within `leave_s`. From here on no request is answered."""
        self._socket.set_leaving(True)
        contacts = self.nearest_known(self._node_id, len(self.contacts()) + 1)[1:]
        try:
            async with asyncio.timeout(self._settings.leave_s), asyncio.TaskGroup() as group:
                for contact in contacts:
                    group.create_task(self._socket.leave(contact))
        except TimeoutError:
            pass  # The contacts not reached will miss our heartbeats.

    async def close(self) -> None:
        """Close the socket and await every task."""
        await self._tasks.close()
        if self._protocol is not None and self._protocol.transport is not None:
            self._protocol.transport.close()
            await self._protocol.closed

    # --- contacts

    @property
    def on_joined(self) -> list[Callable[[Contact], None]]:
        """Listeners for each contact that becomes live."""
        return self._membership.on_joined

    @property
    def on_lost(self) -> list[Callable[[Contact], None]]:
        """Listeners for each contact that becomes suspected, dead or gone."""
        return self._membership.on_lost

    @property
    def on_left(self) -> list[Callable[[Contact], None]]:
        """Listeners for each contact that said goodbye. They run after those of `on_lost`."""
        return self._membership.on_left

    def contacts(self) -> list[Contact]:
        """Return all live contacts."""
        return [neighbor.contact for neighbor in self._membership.table.live()]

    def siblings(self) -> list[Contact]:
        """Return the up to 16 live peers nearest to this peer, nearest first."""
        return [neighbor.contact for neighbor in self._membership.siblings.nearest]

    def subtrees(self, below: int = ID_BITS) -> dict[int, list[Contact]]:
        """Return the contacts at each firstdiff less than `below`: live contacts, latest heard first, then suspects.

        A wave asks suspects too: it must not take a peer that is slow, or just coming back, for a peer that is gone.
        """
        trees = self._membership.table.subtrees(below)
        return {index: [neighbor.contact for neighbor in neighbors] for index, neighbors in trees.items()}

    def is_live(self, peer: bytes) -> bool:
        """Return whether the peer with this ID is a live contact."""
        neighbor = self._membership.table.members.get(peer)
        return neighbor is not None and neighbor.live

    def remember(self, contacts: Sequence[Contact]) -> None:
        """Ping these now and then, as if they had been evicted: nobody knows whether they are alive."""
        self._membership.remember(contacts)

    def note_heard(self, contact: Contact) -> None:
        """Count a message of a live contact by the link as its heartbeat."""
        self._membership.heard_request(contact, self._now())

    def suspect(self, contact: Contact) -> None:
        """Ping `contact` now, as a call to it has failed."""
        self._verify(contact)

    def set_load(self, level: int, backlog: BacklogRecord | None = None) -> None:
        """Send this load with every heartbeat: a level in hundredths of a heavy block, and the work by time."""
        self._socket.advertise_load(level, backlog)

    def set_state_fingerprint(self, fingerprint: int) -> None:
        """Send this fingerprint of the swarm's state with every heartbeat. Before the first call it is 0."""
        self._socket.advertise(state_fingerprint=fingerprint)

    def set_crawl_ms(self, crawl_ms: int) -> None:
        """Send this time of the crawl with every heartbeat. Before the first call it is 0."""
        self._socket.advertise(crawl_ms=crawl_ms)

    def hurry_heartbeats(self) -> None:
        """Send a heartbeat to each sibling now, as it has news that must not wait."""
        for contact in self.siblings():
            self._verify(contact)

    @property
    def loads(self) -> Mapping[bytes, HeardLoad]:
        """The load in the latest heartbeat of each live contact that told one, by ID."""
        return {neighbor.id: neighbor.load for neighbor in self._membership.table.live() if neighbor.load is not None}

    @property
    def counters(self) -> DatagramCounters:
        return self._socket.counters

    @property
    def evictions(self) -> int:
        """Contacts forgotten because they no longer answered."""
        return self._membership.evictions

    # --- keys and cells

    def nearest_known(self, target: int, count: int) -> list[Contact]:
        """Return the `count` peers nearest to the key `target` among this peer and its live contacts."""
        return self._looks.nearest_known(target, count)

    async def nearest(self, target: int, count: int) -> list[Contact]:
        """Return the `count` live peers nearest to the key `target`, this peer included, nearest first."""
        return await self._looks.nearest(target, count)

    async def lookup(self, target: int, count: int) -> list[Contact]:
        """Look up the `count` live peers nearest to the key `target`, this peer included, nearest first."""
        return await self._looks.lookup(target, count)

    async def range_at(self, target: int) -> tuple[Contact, int] | None:
        """Return the live peer nearest to `target`, and the mask of its live buckets, or None without an answer."""
        owner = (await self.nearest(target, 1))[0]
        if owner.id == self.me.id:
            return owner, self._membership.table.live_mask
        live_mask = await self._socket.range_of(owner)
        return None if live_mask is None else (owner, live_mask)

    def owns(self, cell: Cell) -> bool:
        """Return whether this peer is the peer nearest to the cell's anchor."""
        return self._membership.owns(cell)

    async def owner(self, cell: Cell) -> Contact:
        """Return the live peer nearest to the cell's anchor: this peer, a known peer, or the end of a lookup."""
        return await self._looks.owner(cell)

    def known_owner(self, cell: Cell) -> Contact | None:
        """Return the owner of a cell, or None if a lookup must find it."""
        return self._looks.known_owner(cell)

    def learn_owner(self, cell: Cell, owner: Contact) -> None:
        """Take the hint that `owner` owns `cell`: calls of `owner` from now on ask that peer too."""
        self._looks.learn_owner(cell, owner)

    # --- keeping in touch

    async def _keep_in_touch(self) -> None:
        refresh_at = self._now() + self._jittered(self._settings.refresh_s)
        while True:
            await asyncio.sleep(TICK_S)
            now = self._now()
            if self._flood_sampler.sample(self.counters.non_members, now):
                self.update_packet_filter()
            if self._socket.leaving:
                # A leaving peer watches nobody. But a newcomer may take over its cells, and only siblings name it.
                await self._sibling_round()
                await asyncio.sleep(self._jittered(LEAVING_ROUND_S))
                continue
            for peer in self._membership.liveness.due(now, self._membership.siblings.ids):
                self._verify(self._membership.table.members[peer].contact)
            if self._membership.round_timer.due(now):
                self._tasks.spawn(self._sibling_round(), "sibling round")
            if now >= refresh_at:
                refresh_at = now + self._jittered(self._settings.refresh_s)
                self._tasks.spawn(self._refresh(), "refresh")

    async def _sibling_round(self) -> None:
        """Ask some siblings for their contacts near this peer, and ping some absent contacts."""
        absent = self._membership.retry_candidates
        for contact in self._random.sample(absent, min(ROUND_RETRIES, len(absent))):
            self._verify(contact)
        siblings = list(self._membership.siblings.nearest)
        async with asyncio.TaskGroup() as group:
            for sibling in self._random.sample(siblings, min(ROUND_ASKS, len(siblings))):
                group.create_task(self._ask_for_siblings(sibling))

    async def _ask_for_siblings(self, sibling: Neighbor) -> None:
        answered, reply = await self._socket.call_find_node(sibling, Node(self.me.id))
        if answered:
            for contact in self._socket.usable(reply):
                if contact.id not in self._membership.table.members:
                    self._socket.welcome_if_new(Neighbor(contact))

    async def _refresh(self) -> None:
        """Look up a random ID in every bucket that the siblings do not cover."""
        async with asyncio.TaskGroup() as group:
            for index in range(ID_BITS):
                if not self._membership.siblings.complete_at(index):
                    target = (self._node_id >> index ^ 1) << index | self._random.getrandbits(index)
                    group.create_task(self.lookup(target, self._settings.refresh_count))

    def _verify(self, contact: Contact) -> None:
        """Ping `contact` in the background. Only its answer lets it into the table, or keeps it there."""
        if contact.id in self._verifying or self._tasks.closed or not sendable(contact, self._ip_version):
            return
        # The limit is for peers outside the table: however many of them ask, own contacts are still watched.
        is_member = contact.id in self._membership.table.members
        if is_member or len(self._verifying) < self._settings.verifying_max:
            self._verifying.add(contact.id)
            self._socket.probe(contact, lambda: self._verifying.discard(contact.id))

    # --- inside

    @property
    def _sealing(self) -> Sealing | None:
        return self._credentials.sealing if self._credentials is not None else None

    @property
    def _socket(self) -> DatagramProtocol:
        assert self._protocol is not None, "call listen() first"
        return self._protocol

    @property
    def _looks(self) -> Lookups:
        assert self._lookups is not None, "call listen() first"
        return self._lookups

    def _make_lookups(self) -> Lookups:
        return Lookups(self._socket, self._membership, lambda: self.me, self._cell_bits, self._settings, self._tasks)

    @property
    def _ip_version(self) -> int:
        return 6 if ":" in self.me.host else 4

    def _jittered(self, seconds: float) -> float:
        return seconds * self._random.uniform(0.75, 1.25)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
