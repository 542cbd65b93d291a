"""The sender that a request names. Where a connection proves the peer at its other end, the two must be equal."""

from collections.abc import Callable
from typing import Any

from kadcrawl.link.wire.clock_messages import LeaseClocks
from kadcrawl.link.wire.messages import (
    AssignReplica,
    CellsHeld,
    FindMyCells,
    GetLoad,
    KeepEpochFilters,
    KeepFilterPart,
    LeaveStats,
    Lend,
    Message,
    OpenDashboard,
    Recall,
    Rekey,
    RenewLease,
    Replicate,
    TakeOver,
    WasAway,
    WorkRequest,
)
from kadcrawl.link.wire.relay_messages import FetchForPeer, GetFetchedPart

SENDER_ID: dict[type[Message], Callable[[Any], bytes]] = {
    Replicate: lambda message: message.sender.id,
    FindMyCells: lambda message: message.newcomer.id,
    WasAway: lambda message: message.peer.id,
    CellsHeld: lambda message: message.holder.id,
    TakeOver: lambda message: message.owner.id,
    KeepEpochFilters: lambda message: message.owner.id,
    KeepFilterPart: lambda message: message.owner.id,
    AssignReplica: lambda message: message.owner.id,
    GetLoad: lambda message: message.asker,
    Lend: lambda message: message.lender.id,
    RenewLease: lambda message: message.borrower.id,
    LeaseClocks: lambda message: message.holder.id,
    FetchForPeer: lambda message: message.owner.id,
    GetFetchedPart: lambda message: message.owner.id,
    Recall: lambda message: message.lender.id,
    WorkRequest: lambda message: message.leaf,
    LeaveStats: lambda message: message.sender,
    Rekey: lambda message: message.peer,
    OpenDashboard: lambda message: message.peer,
}
"""All requests that name their sender, with the function that reads its ID. The others have the same effect from any
peer.
"""


def claimed_sender(message: Message) -> bytes | None:
    """Return the ID of the sender that `message` names, or None if it names none."""
    name = SENDER_ID.get(type(message))
    return name(message) if name is not None else None
