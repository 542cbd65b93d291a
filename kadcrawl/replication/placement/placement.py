"""The holders of a cell: its owner, nearest to the anchor, and two backups, nearest to two more hashes (P1 1.2).

The three peers are distinct: a peer that has a role is skipped. With plain double hashing a backup would be the owner
itself for 18.5 % of the URLs of 8 peers, and losing two of them would lose 7.5 %. A swarm of fewer than three peers
holds as many copies as it has peers. Decides only.
"""

from collections.abc import Sequence

from kadcrawl.keys import Cell, anchor, backup_key
from kadcrawl.link.wire.messages import Contact

OWNER, FIRST_BACKUP, SECOND_BACKUP = range(3)
"""The roles of the holders. Each has its placement key."""
HOLDERS = 3


def placement_keys(cell: Cell, cell_bits: int) -> tuple[int, int, int]:
    """Return the placement keys of a cell by role, as 160-bit numbers: its anchor and its two backup keys."""
    return anchor(cell, cell_bits), backup_key(cell, 1, cell_bits), backup_key(cell, 2, cell_bits)


def nearer(one: Contact, other: Contact, target: int) -> bool:
    """Return whether one peer is XOR-nearer to a key than another."""
    return one.number ^ target < other.number ^ target


def holders(nearest: Sequence[Sequence[Contact]]) -> list[Contact]:
    """Return the distinct holders of a cell, by role.

    `nearest[role]` are the peers nearest to the placement key of the role, nearest first: `HOLDERS` of them, or all
    peers of a smaller swarm.
    """
    chosen: list[Contact] = []
    for candidates in nearest:
        taken = {contact.id for contact in chosen}
        chosen += [contact for contact in candidates if contact.id not in taken][:1]
    return chosen
