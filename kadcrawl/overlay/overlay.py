"""The conversations of one peer with the others: join, look up, keep in touch, leave.

Everything decided here is decided by `membership` and `lookup`; this file sends the questions they ask for and brings
back the answers. It owns the socket and every task of the room; `close` awaits them all. Callers see a peer's
place (`owns`, `owner`, `siblings`, `bucket`) and are told when a live contact comes or goes.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from ipaddress import ip_address
from random import Random
from typing import Any

from kademlia.node import Node

from kadcrawl.errors import StartError
from kadcrawl.keys import ID_BITS, Cell, NodeId, anchor, id_bytes
from kadcrawl.link.peer_score import PeerScore
from kadcrawl.link.wire.messages import Contact
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.sealing import Sealing
from kadcrawl.overlay.addresses import ip_version, sendable, why_silent
from kadcrawl.overlay.flood_sampler import FloodSampler
from kadcrawl.overlay.lookup import Lookup
from kadcrawl.overlay.membership import Membership
from kadcrawl.overlay.packet_filter import attach_packet_filter
from kadcrawl.overlay.protocol import Address, DatagramCounters, DatagramProtocol
from kadcrawl.overlay.routing import Neighbor
from kadcrawl.overlay.settings import OverlaySettings

TICK_S = 0.5
"""How often the overlay looks whether something is due: the grain of all its longer intervals."""
ROUND_AWAY = 8
"""Contacts that were away tried in one sibling round: after a short cut all are back within a few rounds."""
ROUND_ASKS = 3
"""Siblings asked in one sibling round."""
LEAVING_ROUND_S = 1.0
"""Between two sibling rounds of a peer that leaves."""


class Overlay:
    """One peer's place in the swarm.

    `me` is our contact, known once `listen` has returned; its host may be overwritten by the address others reach us
    at. The callbacks in `on_joined`, `on_lost` and `on_left` run on the loop, right when the set of `contacts` changes,
    and must not raise. Until `join` has returned we know hardly anybody, so `owns` and `owner` claim too much.
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
    ) -> None:
        """`credentials`: of the peer with this ID; without, all is said openly. `conduct`: what it knows of others."""
        self._peer_score = peer_score
        self._settings = settings or OverlaySettings()
        self._node_id = node_id
        self._random = random
        self._cell_bits = cell_bits
        self._credentials = credentials
        self._membership = Membership(node_id, cell_bits, self._settings, random)
        self._protocol: DatagramProtocol | None = None
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._resolving: dict[Cell, asyncio.Task[Contact]] = {}
        self._verifying: set[bytes] = set()
        self._flood_sampler = FloodSampler()
        self._closed = False

    def __repr__(self) -> str:
        return f"<Overlay {self._node_id:040x} contacts={len(self.contacts())} closed={self._closed}>"

    # --- life

    async def listen(self, host: str, port: int) -> None:
        """Open the UDP socket; port 0 lets the system choose. Raises OSError if it cannot."""
        loop = asyncio.get_running_loop()
        transport, self._protocol = await loop.create_datagram_endpoint(
            lambda: DatagramProtocol(
                self._membership, self._random, self._settings, self._verify, self._sealing, self._peer_score
            ),
            local_addr=(host, port),
        )
        self._transport = transport
        self.update_packet_filter()
        bound = transport.get_extra_info("sockname")
        self.me = Contact(id_bytes(self._node_id), bound[0], bound[1])
        self._spawn(self._keep_in_touch(), "keep in touch")

    def update_packet_filter(self) -> None:
        """Let the system keep out what no member can have sent; call it again when the swarm's keys have changed."""
        if self._sealing is not None:
            udp = self._transport.get_extra_info("socket").fileno()
            attach_packet_filter(udp, self._sealing.labels, self._flood_sampler.one_in, self._membership.addresses)

    def withhold_answers(self) -> None:
        """Answer nobody until `identify`: our ID is not settled. Call right after `listen`."""
        self._socket.nameless = True

    def identify(self, node_id: NodeId) -> None:
        """Take this ID, and answer from now on. Only for who has been nameless, before anything else is done."""
        assert self._socket.nameless, "others may know us by our ID"
        self._node_id = node_id
        self._membership = Membership(node_id, self._cell_bits, self._settings, self._random)
        self._socket.use_membership(self._membership, self._sealing)
        self._socket.nameless = False
        self.me = Contact(id_bytes(node_id), self.me.host, self.me.port)

    async def join(self, bootstrap: Sequence[Address]) -> None:
        """Enter the swarm some of the `bootstrap` addresses (name or IP literal, port) belong to.

        Afterwards the siblings are exact and every bucket has been refreshed. Raises StartError when nobody answers,
        or when who did is gone before it has named anybody.
        """
        names = ", ".join(f"{host}:{port}" for host, port in bootstrap)
        for _ in range(self._settings.join_tries):
            async with asyncio.TaskGroup() as group:
                greetings = [group.create_task(self._greet(address)) for address in bootstrap]
            if any(greeting.result() for greeting in greetings):
                break
            await asyncio.sleep(self._settings.resend_s)
        else:
            raise StartError(f"no peer answered at {names}; {why_silent(self.me.host, bootstrap[0][0])}")
        await self.lookup(self._node_id, self._settings.siblings + 1)  # We are in the result ourselves.
        await self._refresh()
        await self._sibling_round()
        if not self.contacts():
            # It answered and left: alone we would take ourselves for the swarm, and its work for done.
            raise StartError(f"whoever answered at {names} was leaving; join by another peer, or try again")

    async def leave(self) -> None:
        """Tell every contact goodbye, nearest first and within `leave_s`; from here on no request is answered."""
        protocol = self._socket
        protocol.silent = True
        contacts = self.nearest_known(self._node_id, len(self.contacts()) + 1)[1:]
        try:
            async with asyncio.timeout(self._settings.leave_s), asyncio.TaskGroup() as group:
                for contact in contacts:
                    group.create_task(protocol.leave(contact))
        except TimeoutError:
            pass  # Those not reached will miss our heartbeats.

    async def close(self) -> None:
        """Close the socket and await every task."""
        self._closed = True
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._protocol is not None and self._protocol.transport is not None:
            self._protocol.transport.close()
            await self._protocol.closed

    # --- who is there

    @property
    def on_joined(self) -> list[Callable[[Contact], None]]:
        """Called with each contact that becomes live."""
        return self._membership.on_joined

    @property
    def on_lost(self) -> list[Callable[[Contact], None]]:
        """Called with each contact that is suspected, dead or gone."""
        return self._membership.on_lost

    @property
    def on_left(self) -> list[Callable[[Contact], None]]:
        """Called after that with each that said goodbye."""
        return self._membership.on_left

    def contacts(self) -> list[Contact]:
        """Return all live contacts."""
        return [neighbor.contact for neighbor in self._membership.table.live()]

    def siblings(self) -> list[Contact]:
        """Return the up to 16 live peers nearest to us, nearest first."""
        return [neighbor.contact for neighbor in self._membership.siblings.nearest]

    def subtrees(self, below: int = ID_BITS) -> dict[int, list[Contact]]:
        """Return, by firstdiff less than `below`, whom we know there: live ones, latest heard first, then suspects.

        A wave asks suspects too: it must not take a peer that is slow, or just coming back, for one that is gone.
        """
        table = self._membership.table
        trees = {
            index: [neighbor.contact for neighbor in table.bucket(index)] for index in table.filled() if index < below
        }
        for index, bucket in table.buckets.items():
            if index < below:
                for neighbor in bucket.nodes.values():
                    if not neighbor.live:
                        trees.setdefault(index, []).append(neighbor.contact)
        return trees

    def nearest_known(self, target: int, count: int) -> list[Contact]:
        """Return the `count` peers nearest to the key `target` among ourselves and our live contacts."""
        known = [self.me, *self._membership.nearest(target, count)]
        return sorted(known, key=lambda contact: contact.number ^ target)[:count]

    async def nearest(self, target: int, count: int) -> list[Contact]:
        """Return the `count` live peers nearest to the key `target`, ourselves included, nearest first."""
        if len(self._membership.siblings.nearest) < self._settings.siblings:
            return self.nearest_known(target, count)  # We know everybody.
        found = await self.lookup(target, count)
        # One that is live and kept silent just now stays, until it is lost: of that alone we shall be told.
        both = {contact.id: contact for contact in [*found, *self.nearest_known(target, count)]}
        return sorted(both.values(), key=lambda contact: contact.number ^ target)[:count]

    async def range_at(self, target: int) -> tuple[Contact, int] | None:
        """Return the live peer nearest to the key `target`, and the mask of its live buckets; None if it is silent."""
        owner = (await self.nearest(target, 1))[0]
        if owner.id == self.me.id:
            return owner, self._membership.table.live_mask
        live_mask = await self._socket.range_of(owner)
        return None if live_mask is None else (owner, live_mask)

    def is_live(self, peer: bytes) -> bool:
        """Return whether the peer with this ID is among our live contacts."""
        neighbor = self._membership.table.members.get(peer)
        return neighbor is not None and neighbor.live

    @property
    def load(self) -> int:
        """Our own load level (heavy blocks times 100), sent with every heartbeat."""
        return self._socket.load

    def set_load(self, level: int) -> None:
        """Send this load level with every heartbeat from now on; at first it is 0."""
        self._socket.load = level

    def set_state_fingerprint(self, fingerprint: int) -> None:
        """Send with every heartbeat this fingerprint of what we take the swarm to be told; at first it is 0."""
        self._socket.state_fingerprint = fingerprint

    def listen_state_fingerprints(self, listener: Callable[[Contact, int], None]) -> None:
        """From now on call this with each heartbeat of a live contact; it must not raise."""
        self._socket.on_state_fingerprint = listener

    @property
    def loads(self) -> Mapping[bytes, int]:
        """The load level each live contact (by ID) last told us."""
        return {neighbor.id: neighbor.load for neighbor in self._membership.table.live()}

    @property
    def counters(self) -> DatagramCounters:
        return self._socket.counters

    @property
    def evictions(self) -> int:
        """Contacts forgotten because they no longer answered."""
        return self._membership.evictions

    # --- who owns what

    def owns(self, cell: Cell) -> bool:
        """Return whether we are the peer nearest to the cell's anchor."""
        return self._membership.owns(cell)

    async def owner(self, cell: Cell) -> Contact:
        """Return the live peer nearest to the cell's anchor: ourselves, one we know, or the end of a lookup."""
        if cell not in self._resolving:
            if self.owns(cell):
                return self.me
            known = self._membership.owner(cell, self._now())
            if known is not None:
                return known
            self._resolve(cell)
        return await asyncio.shield(self._resolving[cell])

    def learn_owner(self, cell: Cell, owner: Contact) -> None:
        """Take the hint "not mine, ask `owner`": a call of `owner` from now on asks that peer, too."""
        best = self._membership.owners.get(cell, self._now()) or self.nearest_known(anchor(cell, self._cell_bits), 1)[0]
        target = anchor(cell, self._cell_bits)
        if owner.number ^ target < best.number ^ target and self._is_sendable(owner) and cell not in self._resolving:
            self._resolve(cell, owner)

    def remember(self, contacts: Sequence[Contact]) -> None:
        """Try these now and then, as if they had been evicted: it is unknown whether they are there."""
        self._membership.remember(contacts)

    def suspect(self, contact: Contact) -> None:
        """Probe `contact` now: a call to it has failed."""
        self._verify(contact)

    async def lookup(self, target: int, count: int) -> list[Contact]:
        """Return the `count` live peers nearest to the key `target`, ourselves included, nearest first."""
        return await self._lookup(target, count, (), self._settings.alpha)

    async def _lookup(self, target: int, count: int, hints: Sequence[Contact], alpha: int) -> list[Contact]:
        known = [*hints, *self._membership.nearest(target, self._settings.k)]
        lookup = Lookup(target, count, self.me, known, alpha=alpha, asks_max=self._settings.asks_max)
        stirred = asyncio.Event()
        while not lookup.finished:
            while (contact := lookup.next()) is not None:
                # Asks may outlive the lookup: a late failure still counts against the peer.
                self._spawn(self._ask(contact, lookup, stirred), "ask")
            await stirred.wait()
            stirred.clear()
        return lookup.result()

    async def _ask(self, contact: Contact, lookup: Lookup, stirred: asyncio.Event) -> None:
        def slow() -> None:
            lookup.slow(contact)
            stirred.set()

        timer = asyncio.get_running_loop().call_later(self._settings.resend_s, slow)
        try:
            answered, reply = await self._socket.call_find_node(Neighbor(contact), Node(id_bytes(lookup.target)))
            if answered:
                lookup.answered(contact, self._socket.usable(reply))
            else:
                lookup.failed(contact)
        finally:
            timer.cancel()
            stirred.set()

    def _resolve(self, cell: Cell, hint: Contact | None = None) -> None:
        """Begin to look up the owner of `cell`; `owner` awaits the outcome."""
        task = self._spawn(self._look_up_owner(cell, hint), "owner")
        self._resolving[cell] = task
        task.add_done_callback(lambda _: self._resolving.pop(cell))

    async def _look_up_owner(self, cell: Cell, hint: Contact | None) -> Contact:
        cached = self._membership.owners.get(cell, self._now())
        hints = [contact for contact in (hint, cached) if contact is not None]
        owner = (await self._lookup(anchor(cell, self._cell_bits), 1, hints, self._settings.owner_alpha))[0]
        if owner.id == self.me.id:
            self._membership.owners.drop(cell)
        else:
            self._membership.owners.put(cell, owner, self._now())
        return owner

    # --- keeping in touch

    async def _keep_in_touch(self) -> None:
        refresh_at = self._now() + self._jittered(self._settings.refresh_s)
        while True:
            await asyncio.sleep(TICK_S)
            now = self._now()
            if self._flood_sampler.sample(self.counters.non_members, now):
                self.update_packet_filter()
            if self._socket.silent:
                # We watch over nobody; but who comes now may be the one to take what we hold, and nobody else tells us.
                await self._sibling_round()
                await asyncio.sleep(self._jittered(LEAVING_ROUND_S))
                continue
            for peer in self._membership.liveness.due(now, self._membership.siblings.ids):
                self._verify(self._membership.table.members[peer].contact)
            if self._membership.round_timer.due(now):
                self._spawn(self._sibling_round(), "sibling round")
            if now >= refresh_at:
                refresh_at = now + self._jittered(self._settings.refresh_s)
                self._spawn(self._refresh(), "refresh")

    async def _sibling_round(self) -> None:
        """Ask some siblings whom they know near us, and try some of those that were away."""
        away = self._membership.retry_candidates
        for contact in self._random.sample(away, min(ROUND_AWAY, len(away))):
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
        """Look up a random ID in every bucket the siblings do not cover."""
        async with asyncio.TaskGroup() as group:
            for index in range(ID_BITS):
                if not self._membership.siblings.complete_at(index):
                    target = (self._node_id >> index ^ 1) << index | self._random.getrandbits(index)
                    group.create_task(self.lookup(target, self._settings.refresh_count))

    def _verify(self, contact: Contact) -> None:
        """Ping `contact` in the background; only its answer lets it into the table, or keeps it there."""
        if contact.id in self._verifying or self._closed or not self._is_sendable(contact):
            return
        # However many strangers knock, our own contacts are still watched.
        known = contact.id in self._membership.table.members
        if known or len(self._verifying) < self._settings.verifying_max:
            self._verifying.add(contact.id)
            self._socket.probe(contact, lambda: self._verifying.discard(contact.id))

    async def _greet(self, address: Address) -> bool:
        """Ping an address whose ID we do not know; return whether another peer answered."""
        host, port = address
        if ip_version(host) is None:
            loop = asyncio.get_running_loop()
            family = socket.AF_INET6 if ":" in self.me.host else socket.AF_INET
            try:
                found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM)
            except OSError:
                return False
            host = str(found[0][4][0])
        if ip_version(host) not in (None, ip_address(self.me.host).version):
            return False  # No socket of ours reaches it.
        answered, pong = await self._socket.ping((host, port), self.me.id)
        if not answered or pong.sender == self.me.id:
            return False
        self._membership.heard(Contact(pong.sender, host, port), self._now(), pong.load)
        return True

    # --- tools

    @property
    def _sealing(self) -> Sealing | None:
        return self._credentials.sealing if self._credentials is not None else None

    @property
    def _socket(self) -> DatagramProtocol:
        assert self._protocol is not None, "call listen() first"
        return self._protocol

    def _is_sendable(self, contact: Contact) -> bool:
        return sendable(contact, 6 if ":" in self.me.host else 4)

    def _jittered(self, seconds: float) -> float:
        return seconds * self._random.uniform(0.75, 1.25)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        if self._closed:
            work.close()
            raise RuntimeError("the overlay is closed")
        task = asyncio.get_running_loop().create_task(work, name=f"overlay {name}")
        self._tasks[task] = None
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": "overlay task failed", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)
