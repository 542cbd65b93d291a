"""The peer to which a leaf offers links: its full peer, until a hint names the owner."""

import pytest

from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.leaf.leaf_owners import OWNERS_S, LeafOwners
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import Contact
from sim.loop import world

BITS = 16
CELL = Cell(0x8000)


def contact_at(distance: int, host: str = "10.0.0.1") -> Contact:
    """Return a contact so far from the cell."""
    return Contact(id_bytes(anchor(CELL, BITS) ^ distance), host, 4160)


HOME, NEARER, NEAREST = contact_at(1 << 100), contact_at(1 << 90, "10.0.0.2"), contact_at(1 << 80, "10.0.0.3")
FARTHER = contact_at(1 << 110, "10.0.0.4")


def owner_after(*said: Contact, suspects: Contact | None = None, wait_s: float = 0.0) -> Contact:
    """Return the contact that a leaf at HOME asks after these contacts were named."""

    async def scenario() -> Contact:
        owners = LeafOwners(leaf_contact(id_bytes(1)), BITS, lambda: HOME)
        for one in said:
            owners.learn_owner(CELL, one)
        if suspects is not None:
            owners.suspect(suspects)
        loop.now += wait_s
        return await owners.owner(CELL)

    with world(0) as loop:
        return loop.run_until_complete(scenario())


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], HOME),
        ([NEARER], NEARER),
        ([NEARER, NEAREST], NEAREST),
        # Whoever was nearest may be somebody else now, at the same address.
        ([NEAREST, NEARER], NEARER),
        ([FARTHER], FARTHER),
        ([contact_at(1, "224.0.0.1")], HOME),
        ([NEARER, contact_at(1, "0.0.0.0")], NEARER),
    ],
)
def test_a_leaf_believes_what_it_was_told_last(said: list[Contact], expected: Contact) -> None:
    assert expected == owner_after(*said)


def test_an_owner_that_fails_is_forgotten() -> None:
    assert HOME == owner_after(NEARER, suspects=NEARER)
    assert NEARER == owner_after(NEARER, suspects=NEAREST)


def test_an_owner_is_not_believed_for_ever() -> None:
    assert NEARER == owner_after(NEARER, wait_s=OWNERS_S - 1)
    assert HOME == owner_after(NEARER, wait_s=OWNERS_S)
