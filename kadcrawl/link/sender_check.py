"""Which peer a question says it comes from. Where connections prove who is at their other end, that must be the one."""

from collections.abc import Callable
from typing import Any

from kadcrawl.link.wire.messages import (
    Claim,
    Draw,
    Farewell,
    GetLevel,
    Have,
    KeepSlicePart,
    KeepSlices,
    Lend,
    Message,
    Recall,
    Records,
    Rekey,
    Report,
    Settle,
    Sync,
)

SPEAKER: dict[type[Message], Callable[[Any], bytes]] = {
    Records: lambda message: message.sender.id,
    Claim: lambda message: message.newcomer.id,
    Have: lambda message: message.holder.id,
    Sync: lambda message: message.owner.id,
    KeepSlices: lambda message: message.owner.id,
    KeepSlicePart: lambda message: message.owner.id,
    Settle: lambda message: message.owner.id,
    GetLevel: lambda message: message.asker,
    Lend: lambda message: message.giver.id,
    Report: lambda message: message.taker.id,
    Recall: lambda message: message.giver.id,
    Draw: lambda message: message.leaf,
    Farewell: lambda message: message.sender,
    Rekey: lambda message: message.peer,
}
"""All questions that name who asks; the others are the same whoever asks."""


def speaker(message: Message) -> bytes | None:
    """Return the ID of the peer that `message` says it comes from; None if it says nothing of that."""
    name = SPEAKER.get(type(message))
    return name(message) if name is not None else None
