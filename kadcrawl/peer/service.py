"""What a peer answers on the link: offers from others, waves, newcomers, and a person's commands.

One method per request type; each checks that this peer can answer at all, does the least that is needed, and
acknowledges only what is on disk. Bad requests are Refused with a sentence; see link/messages.py for their meaning.
"""

from typing import TYPE_CHECKING

import msgpack

from kadcrawl.errors import ConfigError, KadcrawlError
from kadcrawl.keys import anchor
from kadcrawl.link.messages import (
    VERSION,
    Accepted,
    Add,
    Answer,
    Census,
    Command,
    Contact,
    Elsewhere,
    GetStatus,
    Grant,
    Hello,
    Message,
    NewSeeds,
    Offer,
    Ok,
    Order,
    PeerRow,
    Question,
    Recorded,
    Records,
    Refused,
    Status,
    Sync,
    Synced,
    Tally,
    Wave,
    Welcome,
)
from kadcrawl.link.server import LinkServer
from kadcrawl.overlay.quiescence import own_view

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer


class NotReadyError(KadcrawlError):
    """This peer cannot answer yet, or no longer."""


class Service:
    """The handlers of one peer."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer

    def register(self, server: LinkServer) -> None:
        """Let the server answer by these handlers."""
        server.handle(Offer, self.offer)
        server.handle(Hello, self.hello)
        server.handle(Wave, self.wave)
        server.handle(Records, self.records)
        server.handle(Sync, self.sync)
        server.handle(GetStatus, self.status)
        server.handle(Add, self.add)
        server.handle(Command, self.command)

    # --- the life of a URL ---------------------------------------------------------------------------------------

    async def offer(self, offer: Offer) -> Accepted:
        """Take the links this peer owns, and name the owners of the others."""
        peer = self._settled()
        now = peer.clock.now()
        elsewhere = []
        for index, link in enumerate(offer.links):
            place = peer.parts.placer.place(link.url)
            if peer.overlay.owns(place.cell) and not peer.leaving:
                peer.parts.intake.take_offered(link, place, now)
            else:
                elsewhere.append(Elsewhere(index, self._nearest_other(anchor(place.cell, peer.job.cell_bits))))
        if len(elsewhere) < len(offer.links):
            await peer.store.durable()
        return Accepted(elsewhere)

    def _nearest_other(self, target: int) -> Contact:
        peer = self._peer
        for contact in peer.overlay.nearest_known(target, 2):
            if contact.id != peer.contact.id:
                return contact
        raise NotReadyError("this peer is leaving and knows no other")

    # --- joining and moving --------------------------------------------------------------------------------------

    async def hello(self, hello: Hello) -> Welcome | Refused:
        if hello.version != VERSION:
            return Refused(
                f"this swarm speaks version {VERSION} of the wire, not {hello.version}: use the same release"
            )
        peer = self._ready()
        return Welcome(peer.job, peer.paused)

    async def records(self, records: Records) -> Recorded:
        peer = self._ready()
        if peer.leaving:
            raise NotReadyError("this peer is leaving itself")
        peer.handover.receive(records)
        await peer.store.durable()
        return Recorded()

    async def sync(self, sync: Sync) -> Synced:
        peer = self._ready()
        if peer.leaving:
            raise NotReadyError("this peer is leaving, and gives its range to all")
        return Synced(await peer.handover.give_to(sync.newcomer))

    # --- waves ---------------------------------------------------------------------------------------------------

    async def wave(self, wave: Wave) -> Answer:
        self._ready()
        return await self._peer.waves.answer(wave)

    def respond(self, question: Question) -> tuple[Tally, list[PeerRow]]:
        """Act on a wave's question and give this peer's own part of the answer."""
        peer = self._peer
        match question:
            case Order():
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
        )
        return tally, [peer.row()] if isinstance(question, Census) else []

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
            await peer.waves.tell_all(Order(command.verb))
        return Ok()

    def _ready(self) -> "Peer":
        if not self._peer.begun:
            raise NotReadyError("this peer is still starting; try again in a moment")
        return self._peer

    def _settled(self) -> "Peer":
        peer = self._ready()
        if peer.joining:
            raise NotReadyError("this peer is still joining the swarm; try again in a moment")
        return peer
