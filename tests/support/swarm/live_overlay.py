"""The overlay of a peer that knows two others."""

from kadcrawl.link.wire.messages import (
    Contact,
)
from tests.support.links.contacts import contact

ME, A, B = contact(1), contact(2), contact(3)


class LiveOverlay:
    me = ME

    def __init__(self) -> None:
        self.live = {A.id, B.id}
        self.suspected: list[Contact] = []

    def is_live(self, peer: bytes) -> bool:
        return peer in self.live

    def suspect(self, contact: Contact) -> None:
        self.suspected.append(contact)
