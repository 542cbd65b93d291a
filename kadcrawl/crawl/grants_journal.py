"""The grants of a budget in the journal: those that the peer knows, its own grant, and the epoch of its last row.

Tests: tests/crawl/test_grants_journal.py, tests/peer/test_max_bytes.py, tests/peer/test_damage.py
"""

from typing import Final, Literal, NamedTuple, Protocol

import msgspec

from kadcrawl.store.meta_table import MetaTable

GRANT_NAMES: Final = {"pages": "granted", "bytes": "bytes_granted"}
"""Unit of a budget -> the name of its grant in the journal."""
EPOCH_NAMES: Final = {"pages": "grant_epoch", "bytes": "bytes_epoch"}
"""Unit of a budget -> the name of the epoch of its last row."""
KNOWN_NAMES: Final = {"pages": ("grants", "grant_epochs"), "bytes": ("bytes_grants", "bytes_epochs")}
"""Unit of a budget -> the names of the known totals, and of their epochs."""

_BY_PEER: Final = msgspec.msgpack.Decoder(dict[bytes, int])


class JournaledBudget(Protocol):
    """A budget as the journal keeps it."""

    @property
    def unit(self) -> Literal["pages", "bytes"]: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def epoch(self) -> int: ...
    @property
    def known(self) -> dict[bytes, int]: ...
    @property
    def epochs(self) -> dict[bytes, int]: ...
    def to_journal(self) -> bytes: ...


class Grants(NamedTuple):
    """The grants of one budget, as a peer starts with them."""

    granted: int
    known: dict[bytes, int]
    epochs: dict[bytes, int]
    epoch: int


def read_grants(meta: MetaTable, unit: Literal["pages", "bytes"], now: float) -> Grants:
    """Return the grants of the last run, and an epoch that is later than each of that run.

    The last epochs of a run that crashed may not be journaled. A peer begins far less than one epoch a millisecond, so
    the milliseconds since 1970 are beyond them. The journal guards against a clock that was put back.
    """
    known, epochs = (meta.read(name, _BY_PEER.decode) or {} for name in KNOWN_NAMES[unit])
    epoch = max(int(now * 1000), meta.read(EPOCH_NAMES[unit], int) or 0)
    return Grants(meta.read(GRANT_NAMES[unit], int) or 0, known, epochs, epoch)


def write_grant(meta: MetaTable, budget: JournaledBudget) -> None:
    """Journal the peer's grant, and the epoch of its last row, with the next commit.

    Without a limit no row begins an epoch, and a page costs no more than the grant.
    """
    meta.set(GRANT_NAMES[budget.unit], budget.to_journal())
    if budget.limit is not None:
        meta.set(EPOCH_NAMES[budget.unit], str(budget.epoch).encode())


def write_known(meta: MetaTable, budget: JournaledBudget) -> None:
    """Journal the totals of all peers that the peer knows, and their epochs, with the next commit."""
    for name, values in zip(KNOWN_NAMES[budget.unit], (budget.known, budget.epochs), strict=True):
        meta.set(name, msgspec.msgpack.encode(values))
