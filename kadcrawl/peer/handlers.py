"""What a peer answers on the link: offers from others, waves, newcomers, and a person's commands.

One method per request type; each checks that this peer can answer at all, does the least that is needed, and
acknowledges only what is on disk. Bad requests are Refused with a sentence; see link/wire/messages.py for their
meaning.

Tests: tests/peer/test_swarm.py
"""

from typing import TYPE_CHECKING

import msgpack

from kadcrawl.errors import ConfigError, KadcrawlError
from kadcrawl.keys import anchor
from kadcrawl.link.peer_score import Misbehavior, MisbehaviorError
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import (
    WIRE_VERSION,
    Accepted,
    Add,
    Answer,
    AssignReplica,
    CellsAccepted,
    CellsHeld,
    Census,
    Command,
    CompareDigests,
    Contact,
    DatedOffer,
    DigestsCompared,
    FindMyCells,
    FindRanges,
    GetEpochFilters,
    GetFilterPart,
    GetLoad,
    GetStatus,
    GetSwarmState,
    GotEpochFilters,
    GotFilterPart,
    GotSwarmState,
    Grant,
    Hello,
    KeepEpochFilters,
    KeepFilterPart,
    KeptFilterPart,
    LeaseRenewed,
    LeaveStats,
    Lend,
    Lent,
    Link,
    Load,
    Message,
    MyCells,
    NewSeeds,
    Offer,
    Ok,
    Order,
    PeerRow,
    Question,
    Ranges,
    Recall,
    Recalled,
    Reconcile,
    Reconciled,
    Redirect,
    Refused,
    Rekey,
    RenewLease,
    ReplicaAssigned,
    Replicate,
    Replicated,
    Status,
    TakeOver,
    TakeOverAnswer,
    Tally,
    Wave,
    Welcome,
    WorkGrant,
    WorkRequest,
)
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.overlay.waves.quiescence import own_view
from kadcrawl.overlay.waves.wave import NO_BUCKET
from kadcrawl.peer.membership.node_id import RangeFinder
from kadcrawl.urls import is_canonical

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer


class NotReadyError(KadcrawlError):
    """This peer cannot answer yet, or no longer."""


class Handlers:
    """The handlers of one peer."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self._range_finder = RangeFinder()

    def register(self, server: LinkServer) -> None:
        """Let the server answer by these handlers."""
        server.handle(Offer, self.offer)
        server.handle(DatedOffer, self.offer)
        server.handle(Hello, self.hello)
        server.handle(GetSwarmState, self.swarm_state)
        server.handle(FindRanges, self.find_ranges)
        server.handle(Wave, self.wave)
        server.handle(Replicate, self.replicate)
        server.handle(FindMyCells, self.find_my_cells)
        server.handle(CellsHeld, self.cells_held)
        server.handle(TakeOver, self.take_over)
        server.handle(CompareDigests, self.compare_digests)
        server.handle(Reconcile, self.reconcile)
        server.handle(GetEpochFilters, self.get_epoch_filters)
        server.handle(GetFilterPart, self.get_filter_part)
        server.handle(KeepEpochFilters, self.keep_epoch_filters)
        server.handle(KeepFilterPart, self.keep_filter_part)
        server.handle(AssignReplica, self.assign_replica)
        server.handle(GetLoad, self.load)
        server.handle(Lend, self.lend)
        server.handle(RenewLease, self.renew_lease)
        server.handle(Recall, self.recall)
        server.handle(WorkRequest, self.request_work)
        server.handle(LeaveStats, self.leave_stats)
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
            place = peer.components.partitioner.locate_offered(link.url)
            if place is None:
                peer.components.intake.rejected += 1
            elif peer.overlay.owns(place.cell) and not peer.cells.holder_side.leaving:
                if self._comes_early(link, offer.seeds_fingerprint):
                    elsewhere.append(Redirect(index, peer.contact))
                else:
                    mine.append((link, place))
                    indices.append(index)
            else:
                elsewhere.append(Redirect(index, self._nearest_other(anchor(place.cell, peer.job.cell_bits))))
        elsewhere += [
            Redirect(indices[again], peer.contact)
            for again in await peer.cells.accept(mine, peer.components.intake.accept_offered)
        ]
        return Accepted(elsewhere)

    def _comes_early(self, link: Link, seeds_fingerprint: int) -> bool:
        """Whether this peer should hear of seeds before it judges the link of a peer with seeds of this mark."""
        concord = self._peer.state_gossip
        return (
            seeds_fingerprint not in (0, concord.seeds_fingerprint)
            and is_canonical(link.url)
            and self._peer.components.scope.why_not(link.url, link.depth) == "scope"
            and concord.may_know_more(seeds_fingerprint)
        )

    def _nearest_other(self, target: int) -> Contact:
        peer = self._peer
        for contact in peer.overlay.nearest_known(target, 2):
            if contact.id != peer.contact.id:
                return contact
        raise NotReadyError("this peer is leaving and knows no other")

    # --- joining and moving --------------------------------------------------------------------------------------

    async def hello(self, hello: Hello) -> Welcome:
        if hello.version != WIRE_VERSION:
            why = f"this swarm speaks version {WIRE_VERSION} of the wire, not {hello.version}: use the same release"
            raise MisbehaviorError(Misbehavior.VERSION, why)
        peer = self._ready()
        return Welcome(peer.job, peer.paused, peer.balancing.wait_s, peer.state_gossip.state.stamp)

    async def swarm_state(self, _: GetSwarmState) -> GotSwarmState:
        peer = self._settled()  # One that is still joining may have missed what it is asked for.
        course = peer.state_gossip.state
        return GotSwarmState(course.stamp, course.paused, list(peer.job.seeds))

    async def find_ranges(self, question: FindRanges) -> Ranges:
        return await self._range_finder.find(self._settled().overlay, question)

    async def replicate(self, message: Replicate) -> Replicated:
        await self._asked_by(message.sender).cells.receive(message)
        return Replicated()

    async def cells_held(self, message: CellsHeld) -> CellsAccepted:
        self._settled()
        return self._asked_by(message.holder).cells.sync.cells_held(message)

    async def find_my_cells(self, message: FindMyCells) -> MyCells:
        return self._asked_by(message.newcomer).cells.sync.find_my_cells(message)

    async def take_over(self, message: TakeOver) -> TakeOverAnswer:
        return self._asked_by(message.owner).cells.holder_side.answer(message)

    async def compare_digests(self, message: CompareDigests) -> DigestsCompared:
        return await self._ready().cells.anti_entropy.answer_compare(message)

    async def reconcile(self, message: Reconcile) -> Reconciled:
        return await self._ready().cells.anti_entropy.answer_reconcile(message)

    async def get_epoch_filters(self, question: GetEpochFilters) -> GotEpochFilters:
        return await self._ready().cells.filter_sync.answer(question)

    async def get_filter_part(self, question: GetFilterPart) -> GotFilterPart:
        return await self._ready().cells.filter_sync.part(question)

    async def keep_epoch_filters(self, message: KeepEpochFilters) -> Replicated:
        await self._asked_by(message.owner).cells.keep_epoch_filters(message)
        return Replicated()

    async def keep_filter_part(self, message: KeepFilterPart) -> KeptFilterPart:
        return KeptFilterPart(await self._asked_by(message.owner).cells.keep_filter_part(message))

    async def assign_replica(self, message: AssignReplica) -> ReplicaAssigned:
        return self._asked_by(message.owner).cells.holder_side.assign_replica(message)

    # --- loans ---------------------------------------------------------------------------------------------------

    async def load(self, question: GetLoad) -> Load:
        return self._settled().balancing.answer(question)

    async def lend(self, lend: Lend) -> Lent:
        self._settled()
        return Lent(self._asked_by(lend.lender).balancing.accept_loan(lend))

    async def renew_lease(self, message: RenewLease) -> LeaseRenewed:
        return await self._ready().balancing.loans.lender.renew_lease(message)

    async def recall(self, recall: Recall) -> Recalled:
        self._ready().balancing.loans.borrower.recall(recall)
        return Recalled()

    async def request_work(self, request: WorkRequest) -> WorkGrant:
        return await self._settled().leaf_host.grant(request)

    async def leave_stats(self, message: LeaveStats) -> Ok:
        peer = self._ready()
        if peer.leaving:
            raise NotReadyError("this peer leaves as well")
        peer.departed.keep(message.departed)
        await peer.store.journal.durable()
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
                if question.verb == "stop":
                    peer.leaf_host.stop()
                peer.obey(question)
            case NewSeeds():
                peer.add_seeds(question.urls)
            case Grant():
                peer.components.budget.learn(question.totals, peer.contact.id, question.spent)
                peer.store.meta.set("grants", msgpack.packb(peer.components.budget.known))
                peer.components.crawler.wake()
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
        return tally, [peer.row(), *peer.leaf_host.rows(), *peer.departed.rows()]

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
            await peer.state_gossip.order(command.verb)
        return Ok()

    async def rekey(self, message: Rekey) -> Ok:
        if message.peer != self._peer.contact.id:
            raise MisbehaviorError(
                Misbehavior.CLAIM, "only whoever runs a peer changes its key: on its machine, by its directory"
            )
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
            raise MisbehaviorError(Misbehavior.CONTACT, f"no peer is asked at {contact.host}")
        return self._ready()

    def _settled(self) -> "Peer":
        peer = self._ready()
        if peer.joining:
            raise NotReadyError("this peer is still joining the swarm; try again in a moment")
        return peer
