"""What a peer answers on the link: offers from others, waves, newcomers, and a person's commands.

One method per request type; each checks that this peer can answer at all, does the least that is needed, and
acknowledges only what is on disk. Bad requests are Refused with a sentence; see link/wire/messages.py for their
meaning.
"""

from typing import TYPE_CHECKING

import msgpack

from kadcrawl.errors import ConfigError, KadcrawlError
from kadcrawl.keys import anchor
from kadcrawl.lending.leaf_host import Leaves
from kadcrawl.link.peer_scoring import Fault, FaultError
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import (
    VERSION,
    Accepted,
    Add,
    Answer,
    Census,
    Claim,
    Claimed,
    Command,
    Compare,
    Compared,
    Contact,
    DatedOffer,
    Draw,
    Drawn,
    Elsewhere,
    Exchange,
    Exchanged,
    Farewell,
    FindRanges,
    GetCourse,
    GetLevel,
    GetSlicePart,
    GetSlices,
    GetStatus,
    GotCourse,
    GotSlicePart,
    GotSlices,
    Grant,
    Have,
    Hello,
    KeepSlicePart,
    KeepSlices,
    KeptSlicePart,
    Lend,
    Lent,
    Link,
    Loaded,
    Message,
    NewSeeds,
    Offer,
    Ok,
    Order,
    PeerRow,
    Question,
    Ranges,
    Recall,
    Recalled,
    Recorded,
    Records,
    Refused,
    Rekey,
    Report,
    Reported,
    Settle,
    Settled,
    Status,
    Sync,
    Synced,
    Taken,
    Tally,
    Wave,
    Welcome,
)
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.overlay.quiescence import own_view
from kadcrawl.overlay.wave import NO_BUCKET
from kadcrawl.peer.membership.node_id import Guide
from kadcrawl.urls import is_canonical

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer


class NotReadyError(KadcrawlError):
    """This peer cannot answer yet, or no longer."""


class Service:
    """The handlers of one peer."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self._guide = Guide()
        self._leaves = Leaves(peer)

    def register(self, server: LinkServer) -> None:
        """Let the server answer by these handlers."""
        server.handle(Offer, self.offer)
        server.handle(DatedOffer, self.offer)
        server.handle(Hello, self.hello)
        server.handle(GetCourse, self.course)
        server.handle(FindRanges, self.find_ranges)
        server.handle(Wave, self.wave)
        server.handle(Records, self.records)
        server.handle(Claim, self.claim)
        server.handle(Have, self.have)
        server.handle(Sync, self.sync)
        server.handle(Compare, self.compare)
        server.handle(Exchange, self.exchange)
        server.handle(GetSlices, self.get_slices)
        server.handle(GetSlicePart, self.get_slice_part)
        server.handle(KeepSlices, self.keep_slices)
        server.handle(KeepSlicePart, self.keep_slice_part)
        server.handle(Settle, self.settle)
        server.handle(GetLevel, self.level)
        server.handle(Lend, self.lend)
        server.handle(Report, self.report)
        server.handle(Recall, self.recall)
        server.handle(Draw, self.draw)
        server.handle(Farewell, self.farewell)
        server.handle(GetStatus, self.status)
        server.handle(Add, self.add)
        server.handle(Command, self.command)
        server.handle(Rekey, self.rekey)

    # --- the life of a URL ---------------------------------------------------------------------------------------

    async def offer(self, offer: Offer | DatedOffer) -> Accepted:
        """Take the links this peer owns, and name the owners of the others."""
        peer = self._settled()
        mine = []
        indices = []
        elsewhere = []
        for index, link in enumerate(offer.links):
            place = peer.parts.placer.place_offered(link.url)
            if place is None:
                peer.parts.intake.rejected += 1
            elif peer.overlay.owns(place.cell) and not peer.cells.telling.leaving:
                if self._comes_early(link, offer.mark):
                    elsewhere.append(Elsewhere(index, peer.contact))
                else:
                    mine.append((link, place))
                    indices.append(index)
            else:
                elsewhere.append(Elsewhere(index, self._nearest_other(anchor(place.cell, peer.job.cell_bits))))
        elsewhere += [
            Elsewhere(indices[again], peer.contact)
            for again in await peer.cells.take(mine, peer.parts.intake.take_offered)
        ]
        return Accepted(elsewhere)

    def _comes_early(self, link: Link, mark: int) -> bool:
        """Whether this peer should hear of seeds before it judges the link of a peer with seeds of this mark."""
        concord = self._peer.concord
        return (
            mark not in (0, concord.mark)
            and is_canonical(link.url)
            and self._peer.parts.scope.why_not(link.url, link.depth) == "scope"
            and concord.may_know_more(mark)
        )

    def _nearest_other(self, target: int) -> Contact:
        peer = self._peer
        for contact in peer.overlay.nearest_known(target, 2):
            if contact.id != peer.contact.id:
                return contact
        raise NotReadyError("this peer is leaving and knows no other")

    # --- joining and moving --------------------------------------------------------------------------------------

    async def hello(self, hello: Hello) -> Welcome:
        if hello.version != VERSION:
            why = f"this swarm speaks version {VERSION} of the wire, not {hello.version}: use the same release"
            raise FaultError(Fault.VERSION, why)
        peer = self._ready()
        return Welcome(peer.job, peer.paused, peer.balancing.wait_s, peer.concord.course.stamp)

    async def course(self, _: GetCourse) -> GotCourse:
        peer = self._settled()  # One that is still joining may have missed what it is asked for.
        course = peer.concord.course
        return GotCourse(course.stamp, course.paused, list(peer.job.seeds))

    async def find_ranges(self, question: FindRanges) -> Ranges:
        return await self._guide.find(self._settled().overlay, question)

    async def records(self, records: Records) -> Recorded:
        await self._asked_by(records.sender).cells.receive(records)
        return Recorded()

    async def have(self, have: Have) -> Taken:
        self._settled()
        return self._asked_by(have.holder).cells.sync.have(have)

    async def claim(self, claim: Claim) -> Claimed:
        return self._asked_by(claim.newcomer).cells.sync.claim(claim)

    async def sync(self, sync: Sync) -> Synced:
        return self._asked_by(sync.owner).cells.telling.answer(sync)

    async def compare(self, compare: Compare) -> Compared:
        return await self._ready().cells.exchanger.compare(compare)

    async def exchange(self, exchange: Exchange) -> Exchanged:
        return await self._ready().cells.exchanger.exchange(exchange)

    async def get_slices(self, question: GetSlices) -> GotSlices:
        return await self._ready().cells.slices.answer(question)

    async def get_slice_part(self, question: GetSlicePart) -> GotSlicePart:
        return await self._ready().cells.slices.part(question)

    async def keep_slices(self, message: KeepSlices) -> Recorded:
        await self._asked_by(message.owner).cells.keep_slices(message)
        return Recorded()

    async def keep_slice_part(self, message: KeepSlicePart) -> KeptSlicePart:
        return KeptSlicePart(await self._asked_by(message.owner).cells.keep_slice_part(message))

    async def settle(self, settle: Settle) -> Settled:
        return self._asked_by(settle.owner).cells.telling.settle(settle)

    # --- loans ---------------------------------------------------------------------------------------------------

    async def level(self, question: GetLevel) -> Loaded:
        return self._settled().balancing.told(question)

    async def lend(self, lend: Lend) -> Lent:
        self._settled()
        return Lent(self._asked_by(lend.giver).balancing.take(lend))

    async def report(self, report: Report) -> Reported:
        return await self._ready().balancing.loans.lending.reported(report)

    async def recall(self, recall: Recall) -> Recalled:
        self._ready().balancing.loans.borrowing.recall(recall)
        return Recalled()

    async def draw(self, draw: Draw) -> Drawn:
        self._settled()
        return await self._leaves.draw(draw)

    async def farewell(self, farewell: Farewell) -> Ok:
        peer = self._ready()
        if peer.leaving:
            raise NotReadyError("this peer leaves as well")
        peer.departed.keep(farewell.departed)
        await peer.store.durable()
        return Ok()

    # --- waves ---------------------------------------------------------------------------------------------------

    async def wave(self, wave: Wave) -> Answer:
        # One that is still joining knows few: whom it does not know of the asker's subtree would be passed over unseen.
        peer = self._ready() if wave.limit == NO_BUCKET else self._settled()
        return await peer.waves.answer(wave)

    def respond(self, question: Question) -> tuple[Tally, list[PeerRow]]:
        """Act on a wave's question and give this peer's own part of the answer."""
        peer = self._peer
        match question:
            case Order():
                self._leaves.stopped = self._leaves.stopped or question.verb == "stop"
                peer.obey(question)
            case NewSeeds():
                peer.add_seeds(question.urls)
            case Grant():
                peer.parts.budget.learn(question.totals, peer.contact.id, question.spent)
                peer.store.set_meta("grants", msgpack.packb(peer.parts.budget.known))
                peer.parts.crawler.wake()
        tally = Tally(
            members=1,
            view=own_view(peer.contact.id, peer.incarnation, peer.activity.count),
            pending=peer.pending,
            unacknowledged=peer.unacknowledged,
            missing=0,
            due_s=peer.due_s,
        )
        if not isinstance(question, Census):
            return tally, []
        return tally, [peer.row(), *self._leaves.rows(), *peer.departed.rows()]

    # --- control -------------------------------------------------------------------------------------------------

    async def status(self, _: GetStatus) -> Status:
        peer = self._ready()
        return Status(peer.job, await peer.census(), peer.ended, peer.paused)

    async def add(self, add: Add) -> Message:
        peer = self._settled()
        try:
            await peer.crawl(add.urls)
        except ConfigError as error:
            return Refused(str(error))
        return Ok()

    async def command(self, command: Command) -> Ok:
        peer = self._settled()
        if command.verb == "leave":
            peer.leave_soon()
        else:
            await peer.concord.order(command.verb)
        return Ok()

    async def rekey(self, message: Rekey) -> Ok:
        if message.peer != self._peer.contact.id:
            raise FaultError(Fault.CLAIM, "only whoever runs a peer changes its key: on its machine, by its directory")
        self._peer.change_key(SwarmKey(message.key))
        return Ok()

    def _ready(self) -> "Peer":
        if not self._peer.begun:
            raise NotReadyError("this peer is still starting; try again in a moment")
        return self._peer

    def _asked_by(self, contact: Contact) -> "Peer":
        """Return this peer for one that says it is at `contact`, where it will be asked in turn.

        Raises FaultError if no single host can be there (overlay/addresses.py).
        """
        if ip_version(contact.host) is None:
            raise FaultError(Fault.CONTACT, f"no peer is asked at {contact.host}")
        return self._ready()

    def _settled(self) -> "Peer":
        peer = self._ready()
        if peer.joining:
            raise NotReadyError("this peer is still joining the swarm; try again in a moment")
        return peer
