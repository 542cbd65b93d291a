"""`SyncProgress`: the state machine of one cell being synced, and the decisions of one attempt.

A cell is QUEUED until it has a sync slot and the join handshake is done. An attempt looks up the holders (LOCATING),
asks them (ASKING), waits while some of them still crawl the cell (RELEASING), merges what differs (MERGING) and opens
the cell (OPENED). A failed attempt, or a new request meanwhile, queues the cell again. Decides only: the conversation
is in catch_up.py, the queue in sync.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import CellState, CellSummary, Contact
from kadcrawl.replication.placement.placement import FIRST_BACKUP

CLAIMS_MAX = 64
"""Claims of other peers to hold a cell that are noted during an attempt. With more the cell is synced once more."""


class SyncState(Enum):
    """The states of a cell that is being synced."""

    QUEUED = auto()
    """The cell waits for a slot, for the join handshake, or for its next attempt."""
    LOCATING = auto()
    """The holders are being looked up in the overlay."""
    ASKING = auto()
    """The holders and providers are being asked for their holdings."""
    RELEASING = auto()
    """An asked peer still crawls the cell, and is asked again."""
    MERGING = auto()
    """The records that differ are being merged."""
    OPENED = auto()
    """The cell is open, and the holders get their notices."""
    ENDED = auto()
    """The cell is not being synced any more."""


_FAILED = frozenset({SyncState.QUEUED, SyncState.ENDED})
MOVES: Mapping[SyncState, frozenset[SyncState]] = {
    SyncState.QUEUED: frozenset({SyncState.LOCATING, SyncState.ENDED}),
    SyncState.LOCATING: frozenset({SyncState.ASKING}) | _FAILED,
    SyncState.ASKING: frozenset({SyncState.RELEASING, SyncState.MERGING}) | _FAILED,
    SyncState.RELEASING: frozenset({SyncState.ASKING}) | _FAILED,
    SyncState.MERGING: frozenset({SyncState.OPENED}) | _FAILED,
    SyncState.OPENED: _FAILED,
    SyncState.ENDED: frozenset(),
}
"""State -> the states that may follow. Every attempt can fail (back to QUEUED) or be cancelled (ENDED)."""


class IllegalMoveError(Exception):
    """A bug: a cell's sync moves to a state that may not follow its state."""


@dataclass(slots=True)
class SyncAttempt:
    """One attempt to sync a cell: the peers to ask, and their answers."""

    began: float
    """Second of the loop at which the attempt began."""
    absences: int
    """Count of this peer's absences at the beginning: answers from before an absence are void."""
    newcomers: int
    """Count of newcomers at the beginning."""
    left_closed: bool
    """True if the cell is closed, or was closed, during the attempt."""
    was_patient: bool = True
    """True if the attempt began while the cell had waiting time left, so that providers are asked too."""
    saved: bool = False
    """True if the records of releasing peers are merged and copied to the backups."""
    backups: Sequence[Contact] = ()
    """The peers that are to be the cell's backups."""
    former: dict[bytes, Contact] = field(default_factory=dict)
    """The other holders as this peer knew them at the beginning."""
    near: set[bytes] = field(default_factory=set)
    """The peers near the cell, by ID, whose DONE records count."""
    placed: set[bytes] = field(default_factory=set)
    """The peers that are asked regardless of their quota, by ID."""
    asked: dict[bytes, Contact] = field(default_factory=dict)
    """The peers to ask."""
    answers: dict[bytes, CellState] = field(default_factory=dict)
    """The final answers so far, by peer."""

    def choose(
        self, chosen: Sequence[Contact], nearest: Sequence[Contact], former: Iterable[Contact], me: bytes
    ) -> None:
        """Plan to ask the backups, the peer next nearest to the anchor, and the former holders.

        `chosen` are the holders by role, `nearest` the peers nearest to the anchor.
        """
        self.backups = chosen[FIRST_BACKUP:]
        self.former = {contact.id: contact for contact in former}
        known = {contact.id: contact for contact in [*self.backups, *nearest[1:2]]}
        self.near = {contact.id for contact in [*self.backups, *nearest]}
        # The address of a peer we know is ours to say, not others'.
        self.asked = known | self.former
        self.placed = set(self.asked)
        self.asked.pop(me, None)

    def ask_too(self, providers: Mapping[bytes, Contact], me: bytes) -> None:
        """Ask these peers as well."""
        self.asked |= {peer: contact for peer, contact in providers.items() if peer not in self.asked and peer != me}

    @property
    def unasked(self) -> list[Contact]:
        """The peers that have not given their final answer."""
        return [contact for peer, contact in self.asked.items() if peer not in self.answers]

    def all_answers(self) -> list[tuple[Contact, CellState]]:
        """Return the answers in the order of the questions."""
        return [(contact, self.answers[peer]) for peer, contact in self.asked.items()]

    def is_backup(self, contact: Contact) -> bool:
        """Return whether a peer is to be one of the cell's backups."""
        return any(contact.id == backup.id for backup in self.backups)

    def was_released(self) -> bool:
        """Return whether a peer released the cell and passed all its clocks on."""
        return any(answer.released for answer in self.answers.values()) and not self.lacks_clocks()

    def lacks_clocks(self) -> bool:
        """Return whether a peer could not pass all its clocks on."""
        return any(answer.clocks_incomplete for answer in self.answers.values())

    def lost_s(self) -> float | None:
        """Return the least seconds since a peer that answered lost another, or None if that was long ago."""
        return min((answer.lost_s for answer in self.answers.values() if answer.lost_s is not None), default=None)

    def others_hold_records(self) -> bool:
        """Return whether any asked peer holds records of the cell."""
        return any(answer.held.keys for answer in self.answers.values())

    def in_merge_order(self) -> list[tuple[Contact, CellState]]:
        """Return the answers in the order to merge them: first from peers that released the cell, then the largest."""
        return sorted(self.all_answers(), key=lambda one: (not one[1].released, -one[1].held.keys))

    def must_drop(self, contact: Contact, answer: CellState) -> bool:
        """Return whether a peer is to be told to drop its copy.

        A former backup may have nothing yet of the changes on their way to it.
        """
        return not self.is_backup(contact) and (answer.held.keys > 0 or contact.id in self.former)


class SyncProgress:
    """One cell from the request for a sync to its end."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.state = SyncState.QUEUED
        self.requested_again = False
        """True if another sync of the cell was requested since the last attempt began."""
        self._claims: dict[bytes, CellSummary] = {}
        """Peer, by ID -> the records that it claims to hold, of claims since the last attempt began."""

    def __repr__(self) -> str:
        return f"<sync of cell {self.cell} {self.state.name.lower()}>"

    def move(self, to: SyncState) -> None:
        """Enter another state. Raises IllegalMoveError if it may not follow."""
        if to not in MOVES[self.state]:
            raise IllegalMoveError(f"the sync of cell {self.cell} cannot go from {self.state.name} to {to.name}")
        self.state = to

    def request_again(self) -> None:
        """Sync the cell once more after the attempt in progress."""
        self.requested_again = True

    def claim(self, holder: bytes, held: CellSummary) -> bool:
        """Note the claim of a peer, by ID, to hold these records. Return whether it is the first since the attempt."""
        is_first = not self.requested_again and holder not in self._claims
        if is_first and len(self._claims) == CLAIMS_MAX:
            self.request_again()
        elif not self.requested_again:
            self._claims[holder] = held
        return is_first

    def hear(self, answers: Mapping[bytes, CellState]) -> None:
        """Sync the cell once more after an attempt with these answers if a claim says anything else."""
        heard = {peer: answer.held for peer, answer in answers.items()}
        if any(heard.get(peer) != held for peer, held in self._claims.items()):
            self.request_again()

    def take_request(self) -> None:
        """Note that the attempt that begins now answers all requests so far."""
        self.requested_again = False
        self._claims.clear()
