"""The holders of a cell: its owner, nearest to the anchor, and its backups, nearest to further hashes (P1 1.2).

The job says how many holders a cell has (`Job.copies`, three by default). They are distinct: a peer that has a role is
skipped. With plain double hashing a backup would be the owner itself for 17 % of the URLs of 8 peers, and losing two of
them would lose 7.2 % (sim/papers/double_hashing.py). A swarm of fewer peers holds as many copies as it has peers.
Decides only.
"""

from collections.abc import Sequence

from kadcrawl.keys import Cell, anchor, backup_key
from kadcrawl.link.wire.messages import Contact

OWNER, FIRST_BACKUP, SECOND_BACKUP = range(3)
"""The first roles of the holders. Each role has its placement key, and further backups have the next numbers."""
HOLDERS = 3
"""Holders of a cell in a job that does not say otherwise."""


def placement_keys(cell: Cell, cell_bits: int, copies: int = HOLDERS) -> tuple[int, ...]:
    """Return the placement keys of a cell by role, as 160-bit numbers: its anchor and its backup keys."""
    backups = range(FIRST_BACKUP, copies)
    return anchor(cell, cell_bits), *(backup_key(cell, number, cell_bits) for number in backups)


def nearer(one: Contact, other: Contact, target: int) -> bool:
    """Return whether one peer is XOR-nearer to a key than another."""
    return one.number ^ target < other.number ^ target


def holders(nearest: Sequence[Sequence[Contact]]) -> list[Contact]:
    """Return the distinct holders of a cell, by role.

    `nearest[role]` are the peers nearest to the placement key of the role, nearest first: as many as there are
    roles, or all peers of a smaller swarm.
    """
    chosen: list[Contact] = []
    for candidates in nearest:
        taken = {contact.id for contact in chosen}
        chosen += [contact for contact in candidates if contact.id not in taken][:1]
    return chosen
