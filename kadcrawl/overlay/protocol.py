"""The datagram shell: kademlia's protocol on our wire, with every byte from the network checked before use.

A datagram is the wire version, the kind of message (its place in `KINDS`), the eight bytes of the request's ID, and
one message of `link.messages`. A request goes out at most twice, under one ID; its reply must come from the address
asked, be of the type asked for and carry the ID of the peer expected. Whatever does not fit is counted and dropped:
nothing a datagram holds raises, grows anything or closes the socket. In a swarm with a key all of that is inside a
sealed datagram (members/sealing.py): what no member has sent costs a look at its first bytes, and gets no answer.

Of the package stay the names of the calls and their hooks (`welcome_if_new`, `handle_call_response`) and the `rpc_*`
handlers, reached through `HANDLERS` by message type; its key-value handlers have no message and so cannot be reached.
Replaced are its wire, its time-outs, its tasks (it starts one per datagram and awaits none), and
the rule that any sender enters the table.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, cast

from kademlia.node import Node
from kademlia.protocol import KademliaProtocol

from kadcrawl.keys import id_bytes
from kadcrawl.link.peer_score import LogLimiter, Misbehavior, PeerScore, left_out_note
from kadcrawl.link.wire.codec import MalformedError, VersionError, pack, unpack
from kadcrawl.link.wire.messages import (
    DATAGRAM_BYTES_MAX,
    WIRE_VERSION,
    Contact,
    FindNode,
    GetRange,
    Leave,
    Left,
    Message,
    Nodes,
    OwnRange,
    Ping,
    Pong,
)
from kadcrawl.members.sealing import Sealing
from kadcrawl.overlay.addresses import sendable
from kadcrawl.overlay.membership import Membership
from kadcrawl.overlay.routing import Neighbor
from kadcrawl.overlay.settings import OverlaySettings

log = logging.getLogger(__name__)

Address = tuple[str, int]
Result = tuple[bool, Any]
"""As in rpcudp: whether there was an answer, and the answer."""

HEADER = struct.Struct("!BBQ")
NODES_BYTES = HEADER.size + 34
"""A datagram of Nodes without contacts: header, array, tag, sender, array."""
CONTACT_BYTES = 28
"""One contact without its host: array, 20 bytes of ID, port, and what msgpack puts before bytes and text."""
UNPROVEN_BYTES_MAX = 346
"""Of an answer to who may be somewhere else: with its seal three times what a FindNode takes (as RFC 9000, 8.1)."""
NON_MEMBERS_PER_LOG_CHECK = 1000
"""Of so many datagrams of strangers one may be worth a line."""
LOOP_STALL_S = 0.1
"""A timer later than this means that our own loop was held up."""
Datagram = Ping | Pong | FindNode | Nodes | Leave | Left | GetRange | OwnRange
KINDS: tuple[type[Datagram], ...] = (Ping, Pong, FindNode, Nodes, Leave, Left, GetRange, OwnRange)
REPLY_TO: dict[type[Message], type[Message]] = {Ping: Pong, FindNode: Nodes, Leave: Left, GetRange: OwnRange}
HANDLERS: dict[type[Message], str] = {
    Ping: "rpc_ping",
    FindNode: "rpc_find_node",
    Leave: "rpc_leave",
    GetRange: "rpc_get_range",
}


@dataclass(slots=True)
class DatagramCounters:
    """What went over the wire since the start."""

    sent: int = 0
    received: int = 0
    malformed: int = 0
    """Datagrams that are no message of this wire, and contacts no datagram could be sent to."""
    unexpected: int = 0
    """Replies nobody waits for: late, repeated, or not proven to be from the peer asked."""
    timeouts: int = 0
    non_members: int = 0
    """Datagrams that no member has sent to this peer, or that came a second time."""
    banned: int = 0
    """Datagrams of members that have done wrong too often."""


class Sender(NamedTuple):
    """Whom a request came from."""

    host: str
    port: int
    proven: bool
    """That it is the peer it says it is; without a key nobody can prove that, and all are believed."""


@dataclass(slots=True, eq=False)
class PendingRequest:
    """One request in flight."""

    address: Address
    to: bytes | None
    """The ID of the peer asked, if it is known."""
    request: bytes
    expects: type[Message]
    settle: Callable[[Message | None], None]
    """Called once, with the reply or None; must not raise."""
    timer: asyncio.TimerHandle
    due_at: float
    """When it should be given up."""


class DatagramProtocol(KademliaProtocol):  # type: ignore[misc]  # the package is untyped
    """One UDP socket. `verify` is called with each peer that should be pinged; it must not block."""

    def __init__(
        self,
        membership: Membership,
        random: Random,
        settings: OverlaySettings,
        verify: Callable[[Contact], None],
        sealing: Sealing | None = None,
        peer_score: PeerScore | None = None,
    ) -> None:
        """Without `sealing` all is said openly; `conduct` is what this peer knows of others."""
        super().__init__(Node(id_bytes(membership.me)), None, settings.k)
        self.use_membership(membership, sealing)
        self.counters = DatagramCounters()
        self._peer_score = peer_score or PeerScore()
        self._lines = LogLimiter()
        self.load = 0
        self.state_fingerprint = 0
        self.on_state_fingerprint: Callable[[Contact, int], None] = lambda contact, course: None
        self.silent = False
        """Set while leaving: whoever asks us now must not take us back."""
        self.nameless = False
        """Set while our ID is not settled: whoever asks us now must not take us in under another."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.DatagramTransport | None = None
        self._random = random
        self._settings = settings
        self._verify = verify
        self._loop = asyncio.get_running_loop()
        self._ip_version: int | None = None
        self._slots = asyncio.Semaphore(settings.requests_max)
        self._outstanding: dict[int, PendingRequest] = {}

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError, where rpcudp would make up a remote call of that name."""
        raise AttributeError(name)

    def use_membership(self, membership: Membership, sealing: Sealing | None = None) -> None:
        """Speak for this one from now on."""
        self._sealing = sealing
        self.source_node = Node(id_bytes(membership.me))
        self.router = membership.table
        self._membership = membership

    # --- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)
        self._ip_version = 6 if ":" in transport.get_extra_info("sockname")[0] else 4

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        for request_id in list(self._outstanding):
            self._settle(request_id, None)
        if not self.closed.done():
            self.closed.set_result(None)

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self.counters.received += 1
        sender, proven = None, True
        if self._sealing is not None:
            opened = self._sealing.open(data)
            if opened is None:
                self.counters.non_members += 1
                if self.counters.non_members % NON_MEMBERS_PER_LOG_CHECK == 1:
                    self._log("non_member", addr, "no member has sent it, or not to this peer, or before")
                return
            data, sender, proven = opened.plaintext, opened.sender, opened.proven
            if self._peer_score.banned_until(sender, self._loop.time()) is not None:
                self.counters.banned += 1
                return
        address = (addr[0], addr[1])
        try:
            request_id, message = decode(data)
        except MalformedError as error:
            fault = Misbehavior.VERSION if isinstance(error, VersionError) else Misbehavior.MALFORMED
            self._note(fault, sender if proven else None, addr, str(error))
            return
        if sender is not None and sender != message.sender:
            self._note(Misbehavior.CLAIM, sender if proven else None, addr, "it says that it is another")
        elif type(message) not in HANDLERS:
            self._accept_reply(request_id, message, address, proven)
        elif address[1] and not self.nameless and (proven or type(message) is not Leave):  # Port 0 cannot be answered.
            self._answer(request_id, message, Sender(*address, proven))

    def _note(self, misbehavior: Misbehavior, sender: bytes | None, addr: tuple[Any, ...], why: str) -> None:
        """Count what is no message of a peer; `sender` is whom to blame, if that is certain."""
        self.counters.malformed += 1
        self._log("malformed", addr, why)
        if sender is not None and self._peer_score.note(sender, misbehavior, self._loop.time()):
            self._log("banned", addr, f"{sender.hex()[:8]} has done wrong too often")

    def _log(self, what: str, addr: tuple[Any, ...], why: str) -> None:
        left_out = self._lines.count(what, self._loop.time())
        if left_out is not None:
            log.warning("overlay.%s from=%s:%s why=%s%s", what, addr[0], addr[1], why, left_out_note(left_out))

    def _answer(self, request_id: int, message: Datagram, sender: Sender) -> None:
        reply = getattr(self, HANDLERS[type(message)])(sender, message)
        if reply is not None:
            self._send(encode(request_id, reply), sender[:2], message.sender)

    def _accept_reply(self, request_id: int, message: Datagram, address: Address, proven: bool) -> None:
        # Whoever was asked knows our key, so its answer can be a proof; any member can write an introduction.
        exchange = self._outstanding.get(request_id) if proven else None
        if exchange is None or exchange.address != address or type(message) is not exchange.expects:
            self.counters.unexpected += 1
            return
        self._settle(request_id, message)

    def _send(self, said: bytes, address: Address, to: bytes | None, *, again: bool = False) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        datagram = said
        if self._sealing is not None:
            # A goodbye in somebody else's name would cost that one its place.
            proven = said[1] == KINDS.index(Leave)
            sealed = self._sealing.seal(said, to, again=again, proven=proven)
            if sealed is None:
                return
            datagram = sealed
        self.counters.sent += 1
        try:
            self.transport.sendto(datagram, address)
        except OSError:
            pass  # Unroutable or a full buffer: as if lost on the way.

    # --- requests of others

    def rpc_ping(self, sender: Sender, message: Ping) -> Message | None:
        if self.silent:
            self._say_goodbye(sender, message.sender)
            return None
        self._welcome(sender, message.sender, message.load)
        if sender.proven:
            self._compare(Contact(message.sender, sender.host, sender.port), message.state_fingerprint)
        return Pong(self.source_node.id, self.load, self.state_fingerprint)

    def rpc_find_node(self, sender: Sender, message: FindNode) -> Message | None:
        if self.silent:
            self._say_goodbye(sender, message.sender)
            return None
        self._welcome(sender, message.sender)
        contacts = self._membership.nearest(int.from_bytes(message.target), self._settings.k, exclude=message.sender)
        bytes_max = DATAGRAM_BYTES_MAX if sender.proven else UNPROVEN_BYTES_MAX
        return Nodes(self.source_node.id, fitting(contacts, bytes_max))

    def rpc_get_range(self, sender: Sender, message: GetRange) -> Message | None:
        if self.silent:
            self._say_goodbye(sender, message.sender)
            return None
        self._welcome(sender, message.sender)
        return OwnRange(self.source_node.id, id_bytes(self._membership.table.live_mask))

    def _say_goodbye(self, sender: Sender, to: bytes) -> None:
        """Whoever asks us while we leave has missed our goodbye, and our own look-ups seem signs of life to it."""
        self._send(encode(self._random.getrandbits(64), Leave(self.source_node.id)), sender[:2], to)

    def rpc_leave(self, sender: Sender, message: Leave) -> Message:
        self._verify_all(self._membership.left(Contact(message.sender, sender.host, sender.port), self._loop.time()))
        return Left(self.source_node.id)

    def welcome_if_new(self, node: Neighbor) -> None:
        """Ping a peer we have met, or were told of, if the table could use it; only its answer lets it in."""
        if not sendable(node.contact, self._ip_version or 0):
            self.counters.malformed += 1
        elif (asked := self._membership.met(node.contact)) is not None:
            self._verify(asked)

    def _welcome(self, sender: Sender, peer: bytes, load: int | None = None) -> None:
        contact = Contact(peer, sender.host, sender.port)
        if sender.proven:
            self._membership.heard_request(contact, self._loop.time())
        if (asked := self._membership.met(contact, load)) is not None:
            self._verify(asked)

    def _compare(self, contact: Contact, state_fingerprint: int) -> None:
        neighbor = self._membership.table.members.get(contact.id)
        if neighbor is not None and neighbor.live and neighbor.contact.address == contact.address:
            self.on_state_fingerprint(contact, state_fingerprint)

    # --- requests of ours

    async def ping(self, address: Address, sender: bytes) -> Result:
        """Greet whoever is at an address."""
        return await self._request(address, Ping(sender, self.load, self.state_fingerprint), None)

    async def call_find_node(self, node_to_ask: Neighbor, node_to_find: Node) -> Result:
        contact = node_to_ask.contact
        result = await self._request(contact.address, FindNode(self.source_node.id, node_to_find.id), contact.id)
        return self.handle_call_response(result, node_to_ask)

    async def range_of(self, contact: Contact) -> int | None:
        """Return the mask of a peer's live buckets; None if it does not tell."""
        result = await self._request(contact.address, GetRange(self.source_node.id), contact.id)
        answered, reply = self.handle_call_response(result, Neighbor(contact))
        return int.from_bytes(reply.live_mask, "big") if answered else None

    async def leave(self, contact: Contact) -> Result:
        return await self._request(contact.address, Leave(self.source_node.id), contact.id)

    def handle_call_response(self, result: Result, node: Neighbor) -> Result:
        """Draw the conclusions of an answer, or of none, for `node`; return the result, failed if it was not its."""
        answered, reply = result
        now = self._loop.time()
        if not answered:
            self._verify_all(self._membership.missed(node.contact, now))
            return False, None
        actual = Contact(reply.sender, node.ip, node.port)
        if actual.id != node.id:
            self._verify_all(self._membership.gone(node.contact, now))
        self._membership.heard(actual, now, reply.load if isinstance(reply, Pong) else None)
        if isinstance(reply, Pong):
            self._compare(actual, reply.state_fingerprint)
        return (True, reply) if actual.id == node.id else (False, None)

    def usable(self, reply: Nodes) -> list[Contact]:
        """Return the contacts of a reply that can be asked and are not suspected."""
        now, version, liveness = self._loop.time(), self._ip_version or 0, self._membership.liveness
        usable = []
        for contact in reply.contacts:
            if not sendable(contact, version):
                self.counters.malformed += 1
            elif not liveness.suspected(contact.id, now):
                usable.append(contact)
        return usable

    def _verify_all(self, contacts: list[Contact]) -> None:
        for contact in contacts:
            self._verify(contact)

    def probe(self, contact: Contact, done: Callable[[], None]) -> None:
        """Ping a peer and draw the conclusions, without a task: most of what peers say to each other is this."""

        def settle(reply: Message | None) -> None:
            # A fault in what listens must not close the socket, as it would from within its callback.
            self._loop.call_soon(conclude, reply)

        def conclude(reply: Message | None) -> None:
            done()
            if self.transport is not None:
                self.handle_call_response((reply is not None, reply), Neighbor(contact))

        self._begin(contact.address, Ping(self.source_node.id, self.load, self.state_fingerprint), contact.id, settle)

    async def _request(self, address: Address, message: Message, to: bytes | None) -> Result:
        """Ask once, again after `resend_s`, and give up after `timeout_s`."""
        async with self._slots:
            reply: asyncio.Future[Message | None] = self._loop.create_future()

            def settle(answer: Message | None) -> None:
                if not reply.done():  # Whoever asked may have been cancelled a moment ago.
                    reply.set_result(answer)

            request_id = self._begin(address, message, to, settle)
            try:
                answer = await reply
            finally:
                self._end(request_id)
        return answer is not None, answer

    def _begin(
        self, address: Address, message: Message, to: bytes | None, settle: Callable[[Message | None], None]
    ) -> int:
        """Send a request; return its number."""
        request_id = self._random.getrandbits(64)
        while request_id in self._outstanding:
            request_id = self._random.getrandbits(64)
        request = encode(request_id, message)
        timer = self._loop.call_later(self._settings.resend_s, self._resend, request_id)
        due_at = self._loop.time() + self._settings.timeout_s
        self._outstanding[request_id] = PendingRequest(
            address, to, request, REPLY_TO[type(message)], settle, timer, due_at
        )
        self._send(request, address, to)
        return request_id

    def _end(self, request_id: int) -> PendingRequest | None:
        """Wait no more for the reply to a request; return what was waited for."""
        exchange = self._outstanding.pop(request_id, None)
        if exchange is not None:
            exchange.timer.cancel()
        return exchange

    def _resend(self, request_id: int) -> None:
        exchange = self._outstanding[request_id]
        self._send(exchange.request, exchange.address, exchange.to, again=True)
        exchange.timer = self._loop.call_at(exchange.due_at, self._give_up, request_id)

    def _give_up(self, request_id: int) -> None:
        exchange = self._outstanding[request_id]
        now = self._loop.time()
        if now - exchange.due_at > LOOP_STALL_S:
            # It was us who were held up: the reply may be waiting in the socket. Look there once before blaming.
            exchange.due_at = float("inf")
            exchange.timer = self._loop.call_later(self._settings.resend_s, self._give_up, request_id)
            return
        self.counters.timeouts += 1
        self._settle(request_id, None)

    def _settle(self, request_id: int, reply: Message | None) -> None:
        exchange = self._end(request_id)
        if exchange is not None:
            exchange.settle(reply)


def encode(request_id: int, message: Message) -> bytes:
    """Return one datagram."""
    return HEADER.pack(WIRE_VERSION, KINDS.index(type(message)), request_id) + pack(message)


def decode(data: bytes) -> tuple[int, Datagram]:
    """Return request ID and message of one datagram. Raises MalformedError for anything else."""
    if len(data) < HEADER.size:
        raise MalformedError(f"{len(data)} bytes")
    version, kind, request_id = HEADER.unpack_from(data)
    if version != WIRE_VERSION:
        raise VersionError(f"version {version}")
    if kind >= len(KINDS):
        raise MalformedError(f"kind {kind}")
    message: Datagram = unpack(data[HEADER.size :], KINDS[kind], DATAGRAM_BYTES_MAX - HEADER.size)
    return request_id, message


def fitting(contacts: list[Contact], bytes_max: int = DATAGRAM_BYTES_MAX) -> list[Contact]:
    """Return as many of `contacts` as one datagram takes, in their order: all k of IPv4, of IPv6 perhaps fewer."""
    room = bytes_max - NODES_BYTES
    for count, contact in enumerate(contacts):
        room -= CONTACT_BYTES + len(contact.host)
        if room < 0:
            return contacts[:count]
    return contacts
