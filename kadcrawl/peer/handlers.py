"""The requests a full peer answers: the rule for each message type, and the registry of the handlers of all parts.

Each part that understands a message offers a coroutine function for it by `handlers()`. `Handlers` registers one entry
for each message type at the LinkServer, checks the type's rule, and calls the part's function. A part returns its
answer only when what it acknowledges is on disk. A refusal is an exception: the LinkServer turns it into Refused with
the exception's sentence. The meaning of every message stands in link/wire/messages.py.

Tests: tests/peer/test_wrong_requests.py, tests/peer/test_coming_and_going.py, tests/peer/membership/test_departed.py
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kadcrawl.link.handler import Handler
from kadcrawl.link.peer_score import Misbehavior, MisbehaviorError
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.clock_messages import ClockFree, LeaseClocks
from kadcrawl.link.wire.joining_messages import STARTING
from kadcrawl.link.wire.messages import (
    Add,
    AddAgain,
    AssignReplica,
    CellsHeld,
    Command,
    CompareDigests,
    Contact,
    DatedOffer,
    FetchAgain,
    FindMyCells,
    FindRanges,
    FindUrl,
    GetEpochFilters,
    GetFilterPart,
    GetLoad,
    GetQueue,
    GetReach,
    GetStatus,
    GetSwarmState,
    GiveOrders,
    Hello,
    KeepEpochFilters,
    KeepFilterPart,
    LeaveStats,
    Lend,
    Message,
    Offer,
    OpenDashboard,
    Recall,
    Reconcile,
    Rekey,
    RenewLease,
    Replicate,
    RetryFailed,
    StreamSeeds,
    TakeOver,
    WasAway,
    Wave,
    WorkRequest,
)
from kadcrawl.link.wire.relay_messages import FetchForPeer, GetFetchedPart
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.peer.runtime import NotReadyError, Runtime


class Stage(Enum):
    """The stage of life in which a peer answers a message."""

    LISTENING = "listening"
    """The peer may be starting. The handler itself checks the peer's stage."""
    BEGUN = "begun"
    JOINED = "joined"
    """A peer that is joining may not know the whole job, nor all peers of its subtrees."""
    STAYING = "staying"
    """The peer has begun and is not leaving."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The condition under which a peer answers one type of message."""

    stage: Stage
    callback: Callable[[Any], Contact] | None = None
    """Returns the contact at which this peer will ask the sender in turn."""


RULES: dict[type[Message], Rule] = {
    # The life of a URL.
    Offer: Rule(Stage.JOINED),
    DatedOffer: Rule(Stage.JOINED),
    # Entering the swarm.
    Hello: Rule(Stage.LISTENING),
    GetSwarmState: Rule(Stage.JOINED),
    GetReach: Rule(Stage.JOINED),
    FindRanges: Rule(Stage.JOINED),
    # Cells.
    Replicate: Rule(Stage.BEGUN, lambda message: message.sender),
    FindMyCells: Rule(Stage.BEGUN, lambda message: message.newcomer),
    WasAway: Rule(Stage.BEGUN, lambda message: message.peer),
    CellsHeld: Rule(Stage.JOINED, lambda message: message.holder),
    TakeOver: Rule(Stage.BEGUN, lambda message: message.owner),
    CompareDigests: Rule(Stage.BEGUN),
    Reconcile: Rule(Stage.BEGUN),
    GetEpochFilters: Rule(Stage.BEGUN),
    GetFilterPart: Rule(Stage.BEGUN),
    KeepEpochFilters: Rule(Stage.BEGUN, lambda message: message.owner),
    KeepFilterPart: Rule(Stage.BEGUN, lambda message: message.owner),
    AssignReplica: Rule(Stage.BEGUN, lambda message: message.owner),
    # Loans.
    GetLoad: Rule(Stage.JOINED),
    Lend: Rule(Stage.JOINED, lambda message: message.lender),
    RenewLease: Rule(Stage.BEGUN),
    Recall: Rule(Stage.BEGUN),
    WorkRequest: Rule(Stage.JOINED),
    # Requests for other peers.
    FetchForPeer: Rule(Stage.JOINED, lambda message: message.owner),
    GetFetchedPart: Rule(Stage.BEGUN),
    # Shared clocks. A leaf asks too, and has no address.
    LeaseClocks: Rule(Stage.JOINED),
    ClockFree: Rule(Stage.BEGUN),
    # The swarm.
    Wave: Rule(Stage.BEGUN),
    LeaveStats: Rule(Stage.STAYING),
    GetStatus: Rule(Stage.BEGUN),
    Add: Rule(Stage.JOINED),
    StreamSeeds: Rule(Stage.JOINED),
    Command: Rule(Stage.JOINED),
    RetryFailed: Rule(Stage.JOINED),
    AddAgain: Rule(Stage.JOINED),
    FetchAgain: Rule(Stage.JOINED),
    GiveOrders: Rule(Stage.JOINED),
    GetQueue: Rule(Stage.JOINED),
    Rekey: Rule(Stage.LISTENING),
    OpenDashboard: Rule(Stage.LISTENING),
    FindUrl: Rule(Stage.JOINED),
}
"""The rule for every request that a full peer answers."""


class Handlers:
    """The registry of one peer's handlers."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        self._handlers: dict[type[Message], Handler] = {}

    def register(self, server: LinkServer) -> None:
        """Register an entry for each message type. Until `use`, every answer is a refusal."""
        server.register(dict.fromkeys(RULES, self.answer))

    def use(self, runtime: Runtime) -> None:
        """Check rules against this runtime from now on."""
        self._runtime = runtime

    def add(self, handlers: Mapping[type[Message], Handler]) -> None:
        """Answer these messages by the handlers of a part."""
        for kind, handler in handlers.items():
            assert kind in RULES, f"{kind.__name__} has no rule"
            assert kind not in self._handlers, f"{kind.__name__} has a handler already"
            self._handlers[kind] = handler

    async def answer(self, message: Message) -> Message:
        """Return the answer of the part that handles the message.

        Raises NotReadyError in the wrong stage, MisbehaviorError for an impossible contact, and what the part raises.
        """
        rule, runtime = RULES[type(message)], self._runtime
        if rule.callback is not None:
            check_callback(rule.callback(message))
        if runtime is None:
            raise NotReadyError(f"{STARTING}; try again in a moment")
        match rule.stage:
            case Stage.BEGUN:
                runtime.require_begun()
            case Stage.JOINED:
                runtime.require_joined()
            case Stage.STAYING:
                runtime.require_staying()
        return await self._handlers[type(message)](message)


def check_callback(contact: Contact) -> None:
    """Raise MisbehaviorError if no single host can be at this contact (overlay/addresses.py)."""
    if ip_version(contact.host) is None:
        raise MisbehaviorError(Misbehavior.CONTACT, f"no peer is asked at {contact.host}")
