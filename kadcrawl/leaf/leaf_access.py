"""The ways of a leaf to its swarm, for its dashboard: it asks its full peer, as a command of a person does.

Tests: tests/web/test_listener.py
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import msgspec

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    Command,
    Contact,
    FindUrl,
    GetQueue,
    GetStatus,
    GiveOrders,
    Message,
    Ok,
    OrdersGiven,
    PeerRow,
    Queue,
    Status,
    SurveyQueue,
    UrlFound,
)
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.peer.dashboard.swarm_access import SwarmAccess, Verb
from kadcrawl.peer.dashboard.swarm_view import SwarmView

LOOK_S = 7.0
"""Seconds that the full peer of a leaf has to tell the swarm."""
FIND_S = 15.0
"""Seconds that the full peer of a leaf has to find a URL."""
ORDER_S = 30.0
"""Seconds that the full peer of a leaf has to carry out an order."""

log = logging.getLogger(__name__)

Expected = TypeVar("Expected", bound=Message)


def leaf_access(
    client: LinkClient, home: Callable[[], Contact | None], row: Callable[[], PeerRow | None]
) -> SwarmAccess:
    """Return the ways of a leaf to its swarm.

    `home` returns the full peer that last answered. `row` describes the leaf with its details, once it has joined.
    """

    async def ask(message: Message, expected: type[Expected], deadline_s: float) -> Expected:
        asked = home()
        if asked is None:
            raise RemoteError("swarm", "no full peer has answered this leaf yet; try again in a moment")
        return await client.ask(asked, message, expected, deadline_s)

    async def look(since_s: float) -> SwarmView:
        own = row()
        if own is None:
            return SwarmView()
        try:
            told = await ask(GetStatus(since_s), Status, LOOK_S)
        except RemoteError as error:
            log.info("leaf.unheard why=%s", error)
            return SwarmView(rows=[own], missing=1)
        view = SwarmView.of_status(told.answer, told.job, told.watched, paused=told.paused, ended=told.ended)
        own = msgspec.structs.replace(own, pending=0)  # Its loans are pending at their owners.
        return replace(view, rows=[*(other for other in view.rows if other.contact.id != own.contact.id), own])

    async def queue(survey: SurveyQueue) -> Queue | None:
        return await ask(GetQueue(survey), Queue, LOOK_S)

    async def command(verb: Verb) -> None:
        await ask(Command(verb), Ok, ORDER_S)

    async def steer(order: StandingOrder) -> int:
        return (await ask(GiveOrders([order]), OrdersGiven, ORDER_S)).parts_missing

    async def find(url: str) -> UrlFound:
        return await ask(FindUrl(url), UrlFound, FIND_S)

    return SwarmAccess(look=look, queue=queue, command=command, steer=steer, find=find)
